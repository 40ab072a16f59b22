//! The `/scale` subresource: the replicas of an object of any kind.

use serde_json::{Value, json};

use super::metadata::metadata_mut;
use super::prepare::{Ownership, PreparedWrite};
use super::receive::judge;
use super::scale_owners::applied;
use super::update::{Subresource, check_body, check_version, modify_as};
use super::{Patch, Trust, WriteFailure, WriteOptions};
use crate::hub::Hub;
use crate::kinds::form::{self, Formed};
use crate::kinds::{Resource, Scale, types};
use crate::message::document::BodyDocument;
use crate::status::{Status, StatusCause};
use crate::storage::key::StoreKey;

/// Kind and version, as in messages.
const SCALE: (&str, &str) = ("Scale", "v1");

/// A change of the replicas.
#[derive(Debug, Clone)]
pub(crate) enum ScaleChange {
    /// Replaces the whole `Scale` object.
    Replace(BodyDocument),
    /// Patches the `Scale` object.
    Patch(Patch),
}

/// Returns the `Scale` of an object.
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
    // Empty members are omitted, as Go does.
    formed(shown).map(|formed| formed.object).unwrap_or_default()
}

/// Changes the replicas of the object at `key`, and returns its `Scale` and the warnings for the client.
pub(crate) fn rescale(
    hub: &Hub,
    resource: &Resource,
    key: &StoreKey,
    change: ScaleChange,
    options: &WriteOptions,
) -> Result<(Value, Vec<String>), WriteFailure> {
    let Some(scale) = &resource.rules.scale else { return Err(Status::no_such_resource().into()) };
    let applies = matches!(change, ScaleChange::Patch(Patch::Apply(_)));
    let ownership = if applies { Ownership::Done } else { Ownership::Due };
    let trusted = WriteOptions { trust: Trust::Host, ..options.clone() };
    let mut warnings = Vec::new();
    let outcome =
        modify_as(PreparedWrite { hub, resource, key, part: Subresource::Scale, options, ownership }, |stored| {
            let current = scale_of(scale, stored);
            let (mut wanted, owners) = match &change {
                ScaleChange::Replace(sent) => {
                    let (wanted, flaws) = received(sent.clone())?;
                    warnings = judge(SCALE, flaws, options)?;
                    (wanted, None)
                }
                ScaleChange::Patch(Patch::Apply(sent)) => {
                    let now = hub.clock.now_text();
                    let (wanted, owners) = applied(resource, scale, (stored, current), &sent.value, options, &now)?;
                    warnings = sent.judged(options)?;
                    (formed(wanted)?.object, Some(owners))
                }
                ScaleChange::Patch(patch) => {
                    let changed = patch.apply(&current, resource)?;
                    let refuse = |error: WriteFailure| error.of_patch(&changed.to_string());
                    let sent = BodyDocument { value: changed.clone(), duplicates: patch.duplicates().to_vec() };
                    let (wanted, flaws) = received(sent).map_err(refuse)?;
                    warnings = judge(SCALE, flaws, options).map_err(refuse)?;
                    (wanted, None)
                }
            };
            check_body(resource, key, &mut wanted)?;
            check_version(resource, key, stored, &wanted, &trusted)?;
            // Zero replicas are omitted.
            let replicas = number(&wanted, "/spec/replicas");
            if replicas < 0 {
                let why = format!("{replicas}: must be greater than or equal to 0");
                let cause = StatusCause::invalid("spec.replicas", why);
                return Err(Status::invalid("autoscaling", "Scale", key.name(), vec![cause]).into());
            }
            let mut updated = stored.clone();
            put_at(&mut updated, &scale.spec_replicas, replicas.into());
            if let Some(owners) = owners {
                metadata_mut(&mut updated).insert("managedFields".into(), owners.into());
            }
            Ok(updated)
        })?;
    Ok((scale_of(scale, &outcome.value(resource)), warnings))
}

/// Returns a received `Scale` in the server's form, and its unknown fields.
fn received(sent: BodyDocument) -> Result<(Value, Vec<String>), WriteFailure> {
    let BodyDocument { value, duplicates: mut flaws } = sent;
    let text = |member: &str| value[member].as_str().unwrap_or_default();
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    if !matches!(api_version, "" | "autoscaling/v1") {
        return Err(Status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version (autoscaling/v1)"
        ))
        .into());
    }
    if !matches!(kind, "" | "Scale") {
        return Err(Status::bad_request(format!("{kind} in version \"v1\" cannot be handled as a Scale")).into());
    }
    let formed = formed(value)?;
    flaws.extend(formed.unknown);
    Ok((formed.object, flaws))
}

/// Returns a `Scale` in the server's form.
fn formed(sent: Value) -> Result<Formed, WriteFailure> {
    let Some(of) = types::named("autoscaling/v1.Scale") else {
        return Ok(Formed { object: sent, unknown: Vec::new() });
    };
    form::form(of, sent).map_err(|why| WriteFailure::undecodable(SCALE, why))
}

fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

/// Sets a value at a pointer, and creates missing parents.
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

/// Returns a selector as a string. It may be stored as a string or as labels to match.
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
