//! What is refused: the reasons and fields of causes. Messages are for people, and are not compared.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{NOW, given, text};
use crate::kinds::rules::immutable::{Cause, validate_create, validate_update};
use crate::kinds::rules::strategy;
use crate::truth::{Agreement, cases};

/// What is wrong with the object of a case, and whether it is an update.
fn refused(case: &Value) -> (Vec<Cause>, bool) {
    let id = text(case, "id");
    let mut new = given(case, "new");
    if case["old"].is_null() {
        strategy::prepare_create(id, &mut new, NOW);
        return (validate_create(id, &without_nulls(new)), false);
    }
    let old = given(case, "old");
    strategy::prepare_update(id, &old, &mut new, NOW);
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

/// Whether kube-apiserver reports a mistake in the same field for the same reason.
fn is_among(cause: &Cause, theirs: &[Value]) -> bool {
    theirs.iter().any(|other| other["field"] == cause.field && other["reason"] == cause.reason)
}

/// Whatever is refused here the server refuses as well; it refuses more.
#[test]
fn nothing_is_refused_that_the_server_accepts() {
    let mut agreement = Agreement::of("random objects that are refused");
    let (mut said, mut all) = (0, 0);
    for case in cases("rules/strategies.jsonl").filter(|case| case["causes"].is_array()) {
        let id = text(&case, "id");
        let (ours, is_update) = refused(&case);
        let theirs = case["causes"].as_array().unwrap();
        // Of two volumes with one name the server only minds the second if nothing else is wrong with the first, and claims of a set
        // become volumes in any order.
        let is_volume = |cause: &Cause| {
            cause.field.contains(".volumes[") && (cause.reason == "FieldValueDuplicate" || id == "statefulsets.apps")
        };
        let alone = ours.iter().find(|cause| !(is_among(cause, theirs) || is_volume(cause) && !theirs.is_empty()));
        // On updates the server says some things in other words if the old object is wrong already: most are.
        let is_fair = if is_update { ours.is_empty() || !theirs.is_empty() } else { alone.is_none() };
        said += ours.len();
        all += theirs.len();
        agreement.count(id, is_fair.then_some(()).ok_or_else(|| format!("{alone:?}")));
    }
    println!("{said} causes said, {all} of the server");
    agreement.conclude();
}

#[test]
fn refusals_are_those_of_the_server() {
    let mut agreement = Agreement::of("objects with one mistake");
    for case in cases("rules/checks.jsonl") {
        let id = text(&case, "id");
        let (ours, is_update) = refused(&case);
        let ours: BTreeSet<_> = ours.iter().map(|cause| (cause.reason, cause.field.as_str())).collect();
        let theirs = case["causes"].as_array().unwrap();
        let theirs: BTreeSet<_> = theirs.iter().map(|one| (text(one, "reason"), text(one, "field"))).collect();
        let difference = || format!("\n    ours   {ours:?}\n    theirs {theirs:?}");
        let sort = format!("{id} {}", if is_update { "update" } else { "create" });
        agreement.count(&sort, (ours == theirs).then_some(()).ok_or_else(difference));
    }
    agreement.conclude();
}
