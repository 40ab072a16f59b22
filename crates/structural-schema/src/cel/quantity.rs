//! Quantities in expressions.

use super::super::quantity::{Quantity, UNIT};
use super::functions::Args;
use super::meter::Fail;
use super::value::Val;

type Found<'v> = Result<Val<'v>, Fail>;

fn one(call: &Args<'_, '_>) -> Result<Quantity, Fail> {
    match call.args {
        [Val::Quantity(quantity)] => Ok(*quantity),
        _ => Err(Fail::no_overload()),
    }
}

fn two(call: &Args<'_, '_>) -> Result<(Quantity, Quantity), Fail> {
    match call.args {
        [Val::Quantity(a), Val::Quantity(b)] => Ok((*a, *b)),
        [Val::Quantity(a), Val::Int(b)] => Ok((*a, Quantity { nanos: i128::from(*b) * UNIT })),
        _ => Err(Fail::no_overload()),
    }
}

fn parsed(call: &mut Args<'_, '_>) -> Result<Result<Quantity, String>, Fail> {
    let [Val::String(text)] = call.args else {
        return Err(Fail::no_overload());
    };
    call.meter.traverse(text.len())?;
    Ok(Quantity::parse(text))
}

pub(crate) fn to_quantity<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    parsed(&mut call)?.map(Val::Quantity).map_err(Fail::Error)
}

pub(crate) fn is_quantity<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    Ok(Val::Bool(parsed(&mut call)?.is_ok()))
}

pub(crate) fn sign<'v>(call: Args<'_, 'v>) -> Found<'v> {
    Ok(Val::Int(one(&call)?.nanos.signum() as i64))
}

pub(crate) fn is_greater<'v>(call: Args<'_, 'v>) -> Found<'v> {
    two(&call).map(|(a, b)| Val::Bool(a > b))
}

pub(crate) fn is_less<'v>(call: Args<'_, 'v>) -> Found<'v> {
    two(&call).map(|(a, b)| Val::Bool(a < b))
}

pub(crate) fn compare_to<'v>(call: Args<'_, 'v>) -> Found<'v> {
    two(&call).map(|(a, b)| Val::Int(a.cmp(&b) as i64))
}

pub(crate) fn as_float<'v>(call: Args<'_, 'v>) -> Found<'v> {
    let nanos = one(&call)?.nanos;
    Ok(Val::Double((nanos / UNIT) as f64 + (nanos % UNIT) as f64 / 1e9))
}

pub(crate) fn as_integer<'v>(call: Args<'_, 'v>) -> Found<'v> {
    one(&call)?.as_int().map(Val::Int).ok_or_else(|| Fail::error("cannot convert value to integer"))
}

pub(crate) fn is_integer<'v>(call: Args<'_, 'v>) -> Found<'v> {
    Ok(Val::Bool(one(&call)?.as_int().is_some()))
}

pub(crate) fn add<'v>(call: Args<'_, 'v>) -> Found<'v> {
    two(&call).map(|(a, b)| Val::Quantity(Quantity { nanos: a.nanos.saturating_add(b.nanos) }))
}

pub(crate) fn sub<'v>(call: Args<'_, 'v>) -> Found<'v> {
    two(&call).map(|(a, b)| Val::Quantity(Quantity { nanos: a.nanos.saturating_sub(b.nanos) }))
}
