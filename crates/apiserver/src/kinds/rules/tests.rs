//! Compares the rules with those of kube-apiserver's libraries.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

mod dropped;
mod hostile;
mod refusals;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::defaults::fill_defaults;
use super::strategy;
use crate::kinds::types::{self, Struct};
use crate::kinds::{Catalog, Resource, form};
use crate::truth::{Agreement, cases, same};
use dropped::forget_dropped;

/// Kinds whose metadata is not changed by a status write in kube-apiserver.
const OTHER_STATUS: [&str; 4] = [
    "apiservices.apiregistration.k8s.io",
    "csinodes.storage.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "volumeattachments.storage.k8s.io",
];

fn text<'c>(case: &'c Value, member: &str) -> &'c str {
    case[member].as_str().unwrap()
}

/// Returns the type of the objects of a case.
fn type_of(case: &Value) -> &'static Struct {
    types::kind(text(case, "apiVersion"), text(case, "kind")).unwrap()
}

/// Returns the cases of a file about kinds that this server has, each with its kind.
fn cases_of(file: &str) -> impl Iterator<Item = (Value, Arc<Resource>)> {
    let catalog = Catalog::built_in();
    cases(file).filter_map(move |case| {
        let resource = catalog.named(text(&case, "id"))?.clone();
        Some((case, resource))
    })
}

/// Returns an object of a case, as received.
fn given(case: &Value, member: &str) -> Value {
    form::form(type_of(case), case[member].clone()).unwrap().object
}

/// Compares an object with one of a case, both in the server's form.
fn check(case: &Value, ours: Value, theirs: &str) -> Result<(), String> {
    let (mut ours, mut theirs) = (form::form(type_of(case), ours)?.object, given(case, theirs));
    [&mut ours, &mut theirs].into_iter().for_each(|object| forget_dropped(text(case, "id"), object));
    same(&ours, &theirs)
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
    for (case, _) in cases_of("rules/defaults.jsonl") {
        let mut ours = given(&case, "before");
        fill_defaults(type_of(&case), &mut ours);
        agreement.count(text(&case, "id"), check(&case, ours, "after"));
    }
    assert_complete(&agreement.conclude());
}

#[test]
fn strategies_match_kube_apiserver() {
    let mut agreement = Agreement::of("strategies");
    for (case, resource) in cases_of("rules/strategies.jsonl") {
        let (id, verb) = (text(&case, "id"), text(&case, "verb"));
        let mut ours = given(&case, "new");
        if verb == "create" {
            strategy::prepare_create(&resource, &mut ours);
        } else {
            let old = given(&case, "old");
            match verb {
                "update" => strategy::prepare_update(&resource, &old, &mut ours),
                _ => strategy::prepare_status_update(&resource, &old, &mut ours),
            }
            // Metadata changes that every update makes, whatever the kind.
            if let Some(time) = old.pointer("/metadata/deletionTimestamp") {
                ours["metadata"]["deletionTimestamp"] = time.clone();
            }
        }
        fill_defaults(type_of(&case), &mut ours);
        if verb != "status" || !OTHER_STATUS.contains(&id) {
            agreement.count(&format!("{id} {verb}"), check(&case, ours, "after"));
        }
    }
    let sorts = agreement.conclude();
    for verb in [" create", " update"] {
        assert_complete(&sorts.iter().filter_map(|sort| sort.strip_suffix(verb)).map(str::to_owned).collect());
    }
}

#[test]
fn reset_fields_match_kube_apiserver() {
    let mut agreement = Agreement::of("reset fields");
    for (case, resource) in cases_of("rules/reset.jsonl") {
        let theirs = |member: &str| -> BTreeSet<&str> {
            case[member].as_array().unwrap().iter().filter_map(Value::as_str).collect()
        };
        let ours = |paths: &[&'static str]| -> BTreeSet<&str> { paths.iter().copied().collect() };
        let main = (ours(strategy::reset_fields(&resource)), theirs("main"));
        let status = (ours(strategy::reset_status_fields(&resource)), theirs("status"));
        let is_same = main.0 == main.1 && status.0 == status.1 || OTHER_STATUS.contains(&resource.id.as_str());
        agreement.count(&resource.id, is_same.then_some(()).ok_or_else(|| format!("{main:?} {status:?}")));
    }
    assert_complete(&agreement.conclude());
}
