//! The OpenAPI documents that kubectl reads: one for each group and version, and an index of them.
//!
//! kubectl reads three things from them: whether the server can validate writes (the parameter `fieldValidation` of the
//! patch of a kind), how lists are merged (the extensions of fields), and the schemas of kinds (for `kubectl explain`).

mod schemas;
mod paths;

use serde_json::{Map, Value, json};

use crate::kinds::{Catalog, Resource};

/// Returns the document of one group and version.
#[must_use]
pub(crate) fn document(group: &str, version: &str, catalog: &Catalog) -> Value {
    let served: Vec<&Resource> = catalog
        .served()
        .map(AsRef::as_ref)
        .filter(|resource| resource.group == group && resource.version == version)
        .collect();
    let names = served.iter().map(|resource| schemas::name_of(resource));
    let schemas = schemas::reachable(names.chain([paths::PATCH.to_owned()]), catalog);
    let paths = paths::paths(group, version, &served);
    json!({
        "openapi": "3.0.0",
        "info": { "title": "Kubernetes", "version": "unversioned" },
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

/// Returns the answer to `/openapi/v3`: the location of each document, and a hash that changes with its content.
#[must_use]
pub(crate) fn index<'a>(documents: impl IntoIterator<Item = (&'a str, &'a str)>, hash: &str) -> Value {
    let entry = |(group, version): (&str, &str)| {
        let path = location(group, version);
        let url = format!("/openapi/v3/{path}?hash={hash}");
        (path, json!({ "serverRelativeURL": url }))
    };
    json!({ "paths": documents.into_iter().map(entry).collect::<Map<_, _>>() })
}

/// Returns the path of a group and version: `api/v1`, `apis/apps/v1`.
#[must_use]
fn location(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

#[cfg(test)]
mod tests;
