//! Arithmetic, indexing and sizes.

use super::functions::Args;
use super::meter::Fail;
use super::value::Val;

const NANOS: i128 = 1_000_000_000;

fn pair<'c, 'v>(call: &Args<'c, 'v>) -> Result<(&'c Val<'v>, &'c Val<'v>), Fail> {
    match call.args {
        [a, b] => Ok((a, b)),
        _ => Err(Fail::no_overload()),
    }
}

fn int<'v>(int: Option<i64>) -> Result<Val<'v>, Fail> {
    int.map(Val::Int).ok_or_else(|| Fail::error("integer overflow"))
}

fn uint<'v>(uint: Option<u64>) -> Result<Val<'v>, Fail> {
    uint.map(Val::Uint).ok_or_else(|| Fail::error("unsigned integer overflow"))
}

fn duration<'v>(nanos: Option<i64>) -> Result<Val<'v>, Fail> {
    nanos.map(Val::Duration).ok_or_else(|| Fail::error("duration overflow"))
}

pub(crate) fn add<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    let (a, b) = pair(&call)?;
    match (a, b) {
        (Val::Int(a), Val::Int(b)) => int(a.checked_add(*b)),
        (Val::Uint(a), Val::Uint(b)) => uint(a.checked_add(*b)),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a + b)),
        (Val::Duration(a), Val::Duration(b)) => duration(a.checked_add(*b)),
        (Val::Timestamp(time), Val::Duration(by)) | (Val::Duration(by), Val::Timestamp(time)) => {
            time.plus(i128::from(*by)).map(Val::Timestamp).ok_or_else(|| Fail::error("timestamp overflow"))
        }
        (Val::String(a), Val::String(b)) => {
            call.meter.traverse(a.len() + b.len())?;
            Ok(Val::text([&**a, &**b].concat()))
        }
        (Val::Bytes(a), Val::Bytes(b)) => {
            call.meter.traverse(a.len() + b.len())?;
            Ok(Val::Bytes([&**a, &**b].concat().into()))
        }
        _ => lists(a, b, call),
    }
}

/// Concatenates lists. If the first one is a set or has keys, it stays unique.
fn lists<'v>(a: &Val<'v>, b: &Val<'v>, call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    let (Some(one), Some(two)) = (a.list_length(), b.list_length()) else {
        return Err(Fail::no_overload());
    };
    call.meter.spend((one + two) as u64)?;
    let mut items = a.list_items(call.meter)?;
    let (list_type, keys) = match a {
        Val::Items(_, node) => (node.list_type.as_deref(), node.list_keys.as_slice()),
        _ => (None, &[][..]),
    };
    for item in b.list_items(call.meter)? {
        let same = match list_type {
            Some("set") => super::lists::position(&items, &item, call.meter)?,
            Some("map") => super::lists::position_by_keys(&items, &item, keys, call.meter)?,
            _ => None,
        };
        match same.and_then(|index| items.get_mut(index)) {
            Some(held) => *held = item,
            None => items.push(item),
        }
    }
    Ok(Val::list(items))
}

pub(crate) fn subtract<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    match pair(&call)? {
        (Val::Int(a), Val::Int(b)) => int(a.checked_sub(*b)),
        (Val::Uint(a), Val::Uint(b)) => uint(a.checked_sub(*b)),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a - b)),
        (Val::Duration(a), Val::Duration(b)) => duration(a.checked_sub(*b)),
        (Val::Timestamp(time), Val::Duration(by)) => {
            time.plus(-i128::from(*by)).map(Val::Timestamp).ok_or_else(|| Fail::error("timestamp overflow"))
        }
        (Val::Timestamp(a), Val::Timestamp(b)) => {
            let seconds = i128::from(a.seconds) - i128::from(b.seconds);
            let nanos = seconds * NANOS + i128::from(a.nanos) - i128::from(b.nanos);
            duration(i64::try_from(nanos).ok())
        }
        _ => Err(Fail::no_overload()),
    }
}

pub(crate) fn multiply<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    match pair(&call)? {
        (Val::Int(a), Val::Int(b)) => int(a.checked_mul(*b)),
        (Val::Uint(a), Val::Uint(b)) => uint(a.checked_mul(*b)),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a * b)),
        _ => Err(Fail::no_overload()),
    }
}

pub(crate) fn divide<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    match pair(&call)? {
        (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => Err(Fail::error("division by zero")),
        (Val::Int(a), Val::Int(b)) => int(a.checked_div(*b)),
        (Val::Uint(a), Val::Uint(b)) => uint(a.checked_div(*b)),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a / b)),
        _ => Err(Fail::no_overload()),
    }
}

pub(crate) fn remainder<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    match pair(&call)? {
        (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => Err(Fail::error("modulus by zero")),
        (Val::Int(a), Val::Int(b)) => int(a.checked_rem(*b)),
        (Val::Uint(a), Val::Uint(b)) => uint(a.checked_rem(*b)),
        _ => Err(Fail::no_overload()),
    }
}

pub(crate) fn negate<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    match call.args {
        [Val::Int(a)] => int(a.checked_neg()),
        [Val::Double(a)] => Ok(Val::Double(-a)),
        _ => Err(Fail::no_overload()),
    }
}

pub(crate) fn not<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    match call.args {
        [Val::Bool(a)] => Ok(Val::Bool(!a)),
        _ => Err(Fail::no_overload()),
    }
}

/// Returns a list index. Any whole number is valid.
pub(crate) fn as_index(value: &Val<'_>) -> Result<i64, Fail> {
    match value {
        Val::Int(int) => Ok(*int),
        Val::Uint(uint) => i64::try_from(*uint).map_err(|_| Fail::error("invalid_argument")),
        Val::Double(double) if double.fract() == 0.0 && double.abs() < 9e15 => Ok(*double as i64),
        _ => Err(Fail::no_overload()),
    }
}

pub(crate) fn index<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    let (range, key) = pair(&call)?;
    if matches!(range, Val::Optional(_)) {
        return super::optional::index(call);
    }
    if range.list_length().is_some() {
        let index = as_index(key)?;
        let item = usize::try_from(index).ok().and_then(|index| range.list_item(index, call.meter));
        return item.unwrap_or_else(|| Err(Fail::error(format!("index out of bounds: {index}"))));
    }
    match range.map_find(key, call.meter)? {
        Some(value) => Ok(value),
        None => Err(Fail::error(format!("no such key: {}", super::format::plain(key)))),
    }
}

pub(crate) fn size<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    let size = match call.args {
        [Val::String(text)] => {
            call.meter.traverse(text.len())?;
            text.chars().count()
        }
        [Val::Bytes(bytes)] => bytes.len(),
        [Val::Map(map)] => map.len(),
        [Val::Members(members)] => members.map.len(),
        [other] => other.list_length().ok_or_else(Fail::no_overload)?,
        _ => return Err(Fail::no_overload()),
    };
    Ok(Val::Int(size as i64))
}
