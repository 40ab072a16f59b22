//! Type conversions.

use super::super::duration::{self, Timestamp};
use super::super::golang;
use super::functions::Args;
use super::meter::Fail;
use super::value::{CelText, Val};

fn cannot(value: &Val<'_>, to: &str) -> Fail {
    Fail::error(format!("type conversion error from '{}' to '{to}'", value.type_name()))
}

/// Returns the single argument, and charges the cost of reading a string.
fn only<'c, 'v>(call: &mut Args<'c, 'v>) -> Result<&'c Val<'v>, Fail> {
    match call.args {
        [value] => {
            if let Val::String(text) = value {
                call.meter.copy(text.len())?;
            }
            Ok(value)
        }
        _ => Err(Fail::no_overload()),
    }
}

pub(crate) fn type_of<'v>(mut call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    Ok(Val::Type(only(&mut call)?.type_name()))
}

pub(crate) fn dynamic<'v>(mut call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    only(&mut call).cloned()
}

pub(crate) fn to_bool<'v>(mut call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    match only(&mut call)? {
        Val::Bool(bool) => Ok(Val::Bool(*bool)),
        value @ Val::String(text) => match &**text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Val::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Val::Bool(false)),
            _ => Err(cannot(value, "bool")),
        },
        other => Err(cannot(other, "bool")),
    }
}

pub(crate) fn to_int<'v>(mut call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    let overflow = || Fail::error("integer overflow");
    match only(&mut call)? {
        Val::Int(int) => Ok(Val::Int(*int)),
        Val::Uint(uint) => i64::try_from(*uint).map(Val::Int).map_err(|_| overflow()),
        Val::Double(double) => {
            let limit = 9_223_372_036_854_775_808.0;
            let fits = *double > -limit && *double < limit;
            if fits { Ok(Val::Int(*double as i64)) } else { Err(overflow()) }
        }
        value @ Val::String(text) => integer(text).map(Val::Int).ok_or_else(|| cannot(value, "int")),
        Val::Timestamp(timestamp) => Ok(Val::Int(timestamp.seconds)),
        Val::Duration(nanos) => Ok(Val::Int(*nanos)),
        other => Err(cannot(other, "int")),
    }
}

/// Parses an integer with an optional sign.
fn integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

pub(crate) fn to_uint<'v>(mut call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    let overflow = || Fail::error("unsigned integer overflow");
    match only(&mut call)? {
        Val::Uint(uint) => Ok(Val::Uint(*uint)),
        Val::Int(int) => u64::try_from(*int).map(Val::Uint).map_err(|_| overflow()),
        Val::Double(double) => {
            let fits = *double >= 0.0 && *double < 18_446_744_073_709_551_616.0;
            if fits { Ok(Val::Uint(*double as u64)) } else { Err(overflow()) }
        }
        value @ Val::String(text) => {
            let digits = Some(&**text).filter(|text| !text.starts_with('+'));
            digits.and_then(|text| text.parse().ok()).map(Val::Uint).ok_or_else(|| cannot(value, "uint"))
        }
        other => Err(cannot(other, "uint")),
    }
}

pub(crate) fn to_double<'v>(mut call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    match only(&mut call)? {
        Val::Double(double) => Ok(Val::Double(*double)),
        Val::Int(int) => Ok(Val::Double(*int as f64)),
        Val::Uint(uint) => Ok(Val::Double(*uint as f64)),
        value @ Val::String(text) => match text.parse::<f64>() {
            Ok(double) => Ok(Val::Double(double)),
            Err(_) => Err(cannot(value, "double")),
        },
        other => Err(cannot(other, "double")),
    }
}

pub(crate) fn to_string<'v>(mut call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    Ok(match only(&mut call)? {
        Val::String(text) => Val::String(text.clone()),
        Val::Bool(bool) => Val::String(CelText::Borrowed(if *bool { "true" } else { "false" })),
        Val::Int(int) => Val::text(int.to_string()),
        Val::Uint(uint) => Val::text(uint.to_string()),
        Val::Double(double) => Val::text(golang_g(*double)),
        Val::Bytes(bytes) => {
            call.meter.traverse(bytes.len())?;
            match String::from_utf8(bytes.to_vec()) {
                Ok(text) => Val::text(text),
                Err(_) => return Err(Fail::error("invalid UTF-8 in bytes, cannot convert to string")),
            }
        }
        Val::Timestamp(timestamp) => Val::text(timestamp.to_string()),
        Val::Duration(nanos) => Val::text(format!("{}s", golang::plain(*nanos as f64 / 1e9))),
        Val::Ip(ip) => Val::text(ip.to_string()),
        Val::Cidr(cidr) => Val::text(cidr.to_string()),
        other => return Err(cannot(other, "string")),
    })
}

/// Returns a double as `%g` prints it.
fn golang_g(double: f64) -> String {
    golang::float(double)
}

pub(crate) fn to_bytes<'v>(mut call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    match only(&mut call)? {
        Val::Bytes(bytes) => Ok(Val::Bytes(bytes.clone())),
        Val::String(text) => {
            call.meter.traverse(text.len())?;
            Ok(Val::Bytes(text.as_bytes().into()))
        }
        other => Err(cannot(other, "bytes")),
    }
}

pub(crate) fn to_duration<'v>(mut call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    match only(&mut call)? {
        Val::Duration(nanos) => Ok(Val::Duration(*nanos)),
        Val::Int(nanos) => Ok(Val::Duration(*nanos)),
        value @ Val::String(text) => match duration::parse(text) {
            Ok(nanos) => Ok(Val::Duration(nanos)),
            Err(_) => Err(cannot(value, "google.protobuf.Duration")),
        },
        other => Err(cannot(other, "google.protobuf.Duration")),
    }
}

pub(crate) fn to_timestamp<'v>(mut call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    let in_range = |timestamp: Timestamp| {
        if timestamp.in_range() { Ok(Val::Timestamp(timestamp)) } else { Err(Fail::error("timestamp overflow")) }
    };
    match only(&mut call)? {
        Val::Timestamp(timestamp) => Ok(Val::Timestamp(*timestamp)),
        Val::Int(seconds) => in_range(Timestamp { seconds: *seconds, nanos: 0 }),
        value @ Val::String(text) => match Timestamp::parse(text) {
            Some(timestamp) => in_range(timestamp),
            None => Err(cannot(value, "google.protobuf.Timestamp")),
        },
        other => Err(cannot(other, "google.protobuf.Timestamp")),
    }
}
