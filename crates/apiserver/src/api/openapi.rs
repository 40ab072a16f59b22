//! The OpenAPI documents that kubectl reads: one of each group and version, and the index of them.
//!
//! kubectl looks in them for three things: whether writes may be validated by the server (the parameter
//! `fieldValidation` of the patch of a kind), how lists are merged (the extensions of fields), and what there is to
//! explain (the schemas of kinds).

mod paths;
mod schemas;
mod table;
mod types;

use serde_json::{Map, Value, json};

pub(crate) use table::Served;
pub(crate) use types::{ServedKind, Types};

/// The document of one group and version.
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

/// The answer to `/openapi/v3`: where the document of each group and version is, and a text that changes with it.
#[must_use]
pub(crate) fn index<'a>(documents: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> Value {
    let entry = |(group, version, hash): (&str, &str, &str)| {
        let path = location(group, version);
        let url = format!("/openapi/v3/{path}?hash={hash}");
        (path, json!({ "serverRelativeURL": url }))
    };
    json!({ "paths": documents.into_iter().map(entry).collect::<Map<_, _>>() })
}

/// Where a group and version is served: `api/v1`, `apis/apps/v1`.
#[must_use]
pub(crate) fn location(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

#[cfg(test)]
mod tests;
