//! The operation that kubectl looks for: the patch of each kind, with its query parameters and media types.

use serde_json::{Map, Value, json};

use super::location;
use super::schemas::{of_kind, reference};
use crate::kinds::Resource;

/// The type of a patch.
pub(super) const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";

/// Returns the paths of the kinds in a group and version. Kinds that can only be created have none.
pub(super) fn paths(group: &str, version: &str, kinds: &[&Resource]) -> Map<String, Value> {
    let item = |served: &&Resource| {
        let (scope, place) = if served.namespaced { ("Namespaced", "namespaces/{namespace}/") } else { ("", "") };
        let path = format!("/{}/{place}{}/{{name}}", location(group, version), served.plural);
        let name = format!("patch{}{}{scope}{}", group_name(group), capitalised(version), served.kind);
        // kubectl checks for the first type before a strategic merge. Custom resources do not accept it.
        let patches = [
            "application/strategic-merge-patch+json",
            "application/merge-patch+json",
            "application/json-patch+json",
            "application/apply-patch+yaml",
        ];
        let patches = if served.rules.custom { &patches[1..] } else { &patches[..] };
        let body = |media: &&str| ((*media).to_owned(), json!({ "schema": reference(PATCH) }));
        let parameters = ["dryRun", "fieldManager", "fieldValidation", "force"]
            .map(|name| json!({ "name": name, "in": "query", "schema": { "type": "string" } }));
        let operation = json!({
            "operationId": name,
            "parameters": parameters,
            "requestBody": { "content": patches.iter().map(body).collect::<Map<_, _>>(), "required": true },
            "responses": { "200": { "description": "OK" } },
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": of_kind(group, version, &served.kind),
        });
        (path, json!({ "patch": operation }))
    };
    kinds.iter().filter(|served| !served.rules.review).map(item).collect()
}

/// Returns the group in operation names: `Core`, `Apps`, `RbacAuthorization`.
fn group_name(group: &str) -> String {
    if group.is_empty() {
        return "Core".into();
    }
    group.trim_end_matches(".k8s.io").split('.').map(capitalised).collect()
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
