//! Optional values.

use super::functions::Args;
use super::meter::Fail;
use super::operators::as_index;
use super::value::Val;

/// Returns an optional of a value. An optional stays unchanged.
pub(crate) fn flat_some(value: Val<'_>) -> Val<'_> {
    match value {
        Val::Optional(_) => value,
        other => Val::some(other),
    }
}

pub(crate) fn index<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    let [range, key] = call.args else {
        return Err(Fail::no_overload());
    };
    let range = match range {
        Val::Optional(None) => return Ok(Val::none()),
        Val::Optional(Some(inner)) => inner.as_ref(),
        other => other,
    };
    let found = if range.list_length().is_some() {
        usize::try_from(as_index(key)?).ok().and_then(|index| range.list_item(index, call.meter)).transpose()?
    } else {
        range.map_find(key, call.meter)?
    };
    Ok(found.map_or_else(Val::none, Val::some))
}

pub(crate) fn of<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    match call.args {
        [value] => Ok(Val::some(value.clone())),
        _ => Err(Fail::no_overload()),
    }
}

pub(crate) fn of_non_zero<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    match call.args {
        [value] if is_zero(value) => Ok(Val::none()),
        [value] => Ok(Val::some(value.clone())),
        _ => Err(Fail::no_overload()),
    }
}

fn is_zero(value: &Val<'_>) -> bool {
    match value {
        Val::Null | Val::Bool(false) | Val::Int(0) | Val::Uint(0) | Val::Duration(0) | Val::Optional(None) => true,
        Val::Double(double) => *double == 0.0,
        Val::String(text) => text.is_empty(),
        Val::Bytes(bytes) => bytes.is_empty(),
        Val::Map(map) => map.is_empty(),
        Val::Members(members) => members.map.is_empty(),
        other => other.list_length() == Some(0),
    }
}

pub(crate) fn none<'v>(_: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    Ok(Val::none())
}

pub(crate) fn has_value<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    match call.args {
        [Val::Optional(held)] => Ok(Val::Bool(held.is_some())),
        _ => Err(Fail::no_overload()),
    }
}

pub(crate) fn value<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    match call.args {
        [Val::Optional(Some(held))] => Ok(held.as_ref().clone()),
        [Val::Optional(None)] => Err(Fail::error("optional.none() dereference")),
        _ => Err(Fail::no_overload()),
    }
}

pub(crate) fn or<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    match call.args {
        [Val::Optional(Some(held)), _] => Ok(Val::Optional(Some(held.clone()))),
        [Val::Optional(None), other @ Val::Optional(_)] => Ok(other.clone()),
        _ => Err(Fail::no_overload()),
    }
}

pub(crate) fn or_value<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    match call.args {
        [Val::Optional(Some(held)), _] => Ok(held.as_ref().clone()),
        [Val::Optional(None), other] => Ok(other.clone()),
        _ => Err(Fail::no_overload()),
    }
}
