//! Tests of refusals: the reasons and fields of causes. Messages are not compared.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{cases_of, given, text};
use crate::kinds::Resource;
use crate::kinds::rules::strategy;
use crate::kinds::rules::validation::{Cause, validate_create, validate_update};
use crate::truth::Agreement;

/// Returns the errors in the object of a case, and whether it is an update.
fn refused(case: &Value, resource: &Resource) -> (Vec<Cause>, bool) {
    let id = &resource.id;
    let mut new = given(case, "new");
    if case["old"].is_null() {
        strategy::prepare_create(resource, &mut new);
        return (validate_create(id, &without_nulls(new)), false);
    }
    let old = given(case, "old");
    strategy::prepare_update(resource, &old, &mut new);
    (validate_update(id, &without_nulls(old), &without_nulls(new)), true)
}

fn without_nulls(mut value: Value) -> Value {
    remove_nulls(&mut value);
    value
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(remove_nulls),
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(remove_nulls);
        }
        _ => {}
    }
}

/// Returns whether kube-apiserver reports an error with the same field and reason.
fn is_among(cause: &Cause, theirs: &[Value]) -> bool {
    theirs.iter().any(|other| other["field"] == cause.field && other["reason"] == cause.reason)
}

/// Checks that kube-apiserver also reports every error that is reported here. It reports more errors.
#[test]
fn objects_valid_for_kube_apiserver_are_accepted() {
    let mut agreement = Agreement::of("random objects that are refused");
    let (mut said, mut all) = (0, 0);
    for (case, resource) in cases_of("rules/strategies.jsonl").filter(|(case, _)| case["causes"].is_array()) {
        let id = text(&case, "id");
        let (ours, is_update) = refused(&case, &resource);
        let theirs = case["causes"].as_array().unwrap();
        // kube-apiserver reports the second of two volumes with one name only if the first has no other error. The
        // claims of a stateful set become volumes in any order.
        let is_volume = |cause: &Cause| {
            cause.field.contains(".volumes[") && (cause.reason == "FieldValueDuplicate" || id == "statefulsets.apps")
        };
        let alone = ours.iter().find(|cause| !(is_among(cause, theirs) || is_volume(cause) && !theirs.is_empty()));
        // On updates kube-apiserver words some errors differently if the old object is invalid, and most are.
        let is_fair = if is_update { ours.is_empty() || !theirs.is_empty() } else { alone.is_none() };
        said += ours.len();
        all += theirs.len();
        agreement.count(id, is_fair.then_some(()).ok_or_else(|| format!("{alone:?}")));
    }
    println!("{said} causes said, {all} of the server");
    agreement.conclude();
}

#[test]
fn mistakes_are_reported_with_the_reasons_and_fields_of_kube_apiserver() {
    let (mut agreement, mut exact) = (Agreement::of("objects with one mistake"), 0);
    for (case, resource) in cases_of("rules/checks.jsonl") {
        let id = text(&case, "id");
        let (ours, is_update) = refused(&case, &resource);
        let ours: BTreeSet<_> = ours.iter().map(|cause| (cause.reason, cause.field.as_str())).collect();
        let theirs = case["causes"].as_array().unwrap();
        let theirs: BTreeSet<_> = theirs.iter().map(|one| (text(one, "reason"), text(one, "field"))).collect();
        let difference = || format!("\n    ours   {ours:?}\n    theirs {theirs:?}");
        let sort = format!("{id} {}", if is_update { "update" } else { "create" });
        // A mistake may go unnoticed, but no valid object is refused.
        let is_fair = ours.is_empty() || !theirs.is_empty();
        agreement.count(&sort, is_fair.then_some(()).ok_or_else(difference));
        exact += usize::from(ours == theirs);
    }
    agreement.conclude();
    assert!(exact >= 400, "only {exact} cases have the reasons and fields of kube-apiserver");
}
