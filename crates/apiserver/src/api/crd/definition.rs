//! Converts CRDs to resources.

use kube_structural_schema::{PrinterColumns, SchemaDefinition, StructuralSchema};
use serde_json::{Map, Value, json};
use std::sync::Arc;

use super::check::check;
use super::status_of;
use crate::api::write::WriteOptions;
use crate::hub::Hub;
use crate::kinds::{Resource, Scale, SelectableField, StoredView, is_built_in, storage_id};
use crate::status::Status;
use crate::storage::state::Locked;

/// Fills in the defaults of a CRD and checks it. `before` is the stored CRD, if there is one.
pub(crate) fn prepare(
    hub: &Hub,
    object: &mut Value,
    before: Option<&Value>,
    options: &WriteOptions,
) -> Result<(), Status> {
    fill(object);
    let changed = before.is_none_or(|before| before["spec"] != object["spec"]);
    store_version(object, changed);
    let causes = check(object, before);
    if !causes.is_empty() {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        return Err(Status::invalid("apiextensions.k8s.io", "CustomResourceDefinition", name, causes));
    }
    if changed && !options.dry_run {
        hub.compiled.put(&object["spec"], compile(&object["spec"]));
    }
    Ok(())
}

fn fill(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".into(), json!({"strategy": "None"}));
    }
    let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) else { return };
    let text = |names: &Map<String, Value>, member: &str| {
        names.get(member).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let kind = text(names, "kind");
    if text(names, "singular").is_empty() {
        names.insert("singular".into(), kind.to_lowercase().into());
    }
    if text(names, "listKind").is_empty() && !kind.is_empty() {
        names.insert("listKind".into(), format!("{kind}List").into());
    }
}

/// Adds the storage version to `status.storedVersions`. Clients remove versions after a migration.
fn store_version(object: &mut Value, changed: bool) {
    let versions = object["spec"]["versions"].as_array().into_iter().flatten();
    let storage =
        versions.into_iter().find(|version| version["storage"] == true).map(|version| version["name"].clone());
    let mut stored = object["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
    if let Some(storage) = storage.filter(|storage| stored.is_empty() || changed && !stored.contains(storage)) {
        stored.push(storage);
    }
    status_of(object).insert("storedVersions".into(), stored.into());
}

/// Returns the versions of the resource of a CRD, with its accepted names: the storage version first, even if it is not
/// served, then all other served versions.
///
/// If the resources are not compiled yet, the state is unlocked while they are compiled. The CRD may change meanwhile.
pub(super) fn resources_of(hub: &Hub, state: &mut Locked<'_>, object: &Value) -> Vec<Resource> {
    let spec = &object["spec"];
    let ready = hub.compiled.take(spec);
    let mut resources = ready.unwrap_or_else(|| Locked::unlocked(state, || compile(spec)));
    let names = &object["status"]["acceptedNames"];
    for resource in &mut resources {
        name(resource, names);
        resource.rules.definition = object["metadata"]["generation"].as_i64().unwrap_or(0);
    }
    resources
}

fn name(resource: &mut Resource, names: &Value) {
    let words = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    resource.short_names = words(&names["shortNames"]);
    resource.categories = words(&names["categories"]);
    if let Some(singular) = names["singular"].as_str() {
        resource.singular = singular.to_owned();
    }
    if let Some(list_kind) = names["listKind"].as_str() {
        resource.list_kind = list_kind.to_owned();
    }
}

/// Compiles the versions of the resource in a CRD's spec. Returns none for the name of a built-in resource.
fn compile(spec: &Value) -> Vec<Resource> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if is_built_in(&storage_id(&text(&spec["group"]), &text(&spec["names"]["plural"]))) {
        return Vec::new();
    }
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let Some(stored) = versions.iter().find(|version| version["storage"] == true) else { return Vec::new() };
    let others = versions.iter().filter(|version| version["storage"] != true && version["served"] == true);
    let mut resources: Vec<Resource> =
        std::iter::once(stored).chain(others).filter_map(|version| resource_of(spec, version)).collect();
    let converts = spec["conversion"]["strategy"] == "Webhook" && resources.len() > 1;
    let conversion = converts.then(|| Arc::new(spec["conversion"]["webhook"].clone()));
    resources.iter_mut().for_each(|resource| resource.rules.conversion.clone_from(&conversion));
    if let Some((stored, others)) = resources.split_first_mut() {
        for other in others {
            other.rules.view = Some(StoredView {
                api_version: stored.api_version(),
                renamed: &[],
                stored_schema: stored.schema.clone(),
            });
            other.rules.fields.clone_from(&stored.rules.fields);
        }
    }
    resources
}

fn resource_of(spec: &Value, version: &Value) -> Option<Resource> {
    let names = &spec["names"];
    let mut resource = Resource::custom(
        spec["group"].as_str()?,
        version["name"].as_str()?,
        names["plural"].as_str()?,
        names["kind"].as_str()?,
    );
    resource.served = version["served"] == true;
    resource.namespaced = spec["scope"] == "Namespaced";
    let schema = version.pointer("/schema/openAPIV3Schema").filter(|schema| !schema.is_null());
    let status_subresource = !version["subresources"]["status"].is_null();
    // A CRD is only stored if its schemas are valid.
    let parsed = schema
        .and_then(|schema| StructuralSchema::parse(SchemaDefinition { schema, path: "", status_subresource }).ok());
    resource.schema = parsed.map(Arc::new);
    let rules = &mut resource.rules;
    rules.status = status_subresource;
    rules.published = schema.cloned();
    rules.columns = version["additionalPrinterColumns"].as_array().map(|columns| PrinterColumns::parse(columns));
    rules.scale = scale(&version["subresources"]["scale"]);
    let paths = version["selectableFields"].as_array().into_iter().flatten();
    let paths = paths.filter_map(|field| field["jsonPath"].as_str());
    rules.fields = paths.map(|path| SelectableField::at(path.trim_start_matches('.'))).collect();
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

/// Returns the CRD of a resource that was described in code.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApiServer;

    #[test]
    fn only_valid_crds_are_kept_compiled() {
        let hub = ApiServer::new().hub;
        let definition = definition_of(&Resource::custom("shop.example.com", "v1", "gadgets", "Gadget"));
        for (dry_run, ready) in [(true, 0), (false, 1)] {
            let options = WriteOptions { dry_run, ..WriteOptions::host() };
            prepare(&hub, &mut definition.clone(), None, &options).unwrap();
            assert_eq!(hub.compiled.len(), ready);
        }
    }

    #[test]
    fn missing_resources_are_compiled_again() {
        let hub = ApiServer::new().hub;
        let definition = definition_of(&Resource::custom("shop.example.com", "v1", "gadgets", "Gadget"));
        assert_eq!(resources_of(&hub, &mut hub.storage.lock(), &definition).len(), 1);
    }
}
