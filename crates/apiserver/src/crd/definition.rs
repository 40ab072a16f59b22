//! What a definition says, and the resource it means.

use serde_json::{Value, json};

use super::CLEANUP;
use crate::resource::{Field, Resource, Scale, View};
use crate::status::{Status, StatusCause};

/// Checks a definition and fills in what it may leave out.
pub(crate) fn prepare(object: &mut Value) -> Result<(), Status> {
    let mut causes = Vec::new();
    let text =
        |object: &Value, pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    for (pointer, field) in [
        ("/spec/group", "spec.group"),
        ("/spec/names/plural", "spec.names.plural"),
        ("/spec/names/kind", "spec.names.kind"),
    ] {
        if text(object, pointer).is_empty() {
            causes.push(StatusCause::required(field, "must be set"));
        }
    }
    let name = text(object, "/metadata/name");
    let expected = format!("{}.{}", text(object, "/spec/names/plural"), text(object, "/spec/group"));
    if causes.is_empty() && name != expected {
        let why = format!("{name:?}: must be spec.names.plural+\".\"+spec.group");
        causes.push(StatusCause::invalid("metadata.name", why));
    }
    let scope = text(object, "/spec/scope");
    if !matches!(scope.as_str(), "Namespaced" | "Cluster") {
        let known = "supported values: \"Cluster\", \"Namespaced\"";
        causes.push(StatusCause::unsupported("spec.scope", format!("{scope:?}: {known}")));
    }
    let versions = object["spec"]["versions"].as_array();
    let stored = versions.into_iter().flatten().filter(|version| version["storage"] == true).count();
    if stored != 1 {
        let why = "must have exactly one version marked as storage version";
        causes.push(StatusCause::invalid("spec.versions", why));
    }
    if !causes.is_empty() {
        return Err(Status::invalid("apiextensions.k8s.io", "CustomResourceDefinition", &name, causes));
    }
    let kind = text(object, "/spec/names/kind");
    let names = &mut object["spec"]["names"];
    if names["singular"].is_null() {
        names["singular"] = kind.to_lowercase().into();
    }
    if names["listKind"].is_null() {
        names["listKind"] = format!("{kind}List").into();
    }
    if object["spec"]["conversion"].is_null() {
        object["spec"]["conversion"] = json!({"strategy": "None"});
    }
    if object["metadata"]["finalizers"].is_null() {
        object["metadata"]["finalizers"] = json!([CLEANUP]);
    }
    Ok(())
}

/// The versions of the resource a definition means: the stored one first, then all others that are served.
pub(super) fn resources_of(object: &Value) -> Vec<Resource> {
    let versions = object["spec"]["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let Some(stored) = versions.iter().find(|version| version["storage"] == true) else { return Vec::new() };
    let others = versions.iter().filter(|version| version["storage"] != true && version["served"] == true);
    let mut resources: Vec<Resource> =
        std::iter::once(stored).chain(others).filter_map(|version| resource_of(object, version)).collect();
    if let Some((stored, others)) = resources.split_first_mut() {
        for other in others {
            other.rules.view = Some(View { api_version: stored.api_version(), renamed: &[] });
            other.rules.fields.clone_from(&stored.rules.fields);
        }
    }
    resources
}

fn resource_of(object: &Value, version: &Value) -> Option<Resource> {
    let spec = &object["spec"];
    let names = &spec["names"];
    let words = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut resource = Resource::custom(
        spec["group"].as_str()?,
        version["name"].as_str()?,
        names["plural"].as_str()?,
        names["kind"].as_str()?,
    );
    resource.namespaced = spec["scope"] == "Namespaced";
    resource.short_names = words(&names["shortNames"]);
    resource.categories = words(&names["categories"]);
    if let Some(singular) = names["singular"].as_str() {
        resource.singular = singular.to_owned();
    }
    if let Some(list_kind) = names["listKind"].as_str() {
        resource.list_kind = list_kind.to_owned();
    }
    let rules = &mut resource.rules;
    rules.definition = object["metadata"]["generation"].as_i64().unwrap_or(0);
    rules.status = !version["subresources"]["status"].is_null();
    rules.scale = scale(&version["subresources"]["scale"]);
    let paths = version["selectableFields"].as_array().into_iter().flatten();
    let paths = paths.filter_map(|field| field["jsonPath"].as_str());
    rules.fields = paths.map(|path| Field::at(path.trim_start_matches('.'))).collect();
    Some(resource)
}

fn scale(scale: &Value) -> Option<Scale> {
    let pointer = |member: &str| scale[member].as_str().map(|path| path.replace('.', "/"));
    Some(Scale {
        spec_replicas: pointer("specReplicasPath")?,
        status_replicas: pointer("statusReplicasPath")?,
        selector: pointer("labelSelectorPath"),
    })
}

/// The definition of a resource that was described in code.
pub(crate) fn definition_of(resource: &Resource) -> Value {
    let rules = &resource.rules;
    let mut version = json!({
        "name": resource.version, "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        "subresources": {},
    });
    if rules.status {
        version["subresources"]["status"] = json!({});
    }
    if let Some(scale) = &rules.scale {
        version["subresources"]["scale"] = json!({
            "specReplicasPath": scale.spec_replicas.replace('/', "."),
            "statusReplicasPath": scale.status_replicas.replace('/', "."),
        });
    }
    let fields: Vec<Value> =
        rules.fields.iter().map(|field| json!({"jsonPath": format!(".{}", field.label)})).collect();
    if !fields.is_empty() {
        version["selectableFields"] = fields.into();
    }
    json!({
        "metadata": {"name": resource.id},
        "spec": {
            "group": resource.group,
            "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
            "names": {"plural": resource.plural, "kind": resource.kind, "singular": resource.singular,
                "listKind": resource.list_kind},
            "versions": [version],
        },
    })
}
