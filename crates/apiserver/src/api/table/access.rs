//! Tables of access and configuration: service accounts, roles, webhooks, config maps, secrets.

use jiff::Timestamp;
use serde_json::Value;

use super::age::age;
use super::read::{Read, or};

/// Returns the cells of a config map.
pub(super) fn config_map(object: &Value, now: Timestamp) -> Vec<Value> {
    let data = object.members("data") + object.members("binaryData");
    vec![object.name().into(), data.into(), age(object, now).into()]
}

/// Returns the cells of a secret.
pub(super) fn secret(object: &Value, now: Timestamp) -> Vec<Value> {
    let kind = or(object.text("type"), "Opaque");
    vec![object.name().into(), kind.into(), object.members("data").into(), age(object, now).into()]
}

/// Returns the cells of a service account.
pub(super) fn service_account(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![object.name().into(), age(object, now).into()]
}

/// Returns the cells of a role binding, of a namespace or of the cluster.
pub(super) fn role_binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let subjects = |kind: &str| {
        let all = object.list("subjects").iter().filter(|subject| subject.text("kind") == kind);
        let named = all.map(|subject| match kind {
            "ServiceAccount" => format!("{}/{}", subject.text("namespace"), subject.text("name")),
            _ => subject.text("name").into(),
        });
        Value::from(named.collect::<Vec<_>>().join(", "))
    };
    vec![
        object.name().into(),
        format!("{}/{}", object.text("roleRef.kind"), object.text("roleRef.name")).into(),
        age(object, now).into(),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

/// Returns the cells of a webhook configuration.
pub(super) fn webhooks(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![object.name().into(), object.list("webhooks").len().into(), age(object, now).into()]
}
