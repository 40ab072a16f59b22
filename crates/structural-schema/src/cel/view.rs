//! The object, viewed through its schema.

use serde_json::Value;
use std::rc::Rc;

use super::super::duration::{self, Timestamp};
use super::super::golang::{self, Num};
use super::super::names;
use super::super::node::{NodeKind, SchemaNode};
use super::meter::{Fail, Meter};
use super::types;
use super::value::{CelText, MapKey, ObjectMembers, Val};

/// Returns a value of the object for an expression.
pub(crate) fn view<'v>(
    value: &'v Value,
    node: &'v SchemaNode,
    is_resource: bool,
    meter: &mut Meter,
) -> Result<Val<'v>, Fail> {
    if value.is_null() {
        return if node.nullable {
            Ok(Val::Null)
        } else {
            Err(Fail::error("invalid data, got null for schema with nullable=false"))
        };
    }
    if node.int_or_string {
        return match value {
            Value::String(text) => Ok(Val::String(CelText::Borrowed(text))),
            Value::Number(number) if number.is_i64() => Ok(Val::Int(number.as_i64().unwrap_or(0))),
            _ => Err(Fail::error("invalid data, expected XIntOrString value to be either a string or integer")),
        };
    }
    match (&node.kind, value) {
        (NodeKind::Object, Value::Object(map)) => Ok(Val::Members(ObjectMembers { map, node, is_resource })),
        (NodeKind::Array, Value::Array(items)) => Ok(Val::Items(items, node)),
        (NodeKind::String, Value::String(text)) => formatted(text, &node.checks.format, meter),
        (NodeKind::Boolean, Value::Bool(bool)) => Ok(Val::Bool(*bool)),
        (NodeKind::Number, Value::Number(number)) => Ok(Val::Double(golang::number(number).as_float())),
        (NodeKind::Integer, Value::Number(number)) => match golang::number(number) {
            Num::Int(int) => Ok(Val::Int(int)),
            Num::Float(_) => Err(Fail::error("invalid data, expected int, got float64")),
        },
        (NodeKind::Unset, value) if node.preserves => Ok(Val::Raw(value)),
        (kind, value) => Err(Fail::error(format!("invalid data, expected {}", expected(kind, value)))),
    }
}

/// Returns a value that has no schema for an expression.
pub(crate) fn untyped(value: &Value) -> Val<'_> {
    match value {
        Value::Null => Val::Null,
        Value::Bool(bool) => Val::Bool(*bool),
        Value::Number(number) => match golang::number(number) {
            Num::Int(int) => Val::Int(int),
            Num::Float(float) => Val::Double(float),
        },
        Value::String(text) => Val::String(CelText::Borrowed(text)),
        Value::Array(items) => Val::list(items.iter().map(untyped).collect()),
        Value::Object(members) => {
            let entry = |(name, value): (&'_ String, _)| (MapKey::String(name.as_str().into()), untyped(value));
            Val::Map(Rc::new(members.iter().map(entry).collect()))
        }
    }
}

/// Returns the error of a value with another type than its schema.
fn expected(kind: &NodeKind, value: &Value) -> String {
    let wanted = match kind {
        NodeKind::Object => return "a map for the provided schema with type=object".to_owned(),
        NodeKind::Array => return "an array for the provided schema with type=array".to_owned(),
        NodeKind::Integer => "int",
        NodeKind::Number => "float",
        NodeKind::Boolean => "bool",
        _ => "string",
    };
    let found = match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
        Value::Number(number) => match golang::number(number) {
            Num::Int(_) => "int64",
            Num::Float(_) => "float64",
        },
    };
    format!("{wanted}, got {found}")
}

/// Parses a string with one of these formats, each time it is used.
fn formatted<'v>(text: &'v str, format: &str, meter: &mut Meter) -> Result<Val<'v>, Fail> {
    if matches!(format, "duration" | "date" | "date-time" | "byte") {
        meter.copy(text.len())?;
    }
    match format {
        "duration" => match duration::parse(text) {
            Ok(nanos) => Ok(Val::Duration(nanos)),
            Err(why) => Err(Fail::error(format!("Invalid duration {text}: {why}"))),
        },
        "date" => match duration::parse_date(text) {
            Some(seconds) => Ok(Val::Timestamp(Timestamp { seconds, nanos: 0 })),
            None => Err(Fail::error(format!("Invalid date formatted string {text}"))),
        },
        "date-time" => match Timestamp::parse(text) {
            Some(timestamp) => Ok(Val::Timestamp(timestamp)),
            None => Err(Fail::error(format!("Invalid date-time formatted string {text}"))),
        },
        "byte" => match decode_base64(text) {
            Some(bytes) => Ok(Val::Bytes(bytes.into())),
            None => Err(Fail::error(format!("Invalid byte formatted string {text}"))),
        },
        _ => Ok(Val::String(CelText::Borrowed(text))),
    }
}

/// Decodes base64 with the URL alphabet or the standard one.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(digits.len() * 3 / 4);
    let (mut bits, mut held) = (0_u32, 0);
    for byte in digits.bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'-' | b'+' => 62,
            b'_' | b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(digit);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    Some(out)
}

impl<'v> ObjectMembers<'v> {
    /// Returns whether this is an object, whose names are escaped in expressions. Maps have any keys.
    pub(crate) fn is_object(self) -> bool {
        self.is_resource || !self.node.properties.is_empty()
    }

    pub(crate) fn schema(self, property: &str) -> Option<&'v SchemaNode> {
        if self.is_object() {
            types::member(self.node, self.is_resource, property)
        } else {
            self.node.additional.schema()
        }
    }

    /// Returns a member by its name in expressions.
    pub(crate) fn find(self, name: &str, meter: &mut Meter) -> Option<Result<Val<'v>, Fail>> {
        let unescaped;
        let property = if self.is_object() {
            unescaped = names::unescape(name)?;
            &unescaped
        } else {
            name
        };
        let value = self.map.get(property)?;
        if self.is_object() && value.is_null() {
            return None;
        }
        let node = self.schema(property)?;
        Some(view(value, node, node.embedded, meter))
    }

    /// Returns the names of all members that are visible in expressions.
    pub(crate) fn names(self) -> impl Iterator<Item = String> + 'v {
        self.map.keys().filter(move |name| self.schema(name).is_some()).map(move |name| {
            let escaped = if self.is_object() { names::escape(name) } else { None };
            escaped.unwrap_or_else(|| name.clone())
        })
    }
}

/// Returns an element of a list.
pub(crate) fn element<'v>(
    items: &'v [Value],
    node: &'v SchemaNode,
    index: usize,
    meter: &mut Meter,
) -> Option<Result<Val<'v>, Fail>> {
    let item = items.get(index)?;
    let Some(inner) = node.items.as_deref() else {
        return Some(Err(Fail::error("invalid array type, expected Items with a non-empty Schema")));
    };
    Some(view(item, inner, inner.embedded, meter))
}

impl<'v> Val<'v> {
    /// Returns how many elements a list has.
    pub(crate) fn list_length(&self) -> Option<usize> {
        match self {
            Self::List(items) => Some(items.len()),
            Self::Items(items, _) => Some(items.len()),
            _ => None,
        }
    }

    pub(crate) fn list_item(&self, index: usize, meter: &mut Meter) -> Option<Result<Val<'v>, Fail>> {
        match self {
            Self::List(items) => items.get(index).cloned().map(Ok),
            Self::Items(items, node) => element(items, node, index, meter),
            _ => None,
        }
    }

    /// Returns all elements of a list.
    pub(crate) fn list_items(&self, meter: &mut Meter) -> Result<Vec<Val<'v>>, Fail> {
        meter.gather(self.list_length().unwrap_or(0))?;
        match self {
            Self::List(items) => Ok(items.as_ref().clone()),
            Self::Items(items, node) => {
                (0..items.len()).filter_map(|index| element(items, node, index, meter)).collect()
            }
            _ => Err(Fail::no_overload()),
        }
    }

    /// Returns a member of a map.
    pub(crate) fn map_find(&self, key: &Val<'v>, meter: &mut Meter) -> Result<Option<Val<'v>>, Fail> {
        if let Self::String(name) = key {
            meter.copy(name.len())?;
        }
        match (self, key) {
            (Self::Members(members), Self::String(name)) => members.find(name, meter).transpose(),
            (Self::Members(_), _) => Err(Fail::no_overload()),
            (Self::Map(map), key) => Ok(map_get(map, key)),
            _ => Err(Fail::no_overload()),
        }
    }

    /// Returns the keys of a map.
    pub(crate) fn map_keys(&self, meter: &mut Meter) -> Result<Option<Vec<Val<'v>>>, Fail> {
        match self {
            Self::Members(members) => {
                meter.gather(members.map.len())?;
                let mut keys = Vec::new();
                for name in members.names() {
                    meter.copy(name.len())?;
                    keys.push(Val::text(name));
                }
                Ok(Some(keys))
            }
            Self::Map(map) => {
                meter.gather(map.len())?;
                Ok(Some(map.keys().map(key_value).collect()))
            }
            _ => Ok(None),
        }
    }
}

/// Looks up a key. Equal numbers of different kinds are the same key.
fn map_get<'v>(map: &std::collections::BTreeMap<MapKey, Val<'v>>, key: &Val<'v>) -> Option<Val<'v>> {
    let keys: [Option<MapKey>; 2] = match key {
        Val::Bool(bool) => [Some(MapKey::Bool(*bool)), None],
        Val::String(text) => [Some(MapKey::String(text.shared())), None],
        Val::Int(int) => [Some(MapKey::Int(*int)), u64::try_from(*int).ok().map(MapKey::Uint)],
        Val::Uint(uint) => [Some(MapKey::Uint(*uint)), i64::try_from(*uint).ok().map(MapKey::Int)],
        Val::Double(double) if double.fract() == 0.0 && double.abs() < 9e15 => {
            [Some(MapKey::Int(*double as i64)), (*double >= 0.0).then_some(MapKey::Uint(*double as u64))]
        }
        _ => [None, None],
    };
    keys.into_iter().flatten().find_map(|key| map.get(&key).cloned())
}

pub(crate) fn key_value<'v>(key: &MapKey) -> Val<'v> {
    match key {
        MapKey::Bool(bool) => Val::Bool(*bool),
        MapKey::Int(int) => Val::Int(*int),
        MapKey::Uint(uint) => Val::Uint(*uint),
        MapKey::String(text) => Val::String(CelText::Made(text.clone())),
    }
}

/// Returns a value as a map key.
pub(crate) fn as_key(value: &Val<'_>, meter: &mut Meter) -> Result<MapKey, Fail> {
    Ok(match value {
        Val::Bool(bool) => MapKey::Bool(*bool),
        Val::Int(int) => MapKey::Int(*int),
        Val::Uint(uint) => MapKey::Uint(*uint),
        Val::String(text) => {
            meter.copy(text.len())?;
            MapKey::String(text.shared())
        }
        other => return Err(Fail::error(format!("unsupported key type: {}", other.type_name()))),
    })
}
