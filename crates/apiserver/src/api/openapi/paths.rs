//! The operations on each kind, by path.

use serde_json::{Map, Value, json};

use super::location;
use super::schemas::{SCALE, name_of, of_kind, reference};
use crate::kinds::Resource;

/// Types that the operations of every kind use.
pub(super) const TYPES: [&str; 3] = [STATUS, DELETE_OPTIONS, PATCH];

const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";

const WRITE: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];
const PATCHING: &[&str] = &["dryRun", "fieldManager", "fieldValidation", "force"];
const DELETING: &[&str] = &["dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"];
const LISTING: &[&str] = &[
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
];

/// The kind or subresource that is described.
struct Target<'a> {
    served: &'a Resource,
    /// The kind that the operations read and write.
    kind: Value,
    type_name: String,
    /// The group and version in operation names, such as `AppsV1`.
    group: String,
    /// `Namespaced` or empty.
    scope: &'static str,
    /// `Status` or `Scale` for a subresource.
    part: &'static str,
    schemas: &'a Map<String, Value>,
}

/// Returns the paths of the kinds in a group and version.
pub(super) fn paths(
    group: &str,
    version: &str,
    kinds: &[&Resource],
    schemas: &Map<String, Value>,
) -> Map<String, Value> {
    let root = format!("/{}", location(group, version));
    let mut paths = Map::new();
    for served in kinds {
        let target = Target {
            served,
            kind: of_kind(group, version, &served.kind),
            type_name: name_of(served),
            group: format!("{}{}", group_name(group), capitalised(version)),
            scope: if served.namespaced { "Namespaced" } else { "" },
            part: "",
            schemas,
        };
        of_target(&mut paths, &root, &target);
    }
    paths
}

fn of_target(paths: &mut Map<String, Value>, root: &str, target: &Target<'_>) {
    let plural = &target.served.plural;
    let collection = match target.served.namespaced {
        true => format!("{root}/namespaces/{{namespace}}/{plural}"),
        false => format!("{root}/{plural}"),
    };
    if target.served.rules.review {
        let path = json!({ "post": target.create(), "parameters": path_parameters(&collection) });
        paths.insert(collection, path);
        return;
    }
    let item = format!("{collection}/{{name}}");
    if target.served.namespaced {
        paths.insert(format!("{root}/{plural}"), target.everywhere());
    }
    if target.served.rules.status {
        paths.insert(format!("{item}/status"), target.part("Status").subresource(&item));
    }
    if target.served.rules.scale.is_some() {
        let kind = of_kind("autoscaling", "v1", "Scale");
        let target = Target { kind, type_name: SCALE.into(), ..target.part("Scale") };
        paths.insert(format!("{item}/scale"), target.subresource(&item));
    }
    paths.insert(item.clone(), target.item(&item));
    paths.insert(collection.clone(), target.collection(&collection));
}

impl Target<'_> {
    fn part(&self, part: &'static str) -> Self {
        let (kind, type_name, group) = (self.kind.clone(), self.type_name.clone(), self.group.clone());
        Target { part, kind, type_name, group, ..*self }
    }

    fn everywhere(&self) -> Value {
        let name = format!("list{}{}ForAllNamespaces", self.group, self.served.kind);
        json!({ "get": self.list(&name), "parameters": parameters(LISTING, "query") })
    }

    fn collection(&self, path: &str) -> Value {
        let Self { group, scope, served, .. } = self;
        let kind = &served.kind;
        let list = with_parameters(self.list(&format!("list{group}{scope}{kind}")), LISTING);
        let delete = self.operation(&format!("delete{group}Collection{scope}{kind}"), "deletecollection", STATUS);
        let deleting: Vec<&str> = LISTING.iter().chain(DELETING).copied().collect();
        json!({
            "get": list,
            "post": self.create(),
            "delete": with_body(with_parameters(delete, &deleting), &["*/*"], self.body_of(DELETE_OPTIONS)),
            "parameters": path_parameters(path),
        })
    }

    fn create(&self) -> Value {
        with_body(with_parameters(self.named("create", "post"), WRITE), &["*/*"], self.body())
    }

    fn item(&self, path: &str) -> Value {
        let mut item = self.subresource(path);
        let Self { group, scope, served, .. } = self;
        let delete = self.operation(&format!("delete{group}{scope}{}", served.kind), "delete", STATUS);
        item["delete"] = with_body(with_parameters(delete, DELETING), &["*/*"], self.body_of(DELETE_OPTIONS));
        item
    }

    /// Returns the operations that objects and their subresources share.
    fn subresource(&self, path: &str) -> Value {
        // kubectl checks for the first type before a strategic merge. Custom resources do not accept it.
        let patches = [
            "application/strategic-merge-patch+json",
            "application/merge-patch+json",
            "application/json-patch+json",
            "application/apply-patch+yaml",
        ];
        let patches = if self.served.rules.custom { &patches[1..] } else { &patches[..] };
        let patch = with_parameters(self.named("patch", "patch"), PATCHING);
        json!({
            "get": self.named("read", "get"),
            "put": with_body(with_parameters(self.named("replace", "put"), WRITE), &["*/*"], self.body()),
            "patch": with_body(patch, patches, self.body_of(PATCH)),
            "parameters": path_parameters(path),
        })
    }

    fn list(&self, name: &str) -> Value {
        self.operation(name, "list", "")
    }

    fn named(&self, verb: &str, action: &str) -> Value {
        let Self { group, scope, part, served, .. } = self;
        self.operation(&format!("{verb}{group}{scope}{}{part}", served.kind), action, &self.type_name)
    }

    fn operation(&self, name: &str, action: &str, answer: &str) -> Value {
        let mut ok = json!({ "description": "OK" });
        if self.schemas.contains_key(answer) {
            ok["content"] = json!({ "application/json": { "schema": reference(answer) } });
        }
        json!({
            "operationId": name,
            "responses": { "200": ok },
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": self.kind,
        })
    }

    fn body(&self) -> Value {
        self.body_of(&self.type_name)
    }

    /// Returns a body of that type, or of any form if the type is not published.
    fn body_of(&self, type_name: &str) -> Value {
        if self.schemas.contains_key(type_name) { json!({ "schema": reference(type_name) }) } else { json!({}) }
    }
}

fn with_parameters(mut operation: Value, names: &[&str]) -> Value {
    operation["parameters"] = parameters(names, "query");
    operation
}

fn with_body(mut operation: Value, media_types: &[&str], body: Value) -> Value {
    let content: Map<String, Value> = media_types.iter().map(|media| ((*media).to_owned(), body.clone())).collect();
    operation["requestBody"] = json!({ "content": content, "required": true });
    operation
}

fn parameters(names: &[&str], place: &str) -> Value {
    names
        .iter()
        .map(|name| {
            let kind = match *name {
                "allowWatchBookmarks" | "force" | "orphanDependents" | "sendInitialEvents" | "watch" => "boolean",
                "gracePeriodSeconds" | "limit" | "timeoutSeconds" => "integer",
                _ => "string",
            };
            let mut parameter = json!({ "name": name, "in": place, "schema": { "type": kind, "uniqueItems": true } });
            if place == "path" {
                parameter["required"] = json!(true);
            }
            parameter
        })
        .collect()
}

/// Returns the parameters in the path itself.
fn path_parameters(path: &str) -> Value {
    let names: Vec<&str> =
        ["name", "namespace"].into_iter().filter(|name| path.contains(&format!("{{{name}}}"))).collect();
    parameters(&names, "path")
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
