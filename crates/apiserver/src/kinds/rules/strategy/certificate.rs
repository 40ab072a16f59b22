//! Write strategy of certificate signing requests.

use serde_json::Value;

use super::RuleContext;
use crate::kinds::rules::json::{at, copy_at, is_zero, items, items_mut, object_at, object_at_mut, open, text};
use crate::kinds::user::user;

/// The id of the resource.
pub(super) const ID: &str = "certificatesigningrequests.certificates.k8s.io";

/// The conditions that only the subresource `approval` may change.
const DECISIONS: [&str; 2] = ["Approved", "Denied"];

/// Records the user in a new request. Nothing else may change it.
pub(super) fn prepare(request: &mut Value, write: &RuleContext<'_>) {
    if let Some(old) = write.old {
        return copy_at(old, request, "spec");
    }
    let Some(request) = request.as_object_mut() else { return };
    let spec = open(request, "spec");
    for member in ["uid", "extra"] {
        spec.remove(member);
    }
    if let Value::Object(user) = user() {
        spec.extend(user);
    }
}

/// Keeps the decisions, and sets missing times of conditions.
pub(super) fn prepare_status(request: &mut Value, write: &RuleContext<'_>) {
    let of_type = |request: &Value, kind: &str| -> Vec<Value> {
        let conditions = object_at(request, "status").into_iter().flat_map(|status| items(status, "conditions"));
        conditions.filter(|condition| text(condition, "type") == kind).cloned().map(Value::Object).collect()
    };
    for kind in DECISIONS {
        let before = write.old.map(|old| of_type(old, kind)).unwrap_or_default();
        if before.len() != of_type(request, kind).len() {
            continue;
        }
        let Some(status) = object_at_mut(request, "status") else { return };
        let same_type = items_mut(status, "conditions").filter(|condition| text(condition, "type") == kind);
        for (condition, before) in same_type.zip(before) {
            *condition = before.as_object().cloned().unwrap_or_default();
        }
    }
    set_times(request, write);
}

/// Changes nothing but conditions.
pub(super) fn prepare_approval(request: &mut Value, write: &RuleContext<'_>) {
    set_times(request, write);
    let Some(old) = write.old else { return };
    let conditions = at(request, "status.conditions").cloned();
    copy_at(old, request, "spec");
    copy_at(old, request, "status");
    let Some(request) = request.as_object_mut() else { return };
    match conditions {
        Some(conditions) => drop(open(request, "status").insert("conditions".into(), conditions)),
        None => drop(open(request, "status").remove("conditions")),
    }
}

fn set_times(request: &mut Value, write: &RuleContext<'_>) {
    let before = write.old.and_then(|old| object_at(old, "status"));
    let Some(status) = object_at_mut(request, "status") else { return };
    for condition in items_mut(status, "conditions") {
        if is_zero(condition.get("lastUpdateTime")) {
            condition.insert("lastUpdateTime".into(), write.now.into());
        }
        if is_zero(condition.get("lastTransitionTime")) {
            let mut earlier = before.into_iter().flat_map(|status| items(status, "conditions"));
            let earlier = earlier.find(|earlier| {
                ["type", "status"].iter().all(|member| text(earlier, member) == text(condition, member))
                    && !is_zero(earlier.get("lastTransitionTime"))
            });
            let time = earlier.and_then(|earlier| earlier.get("lastTransitionTime")).cloned();
            condition.insert("lastTransitionTime".into(), time.unwrap_or_else(|| write.now.into()));
        }
    }
}
