//! The defaults of built-in types.
//!
//! An object gets its defaults along its types, a parent before its members: a parent may create a member that has its
//! own defaults. A member that Go embeds by value is visited even if it is absent from the JSON, and is kept if it gets a
//! value.

mod computed;
mod constant;

use serde_json::Value;

use super::json::{JsonObject, fill, fill_zero, open};
use crate::kinds::types::{FieldType, ScalarType, Struct};

pub(crate) use computed::merge_string_data;
use computed::{computed, resource_list};
use constant::constant;

/// Fills in the defaults of an object of this type.
pub(crate) fn fill_defaults(of: &'static Struct, object: &mut Value) {
    // The only group whose objects get no defaults, not even rounded quantities.
    if let Value::Object(members) = object
        && !of.name.starts_with("node/")
    {
        fill_members(of, members);
    }
}

fn fill_members(of: &'static Struct, members: &mut JsonObject) {
    if let Some(defaults) = constant(of.name) {
        fill_constants(of, members, defaults);
    }
    if let Some(compute) = computed(of.name) {
        compute(members);
    }
    for member in of.shown() {
        match (members.get_mut(member.name), member.of.as_struct()) {
            (Some(Value::Null) | None, Some(of)) if !member.pointer => {
                let mut made = JsonObject::new();
                fill_members(of, &mut made);
                if !made.is_empty() {
                    members.insert(member.name.to_owned(), made.into());
                }
            }
            (Some(value), _) => fill_value(&member.of, value),
            (None, _) => {}
        }
    }
}

/// Sets the members that are missing. A plain value in Go is also missing if it is zero; a pointer is not.
fn fill_constants(of: &'static Struct, members: &mut JsonObject, defaults: &JsonObject) {
    for (name, default) in defaults {
        let Some(member) = of.member(name) else { continue };
        match (member.of.as_struct(), default.as_object()) {
            (Some(inner), Some(defaults)) if !member.pointer => fill_constants(inner, open(members, name), defaults),
            _ if member.pointer => fill(members, name, default.clone()),
            _ => fill_zero(members, name, default.clone()),
        }
    }
}

fn fill_value(of: &'static FieldType, value: &mut Value) {
    let has_defaults = |of: &FieldType| !matches!(of, FieldType::Scalar(..));
    match (of, value) {
        (FieldType::Struct(_), Value::Object(members)) => {
            if let Some(of) = of.as_struct() {
                fill_members(of, members);
            }
        }
        (FieldType::List { items, .. }, Value::Array(values)) if has_defaults(items) => {
            values.iter_mut().for_each(|value| fill_value(items, value));
        }
        (FieldType::Map(values), Value::Object(members)) => match &**values {
            FieldType::Scalar(ScalarType::Quantity) => resource_list(members),
            values if has_defaults(values) => members.values_mut().for_each(|value| fill_value(values, value)),
            _ => {}
        },
        _ => {}
    }
}
