//! Bounds and multiples.

use super::cause::FieldError;
use super::faults::{ValidationRun, name};
use super::golang::{self, Num};
use super::node::{NodeKind, SchemaNode};
use super::path::ValuePath;

/// Returns whether a float is an integer that JSON represents exactly, apart from rounding errors.
pub(crate) fn is_whole(float: f64) -> bool {
    const MOST: f64 = 9_007_199_254_740_991.0;
    if !(-MOST..=MOST).contains(&float) {
        return false;
    }
    let rounded = float.round();
    float == rounded || (rounded != 0.0 && (float - rounded).abs() < 1e-9 * rounded.abs())
}

/// Checks a number against bounds. `kind` is the single type of the schema, if there is one.
pub(crate) fn check(run: &mut ValidationRun<'_>, node: &SchemaNode, kind: &NodeKind, value: Num, path: &ValuePath<'_>) {
    let (checks, float) = (&node.checks, value.as_float());
    let is_small = match (kind, checks.format.as_str(), value) {
        (NodeKind::Integer, "int32", Num::Int(int)) => i32::try_from(int).is_ok(),
        (NodeKind::Integer, "int32", Num::Float(float)) => float.fract() == 0.0 && float.abs() <= f64::from(i32::MAX),
        (NodeKind::Integer, _, Num::Float(float)) => float.fract() == 0.0 && float.abs() < 9.3e18,
        (NodeKind::Number, "float", _) => float.abs() <= f64::from(f32::MAX),
        _ => true,
    };
    if !is_small {
        run.general_fault(format!("{} must be of type {} with format {}", name(path), kind.name(), checks.format));
    }
    let mut wrong = Vec::new();
    if let Some(factor) = checks.multiple_of
        && !(factor > 0.0 && is_multiple(value, factor))
    {
        wrong.push(format!("a multiple of {}", golang::float(factor)));
    }
    if let Some(least) = checks.minimum
        && !(float > least || float == least && !checks.exclusive_minimum)
    {
        let words = if checks.exclusive_minimum { "greater than" } else { "greater than or equal to" };
        wrong.push(format!("{words} {}", golang::float(least)));
    }
    if let Some(most) = checks.maximum
        && !(float < most || float == most && !checks.exclusive_maximum)
    {
        let words = if checks.exclusive_maximum { "less than" } else { "less than or equal to" };
        wrong.push(format!("{words} {}", golang::float(most)));
    }
    for wrong in wrong {
        let text = format!("{} in body should be {wrong}", name(path));
        run.fault(path, text, |path, text| FieldError::invalid(path, &golang::float(float), text));
    }
}

fn is_multiple(value: Num, factor: f64) -> bool {
    match value {
        Num::Int(int) if factor.fract() == 0.0 && factor < 9e18 => int % (factor as i64) == 0,
        value => is_whole(if factor < 1.0 { 1.0 / factor * value.as_float() } else { value.as_float() / factor }),
    }
}
