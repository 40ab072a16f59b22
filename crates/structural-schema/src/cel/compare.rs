//! Equality and order.

use serde_json::Value;
use std::cmp::Ordering;

use super::functions::Args;
use super::meter::{Fail, Meter};
use super::value::{ObjectMembers, Val};

pub(crate) fn equal<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    let [a, b] = call.args else {
        return Err(Fail::no_overload());
    };
    Ok(Val::Bool(is_equal(a, b, call.meter)?))
}

pub(crate) fn unequal<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    let [a, b] = call.args else {
        return Err(Fail::no_overload());
    };
    Ok(Val::Bool(!is_equal(a, b, call.meter)?))
}

fn ordered<'v>(call: Args<'_, 'v>, holds: fn(Ordering) -> bool) -> Result<Val<'v>, Fail> {
    let [a, b] = call.args else {
        return Err(Fail::no_overload());
    };
    metered_order(a, b, call.meter).map(|order| Val::Bool(holds(order)))
}

pub(crate) fn less<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    ordered(call, Ordering::is_lt)
}

pub(crate) fn less_or_equal<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    ordered(call, Ordering::is_le)
}

pub(crate) fn greater<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    ordered(call, Ordering::is_gt)
}

pub(crate) fn greater_or_equal<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    ordered(call, Ordering::is_ge)
}

/// Evaluates `a in b`.
pub(crate) fn contained<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    let [key, range] = call.args else {
        return Err(Fail::no_overload());
    };
    match range.list_length() {
        Some(_) => Ok(Val::Bool(list_contains(range, key, call.meter)?)),
        None => Ok(Val::Bool(range.map_find(key, call.meter)?.is_some())),
    }
}

pub(crate) fn list_contains<'v>(list: &Val<'v>, value: &Val<'v>, meter: &mut Meter) -> Result<bool, Fail> {
    for index in 0..list.list_length().unwrap_or(0) {
        if let Some(item) = list.list_item(index, meter)
            && is_equal(&item?, value, meter)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the order of two values. The cost depends on the shorter one.
pub(crate) fn metered_order(a: &Val<'_>, b: &Val<'_>, meter: &mut Meter) -> Result<Ordering, Fail> {
    meter.copy(length(a).min(length(b)))?;
    order(a, b)
}

/// Returns the number of bytes to compare.
fn length(value: &Val<'_>) -> usize {
    match value {
        Val::String(text) => text.len(),
        Val::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}

/// Returns the order of two values of one kind, or of any two numbers.
pub(crate) fn order(a: &Val<'_>, b: &Val<'_>) -> Result<Ordering, Fail> {
    Ok(match (a, b) {
        (Val::Bool(a), Val::Bool(b)) => a.cmp(b),
        (Val::String(a), Val::String(b)) => (**a).cmp(&**b),
        (Val::Bytes(a), Val::Bytes(b)) => a.cmp(b),
        (Val::Duration(a), Val::Duration(b)) => a.cmp(b),
        (Val::Timestamp(a), Val::Timestamp(b)) => a.cmp(b),
        (Val::Int(a), Val::Int(b)) => a.cmp(b),
        (Val::Uint(a), Val::Uint(b)) => a.cmp(b),
        _ => return number_order(a, b),
    })
}

/// Checks that values can be sorted: each can be compared with itself and with the first, so any two can be compared.
/// Also charges the cost of the sort, which itself must not fail.
pub(crate) fn check_sortable<'a, 'v: 'a>(
    values: impl ExactSizeIterator<Item = &'a Val<'v>>,
    meter: &mut Meter,
) -> Result<(), Fail> {
    let mut first = None;
    let rounds = values.len().checked_ilog2().unwrap_or(0) as usize + 1;
    for value in values {
        meter.copy(length(value).saturating_mul(rounds))?;
        order(value, value)?;
        order(first.get_or_insert(value), value)?;
    }
    Ok(())
}

fn number_order(a: &Val<'_>, b: &Val<'_>) -> Result<Ordering, Fail> {
    if let (Some(a), Some(b)) = (whole(a), whole(b)) {
        return Ok(a.cmp(&b));
    }
    let not_ordered = || Fail::error("NaN values cannot be ordered");
    match (a, b) {
        (Val::Double(a), Val::Double(b)) => a.partial_cmp(b).ok_or_else(not_ordered),
        (Val::Double(double), other) => against(*double, whole(other).ok_or_else(Fail::no_overload)?),
        (other, Val::Double(double)) => {
            against(*double, whole(other).ok_or_else(Fail::no_overload)?).map(Ordering::reverse)
        }
        _ => Err(Fail::no_overload()),
    }
}

fn whole(value: &Val<'_>) -> Option<i128> {
    match value {
        Val::Int(int) => Some(i128::from(*int)),
        Val::Uint(uint) => Some(i128::from(*uint)),
        _ => None,
    }
}

/// Compares a double with an integer, without loss.
fn against(double: f64, int: i128) -> Result<Ordering, Fail> {
    if double.is_nan() {
        return Err(Fail::error("NaN values cannot be ordered"));
    }
    // The value exceeds every integer, and the cast keeps the order.
    let floor = double.floor();
    Ok((floor as i128).cmp(&int).then(if double > floor { Ordering::Greater } else { Ordering::Equal }))
}

/// Returns whether two values are equal. Values of different kinds are not.
pub(crate) fn is_equal<'v>(a: &Val<'v>, b: &Val<'v>, meter: &mut Meter) -> Result<bool, Fail> {
    meter.spend(1)?;
    Ok(match (a, b) {
        (Val::Null, Val::Null) => true,
        (Val::String(a), Val::String(b)) => {
            meter.traverse(a.len().min(b.len()))?;
            **a == **b
        }
        (Val::Double(a), Val::Double(b)) => a == b,
        (Val::Int(_) | Val::Uint(_) | Val::Double(_), Val::Int(_) | Val::Uint(_) | Val::Double(_)) => {
            number_order(a, b).is_ok_and(Ordering::is_eq)
        }
        (Val::Bool(_), Val::Bool(_))
        | (Val::Bytes(_), Val::Bytes(_))
        | (Val::Duration(_), Val::Duration(_))
        | (Val::Timestamp(_), Val::Timestamp(_)) => metered_order(a, b, meter)?.is_eq(),
        (Val::Type(a), Val::Type(b)) | (Val::Format(a), Val::Format(b)) => a == b,
        (Val::Optional(a), Val::Optional(b)) => match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => is_equal(a, b, meter)?,
            _ => false,
        },
        (Val::Quantity(a), Val::Quantity(b)) => a == b,
        (Val::Ip(a), Val::Ip(b)) => a == b,
        (Val::Cidr(a), Val::Cidr(b)) => a == b,
        (Val::Url(a), Val::Url(b)) => {
            meter.copy(a.length().min(b.length()))?;
            a == b
        }
        (Val::Raw(a), Val::Raw(b)) => raw_equal(a, b, meter)?,
        (Val::Members(a), Val::Members(b)) => members_equal(*a, *b, meter)?,
        _ if a.list_length().is_some() && b.list_length().is_some() => lists_equal(a, b, meter)?,
        _ => maps_equal(a, b, meter)?,
    })
}

/// Compares two lists. Sets and lists with keys are compared in any order.
fn lists_equal<'v>(a: &Val<'v>, b: &Val<'v>, meter: &mut Meter) -> Result<bool, Fail> {
    let length = a.list_length().unwrap_or(0);
    if b.list_length() != Some(length) {
        return Ok(false);
    }
    let list_type = match a {
        Val::Items(_, node) => node.list_type.as_deref(),
        _ => None,
    };
    if matches!(list_type, Some("set" | "map")) {
        for index in 0..length {
            if let Some(item) = b.list_item(index, meter)
                && !list_contains(a, &item?, meter)?
            {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    for index in 0..length {
        if let (Some(a), Some(b)) = (a.list_item(index, meter), b.list_item(index, meter))
            && !is_equal(&a?, &b?, meter)?
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Compares two objects: known members by their schema, other members as they are.
fn members_equal<'v>(a: ObjectMembers<'v>, b: ObjectMembers<'v>, meter: &mut Meter) -> Result<bool, Fail> {
    if a.map.len() != b.map.len() {
        return Ok(false);
    }
    for (name, value) in a.map {
        meter.spend(1)?;
        let other = b.map.get(name);
        let Some(node) = a.schema(name) else {
            if let Some(other) = other
                && !raw_equal(value, other, meter)?
            {
                return Ok(false);
            }
            continue;
        };
        let is_there = |value: &Value| !(a.is_object() && value.is_null());
        let (value, other) = (Some(value).filter(|value| is_there(value)), other.filter(|value| is_there(value)));
        let same = match (value, other) {
            (None, None) => true,
            (Some(value), Some(other)) => {
                let other_node = b.schema(name).unwrap_or(node);
                let value = super::view::view(value, node, node.embedded, meter)?;
                let other = super::view::view(other, other_node, other_node.embedded, meter)?;
                is_equal(&value, &other, meter)?
            }
            _ => false,
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Compares two values without a schema.
fn raw_equal(a: &Value, b: &Value, meter: &mut Meter) -> Result<bool, Fail> {
    match (a, b) {
        (Value::String(a), Value::String(b)) => {
            meter.copy(a.len().min(b.len()))?;
            Ok(a == b)
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (a, b) in a.iter().zip(b) {
                meter.spend(1)?;
                if !raw_equal(a, b, meter)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() => {
            for (name, value) in a {
                meter.spend(1)?;
                meter.copy(name.len())?;
                let Some(other) = b.get(name) else {
                    return Ok(false);
                };
                if !raw_equal(value, other, meter)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (a, b) => Ok(a == b),
    }
}

fn maps_equal<'v>(a: &Val<'v>, b: &Val<'v>, meter: &mut Meter) -> Result<bool, Fail> {
    let (Some(keys), Some(others)) = (a.map_keys(meter)?, b.map_keys(meter)?) else {
        return Ok(false);
    };
    if keys.len() != others.len() {
        return Ok(false);
    }
    for key in keys {
        let same = match (a.map_find(&key, meter)?, b.map_find(&key, meter)?) {
            (Some(a), Some(b)) => is_equal(&a, &b, meter)?,
            _ => false,
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}
