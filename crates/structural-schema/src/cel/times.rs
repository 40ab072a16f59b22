//! The parts of times and durations.

use super::super::duration::{Civil, days, zone};
use super::functions::Args;
use super::meter::Fail;
use super::value::Val;

fn part<'v>(call: Args<'_, 'v>, of_time: fn(&Civil, u32) -> i64, of_span: fn(i64) -> i64) -> Result<Val<'v>, Fail> {
    let (timestamp, offset) = match call.args {
        [Val::Duration(nanos)] => return Ok(Val::Int(of_span(*nanos))),
        [Val::Timestamp(timestamp)] => (timestamp, 0),
        [Val::Timestamp(timestamp), Val::String(name)] => {
            call.meter.copy(name.len())?;
            let offset = zone(name).ok_or_else(|| Fail::error(format!("unknown time zone {}", &**name)))?;
            (timestamp, offset)
        }
        _ => return Err(Fail::no_overload()),
    };
    Ok(Val::Int(of_time(&timestamp.civil(offset), timestamp.nanos)))
}

pub(crate) fn full_year<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    part(call, |civil, _| civil.year, |_| 0)
}

pub(crate) fn month<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    part(call, |civil, _| civil.month - 1, |_| 0)
}

pub(crate) fn day_of_year<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    part(call, |civil, _| civil.days - days(civil.year, 1, 1), |_| 0)
}

pub(crate) fn day_of_month<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    part(call, |civil, _| civil.day - 1, |_| 0)
}

pub(crate) fn date<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    part(call, |civil, _| civil.day, |_| 0)
}

pub(crate) fn day_of_week<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    part(call, |civil, _| (civil.days + 4).rem_euclid(7), |_| 0)
}

pub(crate) fn hours<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    part(call, |civil, _| civil.second_of_day / 3600, |nanos| nanos / 3_600_000_000_000)
}

pub(crate) fn minutes<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    part(call, |civil, _| civil.second_of_day / 60 % 60, |nanos| nanos / 60_000_000_000)
}

pub(crate) fn seconds<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    part(call, |civil, _| civil.second_of_day % 60, |nanos| nanos / 1_000_000_000)
}

pub(crate) fn milliseconds<'v>(call: Args<'_, 'v>) -> Result<Val<'v>, Fail> {
    part(call, |_, nanos| i64::from(nanos / 1_000_000), |nanos| nanos / 1_000_000)
}
