//! Tables of certificate signing requests, admission policies, API services and flow control.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::age::{age, human};
use super::read::{Read, or};

/// Returns the cells of a certificate signing request.
pub(super) fn certificate_signing_request(object: &Value, now: Timestamp) -> Vec<Value> {
    let duration = object.number("spec.expirationSeconds").map(|seconds| human(SignedDuration::from_secs(seconds)));
    vec![
        object.name().into(),
        age(object, now).into(),
        or(object.text("spec.signerName"), "<none>").into(),
        object.text("spec.username").into(),
        duration.unwrap_or_else(|| "<none>".into()).into(),
        decision(object).into(),
    ]
}

fn decision(request: &Value) -> String {
    let has = |kind: &str| request.list("status.conditions").iter().any(|condition| condition.text("type") == kind);
    let mut decision = match () {
        () if has("Denied") => "Denied",
        () if has("Approved") => "Approved",
        () => "Pending",
    }
    .to_owned();
    if has("Failed") {
        decision.push_str(",Failed");
    }
    if !request.text("status.certificate").is_empty() {
        decision.push_str(",Issued");
    }
    decision
}

/// Returns the cells of a validating admission policy.
pub(super) fn admission_policy(object: &Value, now: Timestamp) -> Vec<Value> {
    let kind = object.at("spec.paramKind").filter(|kind| !kind.is_null());
    let kind = kind.map(|kind| format!("{}/{}", kind.text("apiVersion"), kind.text("kind")));
    vec![
        object.name().into(),
        object.list("spec.validations").len().into(),
        kind.unwrap_or_else(|| "<unset>".into()).into(),
        age(object, now).into(),
    ]
}

/// Returns the cells of the binding of a validating admission policy.
pub(super) fn admission_policy_binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let parameters = match (object.text("spec.paramRef.name"), object.text("spec.paramRef.namespace")) {
        ("", _) => "<unset>".to_owned(),
        (name, namespace) => format!("{}/{name}", or(namespace, "*")),
    };
    vec![object.name().into(), object.text("spec.policyName").into(), parameters.into(), age(object, now).into()]
}

/// Returns the cells of an API service.
pub(super) fn api_service(object: &Value, now: Timestamp) -> Vec<Value> {
    let service = object.at("spec.service").filter(|service| !service.is_null());
    let service = service.map(|service| format!("{}/{}", service.text("namespace"), service.text("name")));
    let available = object.list("status.conditions").iter().find(|condition| condition.text("type") == "Available");
    let available = match available.map(|condition| (condition.text("status"), condition.text("reason"))) {
        None => "Unknown".to_owned(),
        Some(("True", _) | (_, "")) => available.map_or("", |condition| condition.text("status")).to_owned(),
        Some((status, reason)) => format!("{status} ({reason})"),
    };
    vec![
        object.name().into(),
        service.unwrap_or_else(|| "Local".into()).into(),
        available.into(),
        age(object, now).into(),
    ]
}

/// Returns the cells of a flow schema.
pub(super) fn flow_schema(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        object.name().into(),
        object.text("spec.priorityLevelConfiguration.name").into(),
        match object.count("spec.matchingPrecedence") {
            0 => 1000,
            precedence => precedence,
        }
        .into(),
        or(object.text("spec.distinguisherMethod.type"), "<none>").into(),
        age(object, now).into(),
        object.condition("Dangling").unwrap_or("?").into(),
    ]
}

/// Returns the cells of a priority level.
pub(super) fn priority_level(object: &Value, now: Timestamp) -> Vec<Value> {
    // The default counts if the object with the member exists.
    let count = |owner: &str, member: &str, default: i64| match object.at(owner).filter(|owner| owner.is_object()) {
        Some(_) => object.number(&format!("{owner}.{member}")).unwrap_or(default).into(),
        None => Value::from("<none>"),
    };
    let queuing = |member: &str, default| count("spec.limited.limitResponse.queuing", member, default);
    vec![
        object.name().into(),
        object.text("spec.type").into(),
        count("spec.limited", "nominalConcurrencyShares", 30),
        queuing("queues", 64),
        queuing("handSize", 8),
        queuing("queueLengthLimit", 50),
        age(object, now).into(),
    ]
}
