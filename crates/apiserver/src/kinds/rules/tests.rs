//! Compares the rules with those of kube-apiserver's libraries.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

mod dropped;
mod hostile;
mod refusals;

use std::collections::BTreeSet;

use serde_json::Value;

use super::strategy;
use crate::kinds::types::{self, Struct};
use crate::kinds::{Catalog, defaulting, form};
use crate::truth::{Agreement, cases, same};
use dropped::forget_dropped;

/// The time of all writes.
const NOW: &str = "2000-01-01T00:00:00Z";

fn text<'c>(case: &'c Value, member: &str) -> &'c str {
    case[member].as_str().unwrap()
}

/// Returns the type of the objects of a case.
fn type_of(case: &Value) -> &'static Struct {
    types::kind(text(case, "apiVersion"), text(case, "kind")).unwrap()
}

/// Returns an object of a case, as received.
fn given(case: &Value, member: &str) -> Value {
    form::form(type_of(case), case[member].clone()).unwrap().object
}

/// Compares an object with one of a case, both in the server's form.
fn check(case: &Value, ours: Value, theirs: &str) -> Result<(), String> {
    same(&form::form(type_of(case), ours)?.object, &given(case, theirs))
}

/// Asserts that every stored built-in resource was checked.
fn assert_complete(looked_at: &BTreeSet<String>) {
    for resource in Catalog::built_in().iter() {
        let is_stored = resource.rules.view.is_none() && !resource.rules.review;
        assert!(!is_stored || looked_at.contains(&resource.id), "there is no case of {}", resource.id);
    }
}

#[test]
fn defaults_match_kube_apiserver() {
    let mut agreement = Agreement::of("defaults");
    for case in cases("rules/defaults.jsonl") {
        let mut ours = given(&case, "before");
        defaulting::fill(type_of(&case), &mut ours);
        agreement.count(text(&case, "id"), check(&case, ours, "after"));
    }
    assert_complete(&agreement.conclude());
}

#[test]
fn strategies_match_kube_apiserver() {
    let mut agreement = Agreement::of("strategies");
    for case in cases("rules/strategies.jsonl") {
        let (id, verb) = (text(&case, "id"), text(&case, "verb"));
        let mut ours = given(&case, "new");
        if verb == "create" {
            strategy::prepare_create(id, &mut ours, NOW);
        } else {
            let old = given(&case, "old");
            match verb {
                "update" => strategy::prepare_update(id, &old, &mut ours, NOW),
                _ => strategy::prepare_status_update(id, &old, &mut ours, NOW),
            }
            // Metadata changes that every update makes, whatever the kind.
            if let Some(time) = old.pointer("/metadata/deletionTimestamp") {
                ours["metadata"]["deletionTimestamp"] = time.clone();
            }
        }
        defaulting::fill(type_of(&case), &mut ours);
        let mut theirs = given(&case, "after");
        ours = form::form(type_of(&case), ours).unwrap().object;
        [&mut ours, &mut theirs].into_iter().for_each(|object| forget_dropped(id, object));
        agreement.count(&format!("{id} {verb}"), same(&ours, &theirs));
    }
    let sorts = agreement.conclude();
    for verb in [" create", " update"] {
        assert_complete(&sorts.iter().filter_map(|sort| sort.strip_suffix(verb)).map(str::to_owned).collect());
    }
}

#[test]
fn reset_fields_match_kube_apiserver() {
    let mut agreement = Agreement::of("reset fields");
    for case in cases("rules/reset.jsonl") {
        let id = text(&case, "id");
        let theirs = |member: &str| -> BTreeSet<&str> {
            case[member].as_array().unwrap().iter().filter_map(Value::as_str).collect()
        };
        let ours = |paths: &[&'static str]| -> BTreeSet<&str> { paths.iter().copied().collect() };
        let main = (ours(strategy::reset_fields(id)), theirs("main"));
        let status = (ours(strategy::reset_status_fields(id).unwrap_or_default()), theirs("status"));
        let is_same = main.0 == main.1 && status.0 == status.1;
        agreement.count(id, is_same.then_some(()).ok_or_else(|| format!("{main:?} {status:?}")));
    }
    assert_complete(&agreement.conclude());
}
