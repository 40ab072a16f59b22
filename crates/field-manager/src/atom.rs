//! How a value is treated: its type decides, or the value itself if the type leaves it open.

use serde_json::{Map, Value};

use super::schema::{FieldSchema, Member, Scalar, Shape};

/// How a value is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Atom {
    /// As one of these scalars.
    Scalar(Scalar),
    /// As a list that is owned whole.
    AtomicList,
    /// As a list whose items are owned one by one.
    OpenList,
    /// As a map that is owned whole.
    AtomicMap,
    /// As a map whose members are owned one by one.
    OpenMap,
}

/// Returns how `value` of the type `schema` is treated.
///
/// If any type is allowed, null is treated as a map.
pub(super) fn atom<'s, S: FieldSchema<'s>>(schema: S, value: &Value) -> Atom {
    let shape = schema.shape();
    match (shape, value) {
        (Shape::Scalar(scalar), _) => Atom::Scalar(scalar),
        (Shape::AtomicList, _) => Atom::AtomicList,
        (Shape::SetList | Shape::MapList, _) => Atom::OpenList,
        (Shape::AtomicMap, _) => Atom::AtomicMap,
        (Shape::Map, _) => Atom::OpenMap,
        (Shape::Deduced | Shape::Opaque, Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            Atom::Scalar(Scalar::Any)
        }
        (Shape::Deduced | Shape::Opaque, Value::Array(_)) => Atom::AtomicList,
        (Shape::Deduced, Value::Object(_) | Value::Null) => Atom::OpenMap,
        (Shape::Opaque, Value::Object(_) | Value::Null) => Atom::AtomicMap,
    }
}

/// Returns the type of a member. Below an unknown type every type is unknown.
pub(super) fn member<'s, S: FieldSchema<'s>>(schema: S, name: &str) -> Option<Member<S>> {
    match schema.shape() {
        Shape::Deduced | Shape::Opaque => Some(Member::Entry(schema)),
        _ => schema.member(name),
    }
}

/// Returns the members of a map, or `None` for any other value.
pub(super) fn members(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object).filter(|members| !members.is_empty())
}

/// Returns the items of a list; none for any other value.
pub(super) fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the type of a value, for messages and comparisons.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "map",
    }
}
