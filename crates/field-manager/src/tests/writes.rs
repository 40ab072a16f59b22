//! Small hand-written writes.

use serde_json::{Value, json};

use super::described::Described;
use crate::apply::{ApplyError, Force, apply};
use crate::filter::FieldFilter;
use crate::manager::keep_times;
use crate::update::update;
use crate::write::Write;

fn document() -> Value {
    json!({"root": "thing", "types": {
        "thing": {"map": {"fields": {
            "apiVersion": {"type": "text"}, "kind": {"type": "text"}, "metadata": {"type": "meta"},
            "data": {"type": "texts"}, "set": {"type": "set"},
        }}},
        "meta": {"map": {"fields": {
            "name": {"type": "text"}, "uid": {"type": "text"}, "labels": {"type": "texts"},
            "managedFields": {"type": "list"},
        }}},
        "text": {"scalar": "string"},
        "texts": {"map": {"element": "text"}},
        "list": {"list": {"relation": "atomic", "items": "any"}},
        "set": {"list": {"relation": "associative", "items": "text"}},
        "any": {
            "scalar": "untyped",
            "list": {"relation": "atomic", "items": "any"},
            "map": {"relation": "atomic", "element": "any"},
        },
    }})
}

fn request<'r>(document: &'r Value, manager: &'r str, now: &'r str) -> Write<'r, Described<'r>> {
    Write {
        schema: Described::root(document),
        api_version: "v1",
        kind: "Thing",
        subresource: "",
        manager,
        filter: &FieldFilter::Everything,
        now,
    }
}

fn thing(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a"}, "data": data})
}

fn empty() -> Value {
    json!({"apiVersion": "v1", "kind": "Thing"})
}

#[test]
fn applying_the_same_again_changes_nothing() {
    let document = document();
    let patch = thing(json!({"x": "1"}));
    let first = apply(&request(&document, "m", "2024-01-01T00:00:00Z"), &empty(), &empty(), &patch, Force::No).unwrap();
    let again = apply(&request(&document, "m", "2024-01-01T00:00:09Z"), &empty(), &first, &patch, Force::No).unwrap();
    assert_eq!(first, again);
}

#[test]
fn a_conflict_names_the_owner_and_the_field() {
    let document = document();
    let mut live = thing(json!({"x": "1"}));
    update(&request(&document, "owner", "2024-01-01T00:00:00Z"), &empty(), &mut live);
    let patch = thing(json!({"x": "2"}));
    let request = request(&document, "m", "2024-01-01T00:00:01Z");
    let Err(ApplyError::Conflict(conflicts)) = apply(&request, &empty(), &live, &patch, Force::No) else {
        panic!("no conflict")
    };
    assert_eq!(conflicts.to_string(), "Apply failed with 1 conflict: conflict with \"owner\" using v1: .data.x");
    assert_eq!(
        conflicts.causes().first().map(|cause| cause.message.as_str()),
        Some("conflict with \"owner\" using v1")
    );
    let forced = apply(&request, &empty(), &live, &patch, Force::Yes).unwrap();
    assert_eq!(forced["data"], json!({"x": "2"}));
}

#[test]
fn times_are_kept_if_nothing_else_changed() {
    let document = document();
    let mut old = thing(json!({"x": "1"}));
    update(&request(&document, "m", "2024-01-01T00:00:00Z"), &empty(), &mut old);
    let mut new = old.clone();
    new["metadata"]["managedFields"][0]["time"] = json!("2025-01-01T00:00:00Z");
    keep_times(&old, &mut new);
    assert_eq!(new, old);
    new["metadata"]["managedFields"][0]["time"] = json!("2025-01-01T00:00:00Z");
    new["data"]["x"] = json!("2");
    keep_times(&old, &mut new);
    assert_eq!(new["metadata"]["managedFields"][0]["time"], "2025-01-01T00:00:00Z");
}

#[test]
fn wide_lists_are_processed_in_time() {
    let document = document();
    let list = |range: &mut dyn Iterator<Item = u32>| range.map(|n| Value::from(format!("{n:07}"))).collect::<Value>();
    let mut live = thing(json!({}));
    live["set"] = list(&mut (0..100_000).rev());
    update(&request(&document, "m", "2024-01-01T00:00:00Z"), &empty(), &mut live);
    let mut patch = thing(json!({}));
    patch["set"] = list(&mut (0..100_000).map(|n| n * 7 % 200_003));
    let request = request(&document, "n", "2024-01-01T00:00:00Z");
    let applied = apply(&request, &empty(), &live, &patch, Force::Yes).unwrap();
    assert!(applied["set"].as_array().unwrap().len() > 100_000);
}

#[test]
fn many_entries_are_processed_in_time() {
    let document = document();
    let entry = |n: u32| {
        json!({
            "manager": format!("m{n}"), "operation": if n.is_multiple_of(2) { "Update" } else { "Apply" },
            "apiVersion": if n < 10_000 { "v1".into() } else { format!("v{n}") }, "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {format!("f:{n}"): {}}}, "time": "2024-01-01T00:00:00Z",
        })
    };
    let members: serde_json::Map<_, _> = (0..20_000).map(|n| (n.to_string(), json!("1"))).collect();
    let live = thing(Value::Object(members));
    let mut new = live.clone();
    new["metadata"]["managedFields"] = (0..20_000).map(entry).collect();
    new["data"].as_object_mut().unwrap().values_mut().skip(10).for_each(|value| *value = json!("2"));
    update(&request(&document, "m", "2024-01-01T00:00:01Z"), &live, &mut new);
    let patch = thing(json!({"x": "1"}));
    apply(&request(&document, "m1", "2024-01-01T00:00:02Z"), &empty(), &new, &patch, Force::Yes).unwrap();
}
