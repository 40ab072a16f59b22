//! The write strategies of kinds: which fields are reset, kept or counted when an object is written.
//!
//! An object has its name, uid and defaults before it is prepared. Each function takes the id of the resource, `plural`
//! or `plural.group`. Objects of unknown kinds stay unchanged.

pub(crate) mod service;

mod certificate;
mod claim;
mod pod;
mod pod_resources;
mod row;
mod special;

use serde_json::{Value, json};

use super::equal::same;
use super::json::{Object, at, copy, copy_at, object_at, open};
use row::{Generation, KindRow, ROWS, StatusRule};

fn row_of(id: &str) -> Option<&'static KindRow> {
    ROWS.iter().find(|row| row.id == id)
}

/// The context of a kind's own rules.
///
/// `now` is the current time in whole seconds, as the server writes it.
pub(crate) struct RuleContext<'a> {
    old: Option<&'a Value>,
    now: &'a str,
}

/// Prepares a created object.
pub(crate) fn prepare_create(id: &str, object: &mut Value, now: &str) {
    let Some(row) = row_of(id) else { return };
    if matches!(row.status, StatusRule::Dropped(_)) {
        reset_status(row, object);
    }
    if !matches!(row.generation, Generation::Free | Generation::Raised(_))
        && let Some(object) = object.as_object_mut()
    {
        open(object, "metadata").insert("generation".into(), json!(1));
    }
    (row.settle)(object);
    (row.prepare)(object, &RuleContext { old: None, now });
}

/// Prepares an updated object.
pub(crate) fn prepare_update(id: &str, old: &Value, new: &mut Value, now: &str) {
    keep_generation(old, new);
    let Some(row) = row_of(id) else { return };
    if !matches!(row.status, StatusRule::None) {
        copy_at(old, new, "status");
    }
    (row.settle)(new);
    // kube-apiserver compares these before it drops anything from them.
    let is_raised_whole = matches!(row.generation, Generation::CountedWhole) && is_raised(row, old, new);
    (row.prepare)(new, &RuleContext { old: Some(old), now });
    if is_raised_whole || is_raised(row, old, new) {
        raise_generation(old, new);
    }
}

/// Prepares an object whose status is updated.
pub(crate) fn prepare_status_update(id: &str, old: &Value, new: &mut Value, now: &str) {
    keep_generation(old, new);
    let Some(row) = row_of(id) else { return };
    for path in row.kept_by_status.split_whitespace() {
        match path {
            "metadata" => keep_metadata(old, new),
            path => copy_at(old, new, path),
        }
    }
    (row.prepare_status)(new, &RuleContext { old: Some(old), now });
    (row.settle)(new);
}

/// Prepares a namespace whose finalizers are written: status is kept.
pub(crate) fn prepare_finalize(old: &Value, new: &mut Value) {
    keep_generation(old, new);
    copy_at(old, new, "status");
}

/// Prepares an object whose subresource of this name is written: `approval` of certificate signing requests, and
/// `ephemeralcontainers` of pods. Everything else is kept.
pub(crate) fn prepare_subresource_update(name: &str, old: &Value, new: &mut Value, now: &str) {
    keep_generation(old, new);
    match name {
        "approval" => certificate::prepare_approval(new, &RuleContext { old: Some(old), now }),
        _ => {
            pod::prepare_ephemeral_containers(old, new);
            if !same(at(old, "spec"), at(new, "spec")) {
                raise_generation(old, new);
            }
        }
    }
}

/// Returns the paths that a write of the object itself does not own.
pub(crate) fn reset_fields(id: &str) -> &'static [&'static str] {
    if id == certificate::ID {
        return &["spec", "status"];
    }
    match row_of(id).map(|row| &row.status) {
        None | Some(StatusRule::None) => &[],
        Some(StatusRule::Dropped(_) | StatusRule::Kept) => &["status"],
    }
}

/// Returns the paths that a write of the status does not own; `None` for kinds without a rule.
pub(crate) fn reset_status_fields(id: &str) -> Option<&'static [&'static str]> {
    row_of(id).map(|row| row.reset_by_status).filter(|paths| !paths.is_empty())
}

/// Resets the status to that of a new object.
fn reset_status(row: &KindRow, object: &mut Value) {
    let StatusRule::Dropped(empty) = row.status else { return };
    let status = serde_json::from_str(empty).unwrap_or_else(|_| json!({}));
    if let Some(object) = object.as_object_mut() {
        object.insert("status".into(), status);
    }
}

/// Returns whether a change raises the generation.
fn is_raised(row: &KindRow, old: &Value, new: &Value) -> bool {
    match row.generation {
        Generation::Free | Generation::Fixed => false,
        Generation::Counted(paths) | Generation::Raised(paths) => {
            paths.split_whitespace().any(|path| !same(at(old, path), at(new, path)))
        }
        Generation::CountedExactly(path) => at(old, path) != at(new, path),
        Generation::CountedWhole => {
            let rest = |value: &Value| {
                let mut rest = value.clone();
                rest.as_object_mut().map(|members| members.remove("metadata"));
                rest
            };
            !same(Some(&rest(old)), Some(&rest(new))) || !same(at(old, "metadata.labels"), at(new, "metadata.labels"))
        }
    }
}

/// Keeps the generation: only the server sets it.
fn keep_generation(old: &Value, new: &mut Value) {
    if let Some(new) = new.as_object_mut() {
        let metadata = open(new, "metadata");
        match at(old, "metadata.generation") {
            Some(generation) => metadata.insert("generation".into(), generation.clone()),
            None => metadata.remove("generation"),
        };
    }
}

fn raise_generation(old: &Value, new: &mut Value) {
    let generation = at(old, "metadata.generation").and_then(Value::as_i64).unwrap_or_default();
    if let Some(new) = new.as_object_mut() {
        open(new, "metadata").insert("generation".into(), json!(generation.saturating_add(1)));
    }
}

/// Keeps the metadata: for some kinds a status write changes no metadata at all.
fn keep_metadata(old: &Value, new: &mut Value) {
    let nothing = Object::new();
    let old = object_at(old, "metadata").unwrap_or(&nothing);
    let Some(new) = new.as_object_mut() else { return };
    let metadata = open(new, "metadata");
    for key in ["deletionTimestamp", "generation", "selfLink", "labels", "annotations", "finalizers", "ownerReferences"]
    {
        copy(old, metadata, key);
    }
}
