//! Evaluates the path of a printer column on an object.

use serde_json::Value;
use std::borrow::Cow;
use std::cmp::Ordering;

use super::golang::{self, Num};
use super::jsonpath::{Operator, Step};

type Values<'v> = Vec<Cow<'v, Value>>;

/// Returns the values at the end of a path, or `None` if the path does not match.
pub(crate) fn find<'v>(steps: &[Step], object: &'v Value) -> Option<Values<'v>> {
    let mut left = 100_000;
    walk(steps, vec![Cow::Borrowed(object)], &mut left)
}

fn walk<'v>(steps: &[Step], mut values: Values<'v>, left: &mut usize) -> Option<Values<'v>> {
    for step in steps {
        *left = left.checked_sub(values.len() + 1)?;
        values = one(step, values, left)?;
    }
    Some(values)
}

fn one<'v>(step: &Step, values: Values<'v>, left: &mut usize) -> Option<Values<'v>> {
    let mut out = Vec::new();
    match step {
        Step::Constant(value) => return Some(values.iter().map(|_| Cow::Owned(value.clone())).collect()),
        Step::Field(name) => out.extend(values.into_iter().filter_map(|value| member(value, name))),
        Step::Wildcard => out.extend(values.into_iter().flat_map(inner)),
        Step::Recursive => {
            for value in values {
                recursive(value, &mut out, left)?;
            }
        }
        Step::Union(parts) => {
            for part in parts {
                out.extend(walk(part, values.clone(), left)?);
            }
        }
        Step::Slice(bounds, single) => {
            for value in values.into_iter().filter(|value| !value.is_null()) {
                let length = value.as_array()?.len();
                let (start, end, step) = range(*bounds, *single, length)?;
                let items = inner(value);
                out.extend(items.into_iter().skip(start).take(end - start).step_by(step));
            }
        }
        Step::Filter(left_steps, right) => {
            for value in values {
                value.as_array()?;
                for item in inner(value) {
                    if passes(&item, left_steps, right.as_ref(), left)? {
                        out.push(item);
                    }
                }
            }
        }
    }
    Some(out)
}

fn member<'v>(value: Cow<'v, Value>, name: &str) -> Option<Cow<'v, Value>> {
    match value {
        Cow::Borrowed(Value::Object(members)) => members.get(name).map(Cow::Borrowed),
        Cow::Owned(Value::Object(mut members)) => members.remove(name).map(Cow::Owned),
        _ => None,
    }
}

fn inner(value: Cow<'_, Value>) -> Values<'_> {
    match value {
        Cow::Borrowed(Value::Array(items)) => items.iter().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Value::Object(members)) => members.values().map(Cow::Borrowed).collect(),
        Cow::Owned(Value::Array(items)) => items.into_iter().map(Cow::Owned).collect(),
        _ => Vec::new(),
    }
}

fn recursive<'v>(value: Cow<'v, Value>, out: &mut Values<'v>, left: &mut usize) -> Option<()> {
    *left = left.checked_sub(1)?;
    let items = inner(value.clone());
    if !items.is_empty() {
        out.push(value);
        for item in items {
            recursive(item, out, left)?;
        }
    }
    Some(())
}

fn range(bounds: [Option<i64>; 3], single: bool, length: usize) -> Option<(usize, usize, usize)> {
    let length = i64::try_from(length).ok()?;
    let mut start = bounds[0].unwrap_or(0);
    if start < 0 {
        start += length;
    }
    let mut end = bounds[1].unwrap_or(length);
    if end < 0 || (end == 0 && single) {
        end += length;
    }
    if start == end {
        return Some((0, 0, 1));
    }
    let in_bounds = (0..length).contains(&start) && (0..=length).contains(&end) && start < end;
    let step = bounds[2].unwrap_or(1);
    if !in_bounds || step < 1 {
        return None;
    }
    Some((usize::try_from(start).ok()?, usize::try_from(end).ok()?, usize::try_from(step).ok()?))
}

fn passes(item: &Value, steps: &[Step], right: Option<&(Operator, Vec<Step>)>, left: &mut usize) -> Option<bool> {
    let found = walk(steps, vec![Cow::Borrowed(item)], left);
    let Some((operator, right)) = right else {
        return Some(found.is_some_and(|found| !found.is_empty()));
    };
    let found = found?;
    let other = walk(right, vec![Cow::Borrowed(item)], left)?;
    match (&found[..], &other[..]) {
        ([], _) | (_, []) => Some(false),
        ([a], [b]) => compare(a, b, *operator),
        _ => None,
    }
}

/// Compares two values, or returns `None` if they have different kinds.
fn compare(a: &Value, b: &Value, operator: Operator) -> Option<bool> {
    let order = match (a, b) {
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => match (golang::number(a), golang::number(b)) {
            (Num::Int(a), Num::Int(b)) => a.cmp(&b),
            (Num::Float(a), Num::Float(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Less),
            _ => return None,
        },
        (Value::Bool(a), Value::Bool(b)) if matches!(operator, Operator::Equal | Operator::Unequal) => a.cmp(b),
        _ => return None,
    };
    Some(match operator {
        Operator::Less => order.is_lt(),
        Operator::LessOrEqual => order.is_le(),
        Operator::Equal => order.is_eq(),
        Operator::Unequal => order.is_ne(),
        Operator::GreaterOrEqual => order.is_ge(),
        Operator::Greater => order.is_gt(),
        Operator::Unknown => return None,
    })
}
