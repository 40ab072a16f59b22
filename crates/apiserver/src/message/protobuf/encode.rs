//! Encodes JSON values as messages. As in Go's encoder, values without a pointer are always written, and pointers only
//! if they are set.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value};

use crate::kinds::moment;
use crate::kinds::types::{Member, Scalar, Struct, Type, named};

/// Encodes an object of this type as a message.
pub(crate) fn encode(of: &'static Struct, object: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match object.as_object() {
        Some(members) => put_members(of, members, &mut out),
        None => put_members(of, &Map::new(), &mut out),
    }
    out
}

/// Writes a field with a string.
pub(crate) fn put_text(number: u32, text: &str, out: &mut Vec<u8>) {
    put_bytes(number, text.as_bytes(), out);
}

/// Writes a field with bytes or a message.
pub(crate) fn put_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(u64::from(number) << 3 | 2, out);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn put_number(number: u32, value: i64, out: &mut Vec<u8>) {
    put_varint(u64::from(number) << 3, out);
    put_varint(value.cast_unsigned(), out);
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_members(of: &'static Struct, members: &Map<String, Value>, out: &mut Vec<u8>) {
    for member in of.members.iter().filter(|member| member.number > 0) {
        match member.of.as_struct() {
            Some(inner) if member.name.is_empty() => {
                let mut message = Vec::new();
                put_members(inner, members, &mut message);
                put_bytes(member.number, &message, out);
            }
            _ => put_member(member, members.get(member.name).unwrap_or(&Value::Null), out),
        }
    }
}

fn put_member(member: &'static Member, value: &Value, out: &mut Vec<u8>) {
    let number = member.number;
    match &member.of {
        Type::List { items, wrapped: false } => put_items(number, items, value, out),
        Type::List { .. } if value.is_null() && member.pointer => {}
        Type::Map(values) => {
            for (key, value) in value.as_object().into_iter().flatten() {
                let mut entry = Vec::new();
                put_text(1, key, &mut entry);
                put_value(2, values, value, &mut entry);
                put_bytes(number, &entry, out);
            }
        }
        _ if value.is_null() && member.pointer => {}
        Type::Scalar(Scalar::Bytes, _) if value.is_null() => {}
        of => put_value(number, of, value, out),
    }
}

fn put_items(number: u32, items: &'static Type, value: &Value, out: &mut Vec<u8>) {
    for item in value.as_array().into_iter().flatten() {
        put_value(number, items, item, out);
    }
}

fn put_value(number: u32, of: &'static Type, value: &Value, out: &mut Vec<u8>) {
    match of {
        Type::Struct(_) => {
            let message = of.as_struct().map(|of| encode(of, value)).unwrap_or_default();
            put_bytes(number, &message, out);
        }
        Type::List { items, .. } => {
            let mut message = Vec::new();
            put_items(1, items, value, &mut message);
            put_bytes(number, &message, out);
        }
        // There are no maps of maps.
        Type::Map(_) => {}
        Type::Scalar(scalar, _) => put_scalar(number, *scalar, value, out),
    }
}

fn put_scalar(number: u32, scalar: Scalar, value: &Value, out: &mut Vec<u8>) {
    let text = value.as_str().unwrap_or_default();
    match scalar {
        Scalar::Text => put_text(number, text, out),
        Scalar::Bool => put_number(number, i64::from(value == &Value::Bool(true)), out),
        Scalar::Int32 | Scalar::Int64 => put_number(number, value.as_i64().unwrap_or(0), out),
        Scalar::Float => {
            put_varint(u64::from(number) << 3 | 1, out);
            out.extend_from_slice(&value.as_f64().unwrap_or(0.0).to_le_bytes());
        }
        Scalar::Bytes => put_bytes(number, &BASE64_STANDARD.decode(text).unwrap_or_default(), out),
        _ => put_bytes(number, &message_of(scalar, value, text), out),
    }
}

/// Encodes a scalar that is a message in protobuf and not an object in JSON.
fn message_of(scalar: Scalar, value: &Value, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    match scalar {
        Scalar::Time | Scalar::MicroTime => {
            if let Some(at) = moment::parse(text) {
                // Whole seconds are rounded down, also for times before 1970.
                let (nanoseconds, second) = (at.as_nanosecond(), 1_000_000_000);
                let fraction = if scalar == Scalar::Time { 0 } else { nanoseconds.rem_euclid(second) as i64 };
                put_number(1, nanoseconds.div_euclid(second) as i64, &mut out);
                put_number(2, fraction, &mut out);
            }
        }
        Scalar::Duration => put_number(1, moment::nanoseconds(text).unwrap_or(0), &mut out),
        Scalar::Quantity => put_text(1, if text.is_empty() { "0" } else { text }, &mut out),
        Scalar::IntOrString => {
            put_number(1, i64::from(value.is_string()), &mut out);
            put_number(2, value.as_i64().unwrap_or(0), &mut out);
            put_text(3, text, &mut out);
        }
        Scalar::SchemaOrArray | Scalar::SchemaOrBool | Scalar::SchemaOrStrings => put_schema(scalar, value, &mut out),
        _ if value.is_null() => {}
        _ => put_text(1, &value.to_string(), &mut out),
    }
    out
}

fn put_schema(scalar: Scalar, value: &Value, out: &mut Vec<u8>) {
    let Some(schema) = named("apiextensions/v1.JSONSchemaProps") else { return };
    let schema_number = if scalar == Scalar::SchemaOrBool { 2 } else { 1 };
    if scalar == Scalar::SchemaOrBool {
        put_number(1, i64::from(value.is_object() || value == &Value::Bool(true)), out);
    }
    match value {
        Value::Object(_) => put_bytes(schema_number, &encode(schema, value), out),
        Value::Array(items) => {
            for item in items {
                match item.as_str() {
                    Some(text) => put_text(2, text, out),
                    None => put_bytes(2, &encode(schema, item), out),
                }
            }
        }
        _ => {}
    }
}
