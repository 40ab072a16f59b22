//! Write strategies of persistent volumes and claims.

use serde_json::{Value, json};

use super::RuleContext;
use crate::kinds::rules::json::{Object, child, is_there, object_at, object_at_mut, open, text};

/// Sets the time of the last phase change of a volume.
pub(super) fn volume(volume: &mut Value, write: &RuleContext<'_>) {
    if write.old.is_none()
        && let Some(volume) = volume.as_object_mut()
    {
        open(volume, "status").insert("lastPhaseTransitionTime".into(), json!(write.now));
    }
}

pub(super) fn volume_status(volume: &mut Value, write: &RuleContext<'_>) {
    let nothing = Object::new();
    let old = write.old.and_then(|old| object_at(old, "status")).unwrap_or(&nothing);
    let Some(volume) = volume.as_object_mut() else { return };
    let status = open(volume, "status");
    let is_given = is_there(status, "lastPhaseTransitionTime");
    let is_new = is_given && status.get("lastPhaseTransitionTime") != old.get("lastPhaseTransitionTime");
    if text(old, "phase") != text(status, "phase") {
        if !is_new {
            status.insert("lastPhaseTransitionTime".into(), json!(write.now));
        }
    } else if !is_given && let Some(time) = old.get("lastPhaseTransitionTime") {
        status.insert("lastPhaseTransitionTime".into(), time.clone());
    }
}

/// Keeps `dataSource` and `dataSourceRef` of a claim equal.
pub(super) fn claim(claim: &mut Value, write: &RuleContext<'_>) {
    let old = write.old.and_then(|old| object_at(old, "spec"));
    let had = |key: &str| old.is_some_and(|old| is_there(old, key));
    let Some(spec) = object_at_mut(claim, "spec") else { return };
    let is_elsewhere =
        |spec: &Object| child(spec, "dataSourceRef").is_some_and(|reference| !text(reference, "namespace").is_empty());
    // Data sources in other namespaces are a feature that is off by default.
    if is_elsewhere(spec) && !had("dataSourceRef") {
        spec.remove("dataSourceRef");
    }
    let was_used = had("dataSource") || had("dataSourceRef");
    if !was_used && !is_there(spec, "dataSourceRef") && !child(spec, "dataSource").is_some_and(is_claim_or_snapshot) {
        spec.remove("dataSource");
    }
    match (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned()) {
        (Some(source), None) => drop(spec.insert("dataSourceRef".into(), source)),
        (None, Some(mut reference)) if !is_elsewhere(spec) => {
            reference.as_object_mut().map(|reference| reference.remove("namespace"));
            spec.insert("dataSource".into(), reference);
        }
        _ => {}
    }
}

fn is_claim_or_snapshot(source: &Object) -> bool {
    matches!(
        (text(source, "apiGroup"), text(source, "kind")),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    )
}
