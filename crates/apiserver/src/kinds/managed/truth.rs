//! Compares updates and applies with Kubernetes' own field manager, case by case.

use std::collections::BTreeMap;

use kube_field_manager::{
    ApplyError, FieldFilter, FieldPattern, FieldSchema, FieldSet, Force, PathElement, PatternStep, Write, apply, update,
};
use serde_json::{Value, json};

use super::built_in;
use super::described::Described;
use crate::kinds::form;
use crate::kinds::schema::TypePlace;
use crate::truth::{Agreement, cases, same};

fn filter(name: &str) -> FieldFilter {
    let prefix = |names: &[&str]| {
        let step = |name: &&str| match *name {
            "*" => PatternStep::Any,
            name => PatternStep::Exactly(PathElement::field(name)),
        };
        FieldPattern::prefix(&names.iter().map(step).collect::<Vec<_>>())
    };
    let except = |names: &[&str]| FieldFilter::Except(FieldSet::of_fields(names.chunks(1)));
    match name {
        "status" => except(&["status"]),
        "spec" => except(&["spec", "metadata"]),
        "pattern" => FieldFilter::Only(
            prefix(&["spec", "containers", "*", "resources"])
                .or(prefix(&["spec", "entries", "*", "value"]))
                .or(prefix(&["metadata", "labels"])),
        ),
        _ => FieldFilter::Everything,
    }
}

/// Returns the types that were invented for these tests, by kind.
fn made_up() -> BTreeMap<String, Value> {
    cases("fields/types.jsonl").map(|types| (types["kind"].as_str().unwrap().to_owned(), types)).collect()
}

/// Returns the cases of a file, but for those in which kube-apiserver merges the oldest of more than ten entries. Go
/// escapes some characters of JSON in the names of fields; here they stay.
fn comparable(file: &str) -> impl Iterator<Item = Value> {
    let is_update = |entry: &&Value| entry["operation"] == "Update";
    let is_full = move |case: &Value| {
        let entries = case["result"]["metadata"]["managedFields"].as_array();
        entries.is_some_and(|entries| entries.iter().filter(is_update).count() >= 10)
    };
    let unescaped = |case: Value| {
        let escapes = [(r"\\u003c", "<"), (r"\\u003e", ">"), (r"\\u0026", "&")];
        let text = escapes.iter().fold(case.to_string(), |text, (escaped, plain)| text.replace(escaped, plain));
        serde_json::from_str(&text).unwrap()
    };
    cases(file).filter(move |case| !is_full(case)).map(unescaped)
}

/// Repeats a write to an object without a Go type.
fn check_write(made_up: &BTreeMap<String, Value>, case: &Value) -> Result<(), String> {
    let kind = case["kind"].as_str().unwrap();
    let empty = json!({"apiVersion": case["version"], "kind": case["objectKind"]});
    let ours = match made_up.get(kind) {
        Some(types) => repeated(Described::root(types), &empty, case),
        None => repeated(TypePlace::root(&built_in(kind)), &empty, case),
    };
    match ours {
        Ok(object) => same(&object, &case["result"]),
        Err(error) => same_error(&error, case),
    }
}

/// Repeats a write to an object of a Go type. The result is in the server's form.
fn check_struct(case: &Value) -> Result<(), String> {
    let resource = built_in(case["kind"].as_str().unwrap());
    let of = resource.of.unwrap();
    let named = |mut object: Value| {
        object["apiVersion"] = case["version"].clone();
        object["kind"] = case["objectKind"].clone();
        object
    };
    match repeated(TypePlace::root(&resource), &named(form::zero_of(of)), case) {
        Ok(object) => same(&named(form::form(of, object)?.object), &case["result"]),
        Err(error) => same_error(&error, case),
    }
}

/// Performs the write of a case.
fn repeated<'s>(schema: impl FieldSchema<'s>, empty: &Value, case: &Value) -> Result<Value, ApplyError> {
    let text = |name: &str| case[name].as_str().unwrap();
    let request = Write {
        schema,
        api_version: text("version"),
        kind: text("objectKind"),
        subresource: text("subresource"),
        manager: text("manager"),
        filter: &filter(text("filter")),
        now: text("now"),
    };
    let (live, mut object) = (&case["live"], case["object"].clone());
    if text("op") == "update" {
        update(&request, live, &mut object);
        return Ok(object);
    }
    let force = if case["force"] == true { Force::Yes } else { Force::No };
    apply(&request, empty, live, &object, force)
}

fn same_error(error: &ApplyError, case: &Value) -> Result<(), String> {
    let code = match error {
        ApplyError::BadRequest(_) => 400,
        ApplyError::Conflict(_) => 409,
        ApplyError::Internal(_) => 500,
    };
    if code != case["code"] {
        return Err(format!("\n    ours   {code} {error}\n    theirs {} {}", case["code"], case["error"]));
    }
    let ApplyError::Conflict(conflicts) = error else { return Ok(()) };
    let mut ours: Vec<_> =
        conflicts.causes().into_iter().map(|cause| format!("{} {}", cause.field, cause.message)).collect();
    let theirs = case["causes"].as_array().unwrap().iter();
    let mut theirs: Vec<_> =
        theirs.map(|c| format!("{} {}", c["field"].as_str().unwrap(), c["message"].as_str().unwrap())).collect();
    ours.sort();
    theirs.sort();
    if ours == theirs { Ok(()) } else { Err(format!("causes {ours:?} not {theirs:?}")) }
}

fn sort(case: &Value) -> String {
    format!("{} {}", case["kind"].as_str().unwrap(), case["op"].as_str().unwrap())
}

#[test]
fn updates_and_applies_match_the_go_field_manager() {
    let made_up = made_up();
    let mut agreement = Agreement::of("writes");
    for case in comparable("fields/writes.jsonl") {
        agreement.count(&sort(&case), check_write(&made_up, &case));
    }
    assert_eq!(agreement.conclude().len(), 12);
}

#[test]
fn updates_and_applies_to_structs_match_the_go_field_manager() {
    let mut agreement = Agreement::of("writes to structs");
    for case in comparable("fields/structs.jsonl") {
        agreement.count(&sort(&case), check_struct(&case));
    }
    assert_eq!(agreement.conclude().len(), 8);
}
