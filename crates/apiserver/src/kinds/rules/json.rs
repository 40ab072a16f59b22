//! Access to JSON objects, where an absent member counts as Go's zero value.

use serde_json::{Map, Value};

/// The members of a JSON object.
pub(crate) type JsonObject = Map<String, Value>;

/// Returns a string member; empty if there is none.
pub(crate) fn text<'a>(object: &'a JsonObject, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a number member; zero if there is none.
pub(crate) fn number(object: &JsonObject, key: &str) -> i64 {
    object.get(key).and_then(Value::as_i64).unwrap_or_default()
}

/// Returns a member that is an object.
pub(crate) fn child<'a>(object: &'a JsonObject, key: &str) -> Option<&'a JsonObject> {
    object.get(key).and_then(Value::as_object)
}

/// Returns a member that is an object, mutably.
pub(crate) fn child_mut<'a>(object: &'a mut JsonObject, key: &str) -> Option<&'a mut JsonObject> {
    object.get_mut(key).and_then(Value::as_object_mut)
}

/// Returns a member that is an object, and creates it if it is missing.
pub(crate) fn open<'a>(object: &'a mut JsonObject, key: &str) -> &'a mut JsonObject {
    let slot = object.entry(key).or_insert_with(|| Value::Object(JsonObject::new()));
    if !slot.is_object() {
        *slot = Value::Object(JsonObject::new());
    }
    slot.as_object_mut().expect("an object since the lines above")
}

/// Returns the objects of a list member.
pub(crate) fn items<'a>(object: &'a JsonObject, key: &str) -> impl Iterator<Item = &'a JsonObject> {
    object.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

/// Returns the objects of a list member, mutably.
pub(crate) fn items_mut<'a>(object: &'a mut JsonObject, key: &str) -> impl Iterator<Item = &'a mut JsonObject> {
    object.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Returns the number of elements or members of a member.
pub(crate) fn length(object: &JsonObject, key: &str) -> usize {
    match object.get(key) {
        Some(Value::Array(elements)) => elements.len(),
        Some(Value::Object(members)) => members.len(),
        _ => 0,
    }
}

/// Returns whether Go omits the value: it is absent, zero, or empty.
pub(crate) fn is_zero(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Bool(truth)) => !truth,
        Some(Value::Number(number)) => number.as_f64() == Some(0.0),
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(elements)) => elements.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
    }
}

/// Sets a missing member that is a pointer in Go: a zero value stays.
pub(crate) fn fill(object: &mut JsonObject, key: &str, value: impl Into<Value>) {
    if !is_there(object, key) {
        object.insert(key.to_owned(), value.into());
    }
}

/// Sets a member that is missing or zero: a plain value in Go.
pub(crate) fn fill_zero(object: &mut JsonObject, key: &str, value: impl Into<Value>) {
    if is_zero(object.get(key)) {
        object.insert(key.to_owned(), value.into());
    }
}

/// Returns whether the member exists and is not null.
pub(crate) fn is_there(object: &JsonObject, key: &str) -> bool {
    object.get(key).is_some_and(|value| !value.is_null())
}

/// Copies a member from another object, or removes it if it is absent there.
pub(crate) fn copy(from: &JsonObject, into: &mut JsonObject, key: &str) {
    match from.get(key) {
        Some(value) => into.insert(key.to_owned(), value.clone()),
        None => into.remove(key),
    };
}

/// Returns the value at a dotted path.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, key| value.get(key))
}

/// Returns the object at a dotted path.
pub(crate) fn object_at<'a>(value: &'a Value, path: &str) -> Option<&'a JsonObject> {
    at(value, path).and_then(Value::as_object)
}

/// Returns the object at a path mutably, or `None` if it is missing.
pub(crate) fn object_at_mut<'a>(value: &'a mut Value, path: &str) -> Option<&'a mut JsonObject> {
    path.split('.').try_fold(value, |value, key| value.get_mut(key)).and_then(Value::as_object_mut)
}

/// Copies the value at a path from another object, without leaving empty parents behind.
pub(crate) fn copy_at(from: &Value, into: &mut Value, path: &str) {
    let (parents, last) = path.rsplit_once('.').unwrap_or(("", path));
    let Some(mut object) = into.as_object_mut() else { return };
    let wanted = at(from, path).cloned();
    for key in parents.split('.').filter(|key| !key.is_empty()) {
        if wanted.is_none() && !object.contains_key(key) {
            return;
        }
        object = open(object, key);
    }
    match wanted {
        Some(value) => object.insert(last.to_owned(), value),
        None => object.remove(last),
    };
}

/// Returns whether two values are equal. As in kube-apiserver, an empty list equals an absent one.
pub(crate) fn same(left: Option<&Value>, right: Option<&Value>) -> bool {
    let is_nothing = |value: Option<&Value>| match value {
        None | Some(Value::Null) => true,
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    };
    match (left, right) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            left.iter().all(|(name, value)| same(Some(value), right.get(name)))
                && right.iter().all(|(name, value)| left.contains_key(name) || is_nothing(Some(value)))
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(Some(left), Some(right)))
        }
        (left, right) => left == right || is_nothing(left) && is_nothing(right),
    }
}
