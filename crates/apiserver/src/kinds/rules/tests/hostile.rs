//! Values of the wrong type are answered without a panic.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{cases_of, type_of};
use crate::kinds::rules::defaults::fill_defaults;
use crate::kinds::rules::service::{ServicePool, allocate};
use crate::kinds::rules::strategy;
use crate::kinds::rules::validation::{validate_create, validate_subresource_update, validate_update};

/// Puts a random value into a random place.
fn spoil(value: &mut Value, random: &mut u64) {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let number = usize::try_from(*random >> 33).unwrap();
    let inner = match value {
        Value::Object(map) if !map.is_empty() => map.values_mut().nth(number / 16 % 97 % 7),
        Value::Array(list) if !list.is_empty() => list.get_mut(number / 16 % 3),
        _ => None,
    };
    match inner {
        Some(inner) if !number.is_multiple_of(5) => spoil(inner, random),
        _ => *value = odd(number / 16),
    }
}

fn odd(choice: usize) -> Value {
    match choice % 10 {
        0 => json!(null),
        1 => json!(-1),
        2 => json!(""),
        3 => json!("x"),
        4 => json!([]),
        5 => json!([{}, 1]),
        6 => json!({}),
        7 => json!({"a": 1}),
        8 => json!(true),
        _ => json!(1e300),
    }
}

#[test]
fn values_of_wrong_types_do_not_panic() {
    let mut random = 1;
    for (case, resource) in cases_of("rules/strategies.jsonl") {
        let (mut new, mut old) = (case["new"].clone(), case.get("old").unwrap_or(&case["after"]).clone());
        for round in 0..8 {
            spoil(&mut new, &mut random);
            spoil(&mut old, &mut random);
            for prepare in [strategy::prepare_update, strategy::prepare_status_update] {
                let mut new = new.clone();
                prepare(&resource, &old, &mut new);
                validate_update(&resource.id, &old, &new);
            }
            let mut made = new.clone();
            strategy::prepare_create(&resource, &mut made);
            validate_create(&resource.id, &made);
            strategy::prepare_finalize(&old, &mut new.clone());
            strategy::prepare_approval(&old, &mut new.clone(), "");
            strategy::prepare_ephemeral_containers(&old, &mut new.clone());
            for part in ["approval", "ephemeralcontainers"] {
                validate_subresource_update(&resource.id, part, &old, &new);
            }
            let pool = || ServicePool { addresses: BTreeSet::new(), ports: BTreeSet::new(), draw: &|_| 0 };
            _ = allocate(None, &mut new.clone(), &mut pool());
            _ = allocate(Some(&old), &mut new.clone(), &mut pool());
            fill_defaults(type_of(&case), &mut if round % 2 == 0 { new.clone() } else { old.clone() });
        }
    }
}
