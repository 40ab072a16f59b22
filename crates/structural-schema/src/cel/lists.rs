//! List functions.

use std::cmp::Ordering;

use super::compare::{check_sortable, is_equal, list_contains, metered_order, order};
use super::functions::Args;
use super::meter::{Fail, Meter};
use super::operators;
use super::value::Val;

type Found<'v> = Result<Val<'v>, Fail>;

fn items<'v>(call: &mut Args<'_, 'v>) -> Result<Vec<Val<'v>>, Fail> {
    let list = call.args.first().ok_or_else(Fail::no_overload)?;
    call.meter.spend(list.list_length().unwrap_or(0) as u64)?;
    list.list_items(call.meter)
}

/// Returns the index of a value in a list.
pub(crate) fn position<'v>(items: &[Val<'v>], value: &Val<'v>, meter: &mut Meter) -> Result<Option<usize>, Fail> {
    for (index, item) in items.iter().enumerate() {
        if is_equal(item, value, meter)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// Returns the index of the element with the same keys in a list.
pub(crate) fn position_by_keys<'v>(
    items: &[Val<'v>],
    value: &Val<'v>,
    keys: &[String],
    meter: &mut Meter,
) -> Result<Option<usize>, Fail> {
    for (index, item) in items.iter().enumerate() {
        let mut same = true;
        for key in keys {
            let name = Val::text(super::super::names::escape(key).unwrap_or_else(|| key.clone()));
            same &= match (item.map_find(&name, meter)?, value.map_find(&name, meter)?) {
                (Some(a), Some(b)) => is_equal(&a, &b, meter)?,
                (None, None) => true,
                _ => false,
            };
        }
        if same {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

pub(crate) fn index_of<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    let [_, value] = call.args else {
        return Err(Fail::no_overload());
    };
    let found = position(&items(&mut call)?, value, call.meter)?;
    Ok(Val::Int(found.map_or(-1, |index| index as i64)))
}

pub(crate) fn last_index_of<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    let [_, value] = call.args else {
        return Err(Fail::no_overload());
    };
    let mut items = items(&mut call)?;
    items.reverse();
    let found = position(&items, value, call.meter)?;
    Ok(Val::Int(found.map_or(-1, |index| (items.len() - 1 - index) as i64)))
}

pub(crate) fn is_sorted<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    let items = items(&mut call)?;
    for pair in items.windows(2) {
        if let [a, b] = pair
            && metered_order(a, b, call.meter)?.is_gt()
        {
            return Ok(Val::Bool(false));
        }
    }
    Ok(Val::Bool(true))
}

pub(crate) fn sum<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    let items = items(&mut call)?;
    let mut total = match items.first() {
        Some(Val::Uint(_)) => Val::Uint(0),
        Some(Val::Double(_)) => Val::Double(0.0),
        Some(Val::Duration(_)) => Val::Duration(0),
        _ => Val::Int(0),
    };
    for item in items {
        let args = [total, item];
        total = operators::add(Args { args: &args, meter: call.meter, regex: None })?;
    }
    Ok(total)
}

fn extreme<'v>(call: &mut Args<'_, 'v>, name: &str, wanted: Ordering) -> Found<'v> {
    let mut best: Option<Val<'v>> = None;
    for item in items(call)? {
        best = match best {
            Some(held) if metered_order(&item, &held, call.meter)? != wanted => Some(held),
            _ => Some(item),
        };
    }
    best.ok_or_else(|| Fail::error(format!("{name} called on empty list")))
}

pub(crate) fn min<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    extreme(&mut call, "min", Ordering::Less)
}

pub(crate) fn max<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    extreme(&mut call, "max", Ordering::Greater)
}

pub(crate) fn slice<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    let [_, Val::Int(start), Val::Int(end)] = call.args else {
        return Err(Fail::no_overload());
    };
    let items = items(&mut call)?;
    let wrong = |what: &str| Fail::error(format!("cannot slice({start}, {end}), {what}"));
    let (Ok(from), Ok(to)) = (usize::try_from(*start), usize::try_from(*end)) else {
        return Err(wrong("negative indexes not supported"));
    };
    if from > to {
        return Err(wrong("start index must be less than or equal to end index"));
    }
    let part = items.get(from..to).ok_or_else(|| wrong(&format!("list is length {}", items.len())))?;
    Ok(Val::list(part.to_vec()))
}

pub(crate) fn flatten<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    let depth = match call.args {
        [_] => 1,
        [_, Val::Int(depth)] if *depth >= 0 => *depth,
        [_, Val::Int(_)] => return Err(Fail::error("level must be non-negative")),
        _ => return Err(Fail::no_overload()),
    };
    let items = items(&mut call)?;
    let mut out = Vec::new();
    flatten_into(items, depth, &mut out, call.meter)?;
    Ok(Val::list(out))
}

fn flatten_into<'v>(items: Vec<Val<'v>>, depth: i64, out: &mut Vec<Val<'v>>, meter: &mut Meter) -> Result<(), Fail> {
    for item in items {
        meter.spend(1)?;
        if depth > 0 && item.list_length().is_some() {
            flatten_into(item.list_items(meter)?, depth - 1, out, meter)?;
        } else {
            out.push(item);
        }
    }
    Ok(())
}

pub(crate) fn sort<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    let mut items = items(&mut call)?;
    call.meter.spend(2 * items.len() as u64)?;
    check_sortable(items.iter(), call.meter)?;
    items.sort_by(|a, b| order(a, b).unwrap_or(Ordering::Equal));
    Ok(Val::list(items))
}

pub(crate) fn distinct<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    let mut out: Vec<Val<'v>> = Vec::new();
    for item in items(&mut call)? {
        if position(&out, &item, call.meter)?.is_none() {
            out.push(item);
        }
    }
    Ok(Val::list(out))
}

pub(crate) fn reverse<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    let mut items = items(&mut call)?;
    items.reverse();
    Ok(Val::list(items))
}

pub(crate) fn range<'v>(call: Args<'_, 'v>) -> Found<'v> {
    let [Val::Int(end)] = call.args else {
        return Err(Fail::no_overload());
    };
    call.meter.spend(u64::try_from(*end).unwrap_or(0))?;
    Ok(Val::list((0..*end).map(Val::Int).collect()))
}

fn all_in<'v>(items: &Val<'v>, list: &Val<'v>, meter: &mut Meter) -> Result<bool, Fail> {
    for item in items.list_items(meter)? {
        if !list_contains(list, &item, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(crate) fn sets_contains<'v>(call: Args<'_, 'v>) -> Found<'v> {
    let [list, items] = call.args else {
        return Err(Fail::no_overload());
    };
    Ok(Val::Bool(all_in(items, list, call.meter)?))
}

pub(crate) fn sets_equivalent<'v>(call: Args<'_, 'v>) -> Found<'v> {
    let [a, b] = call.args else {
        return Err(Fail::no_overload());
    };
    Ok(Val::Bool(all_in(a, b, call.meter)? && all_in(b, a, call.meter)?))
}

pub(crate) fn sets_intersects<'v>(call: Args<'_, 'v>) -> Found<'v> {
    let [a, b] = call.args else {
        return Err(Fail::no_overload());
    };
    for item in a.list_items(call.meter)? {
        if list_contains(b, &item, call.meter)? {
            return Ok(Val::Bool(true));
        }
    }
    Ok(Val::Bool(false))
}
