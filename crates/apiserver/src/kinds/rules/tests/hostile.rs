//! Values of the wrong type are answered without a panic.

use serde_json::{Value, json};

use super::{NOW, text, type_of};
use crate::kinds::defaulting;
use crate::kinds::rules::defaults::default_of;
use crate::kinds::rules::immutable::{validate_create, validate_update};
use crate::kinds::rules::strategy::{self, service};
use crate::kinds::types;
use crate::truth::cases;

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

/// A pool that has no addresses, and always the same port.
struct Odd;

impl service::Pool for Odd {
    fn next_address(&mut self) -> Option<String> {
        None
    }
    fn take_address(&mut self, _: &str) -> Result<(), String> {
        Ok(())
    }
    fn next_port(&mut self) -> Option<u16> {
        Some(30000)
    }
    fn take_port(&mut self, _: i64) -> Result<(), String> {
        Err("no".into())
    }
}

#[test]
fn values_of_wrong_types_do_not_panic() {
    let defaults: Vec<_> = types::all().filter_map(|of| default_of(of.name)).collect();
    let mut random = 1;
    for case in cases("rules/strategies.jsonl") {
        let id = text(&case, "id");
        let (mut new, mut old) = (case["new"].clone(), case.get("old").unwrap_or(&case["after"]).clone());
        for round in 0..8 {
            spoil(&mut new, &mut random);
            spoil(&mut old, &mut random);
            for prepare in [strategy::prepare_update, strategy::prepare_status_update] {
                let mut new = new.clone();
                prepare(id, &old, &mut new, NOW);
                validate_update(id, &old, &new);
            }
            let mut made = new.clone();
            strategy::prepare_create(id, &mut made, NOW);
            validate_create(id, &made);
            strategy::prepare_finalize(&old, &mut new.clone());
            _ = service::allocate_create(&mut new.clone(), &mut Odd);
            _ = service::allocate_update(&old, &mut new.clone(), &mut Odd);
            service::held(&new);
            if let Value::Object(members) = &mut new.clone() {
                defaults[(random >> 33) as usize % defaults.len()](members);
            }
            defaulting::fill(type_of(&case), &mut if round % 2 == 0 { new.clone() } else { old.clone() });
        }
    }
}
