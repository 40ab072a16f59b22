//! Objects, patches and types that do not match are refused or answered without a panic.

use kube_field_manager::{FieldFilter, FieldSchema, Force, Write, apply, strategic_merge_patch, update};
use serde_json::{Value, json};

use super::built_in;
use super::described::Described;
use crate::kinds::schema::TypePlace;
use crate::truth::cases;

/// Returns objects of the first cases of a file.
fn objects(file: &str, members: [&str; 2]) -> Vec<Value> {
    cases(file).take(300).flat_map(|case| members.map(|name| case[name].clone())).collect()
}

/// Replaces a part of the value with a part of another object.
fn broken(mut value: Value, other: &Value, choice: usize) -> Value {
    let place = match &mut value {
        Value::Object(members) if !members.is_empty() => {
            let count = members.len();
            members.values_mut().nth(choice % count)
        }
        Value::Array(items) if !items.is_empty() => {
            let count = items.len();
            items.get_mut(choice % count)
        }
        _ => None,
    };
    match place {
        Some(place) => {
            *place = broken(place.take(), other, choice / 3);
            value
        }
        None => other.as_object().and_then(|members| members.values().nth(choice % 2)).cloned().unwrap_or_default(),
    }
}

#[test]
fn mismatched_strategic_patches_do_not_panic() {
    let kinds = ["deployments.apps", "pods", "configmaps"].map(built_in);
    let objects = objects("fields/patches.jsonl", ["original", "patch"]);
    for (number, pair) in objects.windows(2).enumerate() {
        let damaged = broken(pair[1].clone(), &pair[0], number);
        for kind in &kinds {
            let _ = strategic_merge_patch(&pair[0], &damaged, TypePlace::root(kind));
            let _ = strategic_merge_patch(&damaged, &pair[0], TypePlace::root(kind));
        }
    }
}

/// Writes one object of a pair over the other, both intact and broken.
fn write<'s>(schema: impl FieldSchema<'s>, pair: &[Value], number: usize) {
    let damaged = broken(pair[1].clone(), &pair[0], number);
    let text = |name: &str| pair[1][name].as_str().unwrap_or_default();
    let request = Write {
        schema,
        api_version: text("apiVersion"),
        kind: text("kind"),
        subresource: "",
        manager: "kubectl",
        filter: &FieldFilter::Everything,
        now: "not a time",
    };
    let _ = apply(&request, &json!({}), &damaged, &pair[1], Force::Yes);
    let _ = apply(&request, &json!({}), &pair[0], &damaged, Force::No);
    update(&request, &damaged, &mut pair[1].clone());
    update(&request, &pair[0], &mut damaged.clone());
}

#[test]
fn mismatched_writes_do_not_panic() {
    let (made_up, deployments): (Vec<Value>, _) = (cases("fields/types.jsonl").collect(), built_in("deployments.apps"));
    let objects = objects("fields/writes.jsonl", ["live", "object"]);
    for (number, pair) in objects.windows(2).enumerate() {
        write(TypePlace::root(&deployments), pair, number);
        made_up.iter().for_each(|types| write(Described::root(types), pair, number));
    }
}
