//! Fills in the defaults of a built-in object along its types: a parent before its members.

use serde_json::{Map, Value};

use super::rules::defaults::default_of;
use super::types::{Scalar, Struct, Type};

/// Fills in the defaults of an object of this type.
pub(crate) fn fill(of: &'static Struct, object: &mut Value) {
    // The only group whose objects get no defaults, not even rounded quantities.
    if let Value::Object(members) = object
        && !of.name.starts_with("node/")
    {
        fill_members(of, members);
    }
}

fn fill_members(of: &'static Struct, members: &mut Map<String, Value>) {
    if let Some(default) = default_of(of.name) {
        default(members);
    }
    for member in of.shown() {
        match (members.get_mut(member.name), member.of.as_struct()) {
            (Some(Value::Null) | None, Some(of)) if !member.pointer => {
                // Go embeds the member by value, so it always exists and gets its defaults.
                let mut made = Map::new();
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

fn fill_value(of: &'static Type, value: &mut Value) {
    match (of, value) {
        (Type::Struct(_), Value::Object(members)) => {
            if let Some(of) = of.as_struct() {
                fill_members(of, members);
            }
        }
        (Type::List { items, .. }, Value::Array(values)) if has_defaults(items) => {
            values.iter_mut().for_each(|value| fill_value(items, value));
        }
        (Type::Map(values), Value::Object(members)) => {
            if let (Type::Scalar(Scalar::Quantity, _), Some(default)) = (&**values, default_of("core/v1.ResourceList"))
            {
                default(members);
            }
            if has_defaults(values) {
                members.values_mut().for_each(|value| fill_value(values, value));
            }
        }
        _ => {}
    }
}

fn has_defaults(of: &Type) -> bool {
    !matches!(of, Type::Scalar(..))
}
