//! Server-side apply on `/scale`: converts the owners of the replicas between the `Scale` and its object.

use kube_field_manager::{FieldFilter, Force, Write, apply};
use serde_json::{Value, json};

use super::WriteOptions;
use super::ownership::{refused, take};
use crate::kinds::schema::TypePlace;
use crate::kinds::{Resource, Scale, form, types};
use crate::status::Status;

const API_VERSION: &str = "autoscaling/v1";

/// Returns the applied `Scale`, and the new managed fields of the object.
pub(super) fn applied(
    resource: &Resource,
    scale: &Scale,
    (stored, mut current): (&Value, Value),
    sent: &Value,
    options: &WriteOptions,
    now: &str,
) -> Result<(Value, Vec<Value>), Status> {
    let Some(of) = types::named("autoscaling/v1.Scale") else { return Err(Status::method_not_allowed()) };
    let path: Vec<String> = scale.spec_replicas.split('/').skip(1).map(|step| format!("f:{step}")).collect();
    // A direct write may have stored entries of any type.
    let entries =
        stored["metadata"]["managedFields"].as_array().into_iter().flatten().filter(|entry| entry.is_object());
    let entries: Vec<Value> = entries.cloned().collect();
    current["metadata"]["managedFields"] = entries.iter().filter_map(|entry| of_scale(entry, &path)).collect();
    let mut empty = form::zero_of(of);
    empty["apiVersion"] = API_VERSION.into();
    empty["kind"] = "Scale".into();
    let request = Write {
        schema: TypePlace::of(of),
        api_version: API_VERSION,
        kind: "Scale",
        subresource: "scale",
        manager: &options.manager,
        filter: &FieldFilter::Everything,
        now,
    };
    let force = if options.force { Force::Yes } else { Force::No };
    let mut wanted = apply(&request, &empty, &current, sent, force).map_err(refused)?;
    let scaled = wanted["metadata"]["managedFields"].take();
    let owners = of_object(resource, entries, scaled.as_array().cloned().unwrap_or_default(), &path);
    Ok((wanted, owners))
}

/// Returns the entry of the object as an entry of its `Scale`, if it covers the replicas.
fn of_scale(entry: &Value, path: &[String]) -> Option<Value> {
    let mut fields = entry["fieldsV1"].clone();
    if !take(&mut fields, path) {
        return None;
    }
    let mut shown = entry.clone();
    shown["apiVersion"] = API_VERSION.into();
    shown["fieldsV1"] = json!({"f:spec": {"f:replicas": {}}});
    Some(shown)
}

/// Returns the entries of the object, with the replicas owned as in the `Scale`.
fn of_object(resource: &Resource, entries: Vec<Value>, mut scaled: Vec<Value>, path: &[String]) -> Vec<Value> {
    scaled.retain_mut(|entry| take(&mut entry["fieldsV1"], &["f:spec".into(), "f:replicas".into()]));
    let same = |one: &Value, other: &Value| {
        ["manager", "operation", "subresource"].iter().all(|member| one[member] == other[member])
    };
    let mut kept = Vec::new();
    for mut entry in entries {
        let own = scaled.iter().position(|other| entry["operation"] == "Apply" && same(other, &entry));
        match own {
            // An apply manager is the same in every version. It keeps the replicas in its existing entry.
            Some(at) if of_scale(&entry, path).is_some() => drop(scaled.remove(at)),
            _ => drop(take(&mut entry["fieldsV1"], path)),
        }
        if entry["fieldsV1"].as_object().is_some_and(|fields| !fields.is_empty()) {
            kept.push(entry);
        }
    }
    let fields = path.iter().rev().fold(json!({}), |below, step| json!({ step.as_str(): below }));
    let mut owners: Vec<Value> = scaled
        .into_iter()
        .map(|mut entry| {
            entry["apiVersion"] = resource.api_version().into();
            entry["fieldsV1"] = fields.clone();
            entry.as_object_mut().map(|entry| entry.remove("time"));
            entry
        })
        .collect();
    owners.append(&mut kept);
    // Apply entries come first, and entries without a time come before those with one.
    owners.sort_by_key(|entry| (entry["operation"] != "Apply", !entry["time"].is_null()));
    owners
}
