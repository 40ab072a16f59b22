//! The OpenAPI documents that kubectl reads: one for each group and version, and an index of them.
//!
//! kubectl reads three things from them: whether the server can validate writes (the parameter `fieldValidation` of the
//! patch of a kind), how lists are merged (the extensions of fields), and the schemas of kinds (for `kubectl explain`).

mod paths;
mod schemas;
mod table;
mod types;
pub(crate) mod v2;

use serde_json::{Map, Value, json};

pub(crate) use table::Served;
pub(crate) use types::{ServedKind, Types};

/// Returns the document of one group and version.
#[must_use]
pub(crate) fn document(group: &str, version: &str, kinds: &[ServedKind], types: &impl Types) -> Value {
    let names = kinds.iter().flat_map(|kind| {
        let scale = kind.scale.iter().chain(&kind.list_type);
        std::iter::once(&kind.type_name).chain(scale).cloned()
    });
    let schemas = schemas::reachable(names.chain(paths::TYPES.map(str::to_owned)), types);
    let paths = paths::paths(group, version, kinds, &schemas);
    json!({
        "openapi": "3.0.0",
        "info": { "title": "Kubernetes", "version": "unversioned" },
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

/// Returns the document of version 2 with these types, and all types that their fields use.
#[must_use]
pub(crate) fn document_v2(names: Vec<String>, types: &impl Types) -> Value {
    v2::document(&schemas::reachable(names, types))
}

/// Returns the answer to `/openapi/v3`: the location of each document, and a hash that changes with its content.
#[must_use]
pub(crate) fn index<'a>(documents: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> Value {
    let entry = |(group, version, hash): (&str, &str, &str)| {
        let path = location(group, version);
        let url = format!("/openapi/v3/{path}?hash={hash}");
        (path, json!({ "serverRelativeURL": url }))
    };
    json!({ "paths": documents.into_iter().map(entry).collect::<Map<_, _>>() })
}

/// Returns the path of a group and version: `api/v1`, `apis/apps/v1`.
#[must_use]
pub(crate) fn location(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

#[cfg(test)]
mod tests;
