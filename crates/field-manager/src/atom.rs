//! How a value is handled: its type decides, and the value itself where the type leaves it open.

use serde_json::{Map, Value};

use super::schema::{FieldSchema, Member, Scalar, Shape};

/// How a value is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Atom {
    /// As one of these scalars.
    Scalar(Scalar),
    /// As a list that is owned as a whole.
    AtomicList,
    /// As a list whose items are owned one by one.
    OpenList,
    /// As a map that is owned as a whole.
    AtomicMap,
    /// As a map whose members are owned one by one.
    OpenMap,
}

/// How `value` is handled where `schema` is its type.
///
/// Where anything may stand, null is handled as a map.
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

/// The type of a member. Where nothing is known of a place, nothing is known of what is below it.
pub(super) fn member<'s, S: FieldSchema<'s>>(schema: S, name: &str) -> Option<Member<S>> {
    match schema.shape() {
        Shape::Deduced | Shape::Opaque => Some(Member::Entry(schema)),
        _ => schema.member(name),
    }
}

/// The members of a map; none where it is null, missing or something else.
pub(super) fn members(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object).filter(|members| !members.is_empty())
}

/// The items of a list; none where it is null, missing or something else.
pub(super) fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
