//! Decodes messages to JSON values, in the server's form.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::kinds::types::{FieldType, ScalarType, Struct, StructMember, named};
use crate::kinds::{form, moment};

/// The bytes are not a message of this type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Broken;

/// The maximum nesting of messages, as for JSON.
const DEEPEST: usize = 100;

/// One field of a message, without its number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum WireField<'a> {
    Number(u64),
    Fixed(f64),
    Bytes(&'a [u8]),
    /// A four-byte number, which no type here uses.
    Short,
}

/// Decodes a message as an object of this type.
pub(crate) fn decode(of: &'static Struct, message: &[u8]) -> Result<Value, Broken> {
    structure(of, message, DEEPEST)
}

fn structure(of: &'static Struct, message: &[u8], levels: usize) -> Result<Value, Broken> {
    let mut members = Map::new();
    put_fields(of, message, levels, &mut members)?;
    form::complete(of, &mut members);
    Ok(Value::Object(members))
}

fn put_fields(
    of: &'static Struct,
    message: &[u8],
    levels: usize,
    members: &mut Map<String, Value>,
) -> Result<(), Broken> {
    let levels = levels.checked_sub(1).ok_or(Broken)?;
    for field in fields(message) {
        let (number, field) = field?;
        let Ok(at) = of.members.binary_search_by_key(&number, |member| member.number) else { continue };
        let member = &of.members[at];
        match (member.of.as_struct(), field) {
            (Some(inner), WireField::Bytes(bytes)) if member.name.is_empty() => {
                put_fields(inner, bytes, levels, members)?
            }
            _ => put_field(member, field, levels, members)?,
        }
    }
    Ok(())
}

fn put_field(
    member: &'static StructMember,
    field: WireField<'_>,
    levels: usize,
    members: &mut Map<String, Value>,
) -> Result<(), Broken> {
    match (&member.of, field) {
        (FieldType::List { items, wrapped: false }, field) => {
            let list = members.entry(member.name).or_insert_with(|| Value::Array(Vec::new()));
            let Value::Array(list) = list else { return Err(Broken) };
            match (&**items, field) {
                (
                    FieldType::Scalar(ScalarType::Int32 | ScalarType::Int64 | ScalarType::Bool),
                    WireField::Bytes(mut packed),
                ) => {
                    while !packed.is_empty() {
                        list.push(value(items, WireField::Number(varint(&mut packed).ok_or(Broken)?), levels)?);
                    }
                }
                (items, field) => list.push(value(items, field, levels)?),
            }
        }
        (FieldType::Map(values), WireField::Bytes(entry)) => {
            let (mut key, mut found) = (String::new(), None);
            for field in fields(entry) {
                match field? {
                    (1, WireField::Bytes(text)) => key = owned(text)?,
                    (2, field) => found = Some(value(values, field, levels)?),
                    _ => {}
                }
            }
            let map = members.entry(member.name).or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(map) = map else { return Err(Broken) };
            map.insert(key, found.unwrap_or_else(|| form::zero_type(values)));
        }
        (of, field) => {
            members.insert(member.name.to_owned(), value(of, field, levels)?);
        }
    }
    Ok(())
}

fn value(of: &'static FieldType, field: WireField<'_>, levels: usize) -> Result<Value, Broken> {
    match (of, field) {
        (FieldType::Struct(_), WireField::Bytes(message)) => structure(of.as_struct().ok_or(Broken)?, message, levels),
        (FieldType::List { items, .. }, WireField::Bytes(message)) => {
            let levels = levels.checked_sub(1).ok_or(Broken)?;
            let mut list = Vec::new();
            for field in fields(message) {
                if let (1, field) = field? {
                    list.push(value(items, field, levels)?);
                }
            }
            Ok(list.into())
        }
        (FieldType::Scalar(scalar), field) => scalar_value(*scalar, field, levels),
        _ => Err(Broken),
    }
}

fn scalar_value(scalar: ScalarType, field: WireField<'_>, levels: usize) -> Result<Value, Broken> {
    match (scalar, field) {
        (ScalarType::Text, WireField::Bytes(bytes)) => owned(bytes).map(Value::from),
        (ScalarType::Bool, WireField::Number(number)) => Ok((number != 0).into()),
        (ScalarType::Int32, WireField::Number(number)) => Ok((number as i32).into()),
        (ScalarType::Int64, WireField::Number(number)) => Ok(number.cast_signed().into()),
        // A whole number is written as an integer.
        (ScalarType::Float, WireField::Fixed(number)) if number.fract() == 0.0 && number.abs() < 1e15 => {
            Ok((number as i64).into())
        }
        (ScalarType::Float, WireField::Fixed(number)) => Ok(number.into()),
        (ScalarType::Bytes, WireField::Bytes(bytes)) => Ok(BASE64_STANDARD.encode(bytes).into()),
        (
            ScalarType::SchemaOrArray | ScalarType::SchemaOrBool | ScalarType::SchemaOrStrings,
            WireField::Bytes(message),
        ) => schema(scalar, message, levels),
        (ScalarType::Time | ScalarType::MicroTime, WireField::Bytes(message)) => time(scalar, message),
        (_, WireField::Bytes(message)) => wrapped(scalar, message),
        _ => Err(Broken),
    }
}

fn time(scalar: ScalarType, message: &[u8]) -> Result<Value, Broken> {
    if message.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanoseconds) = (0, 0);
    for field in fields(message) {
        match field? {
            (1, WireField::Number(number)) => seconds = number.cast_signed(),
            (2, WireField::Number(number)) => nanoseconds = number as i32,
            _ => {}
        }
    }
    if scalar == ScalarType::Time {
        nanoseconds = 0;
    }
    let at = Timestamp::new(seconds, nanoseconds).map_err(|_| Broken)?;
    Ok(if scalar == ScalarType::Time { at.to_string() } else { moment::micro_text(at) }.into())
}

/// Decodes a scalar that is a message with one or a few plain fields.
fn wrapped(scalar: ScalarType, message: &[u8]) -> Result<Value, Broken> {
    let (mut number, mut second, mut text) = (0, 0, None);
    for field in fields(message) {
        match field? {
            (1, WireField::Number(found)) => number = found.cast_signed(),
            (2, WireField::Number(found)) => second = found as i32,
            (1 | 3, WireField::Bytes(found)) => text = Some(found),
            _ => {}
        }
    }
    let text = text.unwrap_or_default();
    match scalar {
        ScalarType::Duration => Ok(moment::duration_text(number).into()),
        ScalarType::Quantity => Ok(crate::kinds::quantity::canonical(&owned(text)?).ok_or(Broken)?.into()),
        ScalarType::IntOrString if number == 0 => Ok(second.into()),
        ScalarType::IntOrString => owned(text).map(Value::from),
        _ if text.is_empty() => Ok(Value::Null),
        _ => serde_json::from_slice(text).map_err(|_| Broken),
    }
}

fn schema(scalar: ScalarType, message: &[u8], levels: usize) -> Result<Value, Broken> {
    let props = named("apiextensions/v1.JSONSchemaProps").ok_or(Broken)?;
    let (mut allows, mut found, mut list) = (false, None, None::<Vec<Value>>);
    for field in fields(message) {
        match (scalar, field?) {
            (ScalarType::SchemaOrBool, (1, WireField::Number(number))) => allows = number != 0,
            (ScalarType::SchemaOrBool, (2, WireField::Bytes(message)))
            | (ScalarType::SchemaOrArray | ScalarType::SchemaOrStrings, (1, WireField::Bytes(message))) => {
                found = Some(structure(props, message, levels)?);
            }
            (ScalarType::SchemaOrArray, (2, WireField::Bytes(message))) => {
                list.get_or_insert_default().push(structure(props, message, levels)?);
            }
            (ScalarType::SchemaOrStrings, (2, WireField::Bytes(text))) => {
                list.get_or_insert_default().push(owned(text)?.into())
            }
            _ => {}
        }
    }
    Ok(match (found, list) {
        (Some(schema), _) => schema,
        (None, Some(list)) => list.into(),
        (None, None) if scalar == ScalarType::SchemaOrBool => allows.into(),
        (None, None) => Value::Null,
    })
}

fn owned(bytes: &[u8]) -> Result<String, Broken> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Broken)
}

/// Returns the fields of a message in order, up to the first invalid one.
pub(super) fn fields(message: &[u8]) -> impl Iterator<Item = Result<(u32, WireField<'_>), Broken>> {
    let mut rest = Some(message);
    std::iter::from_fn(move || {
        let mut left = rest.filter(|left| !left.is_empty())?;
        let field = field(&mut left);
        rest = field.is_some().then_some(left);
        Some(field.ok_or(Broken))
    })
}

fn field<'a>(rest: &mut &'a [u8]) -> Option<(u32, WireField<'a>)> {
    let tag = varint(rest)?;
    let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0)?;
    let field = match tag & 7 {
        0 => WireField::Number(varint(rest)?),
        1 => WireField::Fixed(f64::from_le_bytes(take(rest, 8)?.try_into().ok()?)),
        2 => {
            let length = usize::try_from(varint(rest)?).ok()?;
            WireField::Bytes(take(rest, length)?)
        }
        5 => take(rest, 4).map(|_| WireField::Short)?,
        _ => return None,
    };
    Some((number, field))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, left) = rest.split_first()?;
        *rest = left;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
