//! Tables of volumes, claims, storage classes and drivers.

use std::cmp::Reverse;

use jiff::Timestamp;
use serde_json::Value;

use super::age::{age, time};
use super::quantity::quantity;
use super::read::{Read, or};
use super::row::Row;

/// The deprecated annotation for the class of a volume. It has precedence.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Returns the cells of a volume.
pub(super) fn persistent_volume(object: &Value, now: Timestamp) -> Vec<Value> {
    let claim = object.at("spec.claimRef");
    let claim = claim.map_or_else(String::new, |claim| format!("{}/{}", claim.text("namespace"), claim.text("name")));
    vec![
        object.name().into(),
        quantity(object.at("spec.capacity.storage")).into(),
        access_modes(object, "spec.accessModes").into(),
        or(object.text("spec.persistentVolumeReclaimPolicy"), "Retain").into(),
        phase(object).into(),
        claim.into(),
        class(object).into(),
        attributes_class(object).into(),
        object.text("status.reason").into(),
        age(object, now).into(),
        volume_mode(object).into(),
    ]
}

/// Returns the cells of a claim. Capacity and access modes are shown once it has a volume.
pub(super) fn persistent_volume_claim(object: &Value, now: Timestamp) -> Vec<Value> {
    let volume = object.text("spec.volumeName");
    let (capacity, modes) = match volume {
        "" => (String::new(), String::new()),
        _ => (quantity(object.at("status.capacity.storage")), access_modes(object, "status.accessModes")),
    };
    vec![
        object.name().into(),
        phase(object).into(),
        volume.into(),
        capacity.into(),
        modes.into(),
        class(object).into(),
        attributes_class(object).into(),
        age(object, now).into(),
        volume_mode(object).into(),
    ]
}

fn phase(object: &Value) -> &str {
    if object.is_terminating() { "Terminating" } else { or(object.text("status.phase"), "Pending") }
}

fn class(object: &Value) -> &str {
    object.entry("metadata.annotations", CLASS).unwrap_or_else(|| object.text("spec.storageClassName"))
}

fn attributes_class(object: &Value) -> &str {
    object.optional_text("spec.volumeAttributesClassName").unwrap_or("<unset>")
}

fn volume_mode(object: &Value) -> &str {
    object.optional_text("spec.volumeMode").unwrap_or("Filesystem")
}

/// Returns the access modes by their initials, in a fixed order.
fn access_modes(object: &Value, path: &str) -> String {
    let all = object.list(path);
    let known =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let found = known.into_iter().filter(|(mode, _)| all.iter().any(|one| one == mode)).map(|(_, initials)| initials);
    found.collect::<Vec<_>>().join(",")
}

/// Returns the cells of a storage class.
pub(super) fn storage_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        object.name().into(),
        object.text("provisioner").into(),
        object.optional_text("reclaimPolicy").unwrap_or("Delete").into(),
        object.optional_text("volumeBindingMode").unwrap_or("Immediate").into(),
        object.flag("allowVolumeExpansion").unwrap_or(false).into(),
        age(object, now).into(),
    ]
}

/// Marks the default class: the newest of the classes that are annotated as default.
pub(super) fn mark_default(rows: &mut [Row<'_>]) {
    let rank = |object: &Value| (time(object, "metadata.creationTimestamp"), Reverse(object.name().to_owned()));
    let default =
        rows.iter().map(|row| row.object).filter(|object| says_default(object)).max_by_key(|class| rank(class));
    let Some(name) = default.map(Read::name).map(str::to_owned) else { return };
    for row in rows.iter_mut().filter(|row| row.object.name() == name) {
        if let Some(cell) = row.cells.first_mut() {
            *cell = format!("{name} (default)").into();
        }
    }
}

fn says_default(class: &Value) -> bool {
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"]
        .into_iter()
        .any(|key| class.entry("metadata.annotations", key) == Some("true"))
}

/// Returns the cells of an attachment.
pub(super) fn volume_attachment(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        object.name().into(),
        object.text("spec.attacher").into(),
        object.text("spec.source.persistentVolumeName").into(),
        object.text("spec.nodeName").into(),
        object.flag("status.attached").unwrap_or(false).into(),
        age(object, now).into(),
    ]
}

/// Returns the cells of a class of volume attributes.
pub(super) fn volume_attributes_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![object.name().into(), object.text("driverName").into(), age(object, now).into()]
}

/// Returns the cells of a driver.
pub(super) fn csi_driver(object: &Value, now: Timestamp) -> Vec<Value> {
    let tokens = object.at("spec.tokenRequests").and_then(Value::as_array).map(|requests| {
        let audiences: Vec<&str> = requests.iter().map(|request| request.text("audience")).collect();
        audiences.join(",")
    });
    vec![
        object.name().into(),
        object.flag("spec.attachRequired").unwrap_or(true).into(),
        object.flag("spec.podInfoOnMount").unwrap_or(false).into(),
        object.flag("spec.storageCapacity").unwrap_or(false).into(),
        tokens.unwrap_or_else(|| "<unset>".into()).into(),
        object.flag("spec.requiresRepublish").unwrap_or(false).into(),
        or(&object.joined("spec.volumeLifecycleModes", ","), "Persistent").into(),
        age(object, now).into(),
    ]
}

/// Returns the cells of the drivers of a node.
pub(super) fn csi_node(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![object.name().into(), object.list("spec.drivers").len().into(), age(object, now).into()]
}
