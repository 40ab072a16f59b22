//! The `/scale` part of an object: its replicas, whatever the kind.

use serde_json::{Value, json};

use super::metadata::{bump_generation, metadata_text};
use super::update::modify;
use super::{Patch, WriteOptions};
use crate::hub::Hub;
use crate::object::Key;
use crate::resource::{Resource, Scale};
use crate::status::{Status, StatusCause};

/// What becomes of the replicas.
#[derive(Debug, Clone)]
pub(crate) enum ScaleChange {
    /// The whole `Scale` object is replaced.
    Replace(Value),
    /// Parts of it are changed.
    Patch(Patch),
}

/// The `Scale` of an object.
pub(crate) fn scale_of(scale: &Scale, object: &Value) -> Value {
    let metadata = &object["metadata"];
    let mut shown = json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"], "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": {"replicas": number(object, &scale.spec_replicas)},
        "status": {"replicas": number(object, &scale.status_replicas)},
    });
    if let Some(selector) = scale.selector.as_ref().and_then(|path| object.pointer(path)) {
        shown["status"]["selector"] = selector_text(selector).into();
    }
    shown
}

/// Changes the replicas of the object at `key` and answers with its `Scale`.
pub(crate) fn rescale(
    hub: &Hub,
    resource: &Resource,
    key: &Key,
    change: ScaleChange,
    options: WriteOptions,
) -> Result<Value, Status> {
    let Some(scale) = &resource.rules.scale else { return Err(Status::no_such_resource()) };
    let outcome = modify(hub, resource, key, options, |stored| {
        let current = scale_of(scale, stored);
        let wanted = match change {
            ScaleChange::Replace(wanted) => wanted,
            ScaleChange::Patch(patch) => patch.apply(&current)?,
        };
        let version = metadata_text(&wanted, "resourceVersion");
        if !version.is_empty() && version != metadata_text(stored, "resourceVersion") {
            return Err(Status::modified_meanwhile(resource, key.name()));
        }
        let Some(replicas) = wanted["spec"]["replicas"].as_i64().filter(|replicas| *replicas >= 0) else {
            let cause = StatusCause::invalid("spec.replicas", "must be greater than or equal to 0");
            return Err(Status::invalid("autoscaling", "Scale", key.name(), vec![cause]));
        };
        let mut updated = stored.clone();
        put_at(&mut updated, &scale.spec_replicas, replicas.into());
        bump_generation(resource, stored, &mut updated);
        Ok(updated)
    })?;
    Ok(scale_of(scale, &outcome.value(resource)))
}

fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

/// Puts a value at a pointer, making the objects that lead to it.
fn put_at(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for step in pointer.trim_start_matches('/').split('/') {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[step];
    }
    *place = value;
}

/// A selector as text, be it written as such or as labels to match.
fn selector_text(selector: &Value) -> String {
    let labels = selector.get("matchLabels").unwrap_or(selector);
    match (selector.as_str(), labels.as_object()) {
        (Some(text), _) => text.to_owned(),
        (None, Some(labels)) => {
            let pairs: Vec<String> =
                labels.iter().filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?))).collect();
            pairs.join(",")
        }
        (None, None) => String::new(),
    }
}
