//! The path elements of list items.

use serde_json::Value;

use super::path::PathElement;
use super::schema::{FieldSchema, Shape};

/// Returns the path element of an item in a list of this type.
///
/// # Errors
///
/// The item has no path element. The string says why.
pub(super) fn element<'s, S: FieldSchema<'s>>(list: S, item: &Value) -> Result<PathElement, String> {
    match list.shape() {
        Shape::MapList => keyed(list, item),
        _ => single(item),
    }
}

fn keyed<'s, S: FieldSchema<'s>>(list: S, item: &Value) -> Result<PathElement, String> {
    let members = match item {
        Value::Object(members) => members,
        Value::Null => return Err("associative list with keys may not have a null element".into()),
        _ => return Err("associative list with keys may not have non-map elements".into()),
    };
    let value_of = |key: &str| members.get(key).cloned().or_else(|| list.key_default(key));
    let keys: Vec<_> = list.keys().filter_map(|key| Some((key.to_owned(), value_of(key)?))).collect();
    if keys.is_empty() {
        let all = list.keys().collect::<Vec<_>>().join(", ");
        return Err(format!(
            "associative list with keys has an element that omits all key fields ({all}) \
             (and doesn't have default values for any key fields)"
        ));
    }
    Ok(PathElement::key(keys))
}

fn single(item: &Value) -> Result<PathElement, String> {
    match item {
        Value::Object(_) => Err("associative list without keys has an element that's a map type".into()),
        Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
        Value::Null => Err("associative list without keys has an element that's an explicit null".into()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(PathElement::Value(item.clone())),
    }
}
