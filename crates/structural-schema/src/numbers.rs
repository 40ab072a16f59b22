//! Bounds and multiples.

use super::cause::FieldError;
use super::faults::{Run, name};
use super::golang::{self, Num};
use super::node::{Kind, Node};
use super::path::Path;

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
pub(crate) fn check(run: &mut Run<'_>, node: &Node, kind: &Kind, value: Num, path: &Path<'_>) {
    let checks = &node.checks;
    let range = Range { kind, format: &checks.format };
    if !range.holds(value) {
        run.general_fault(range.sentence("Checked", path));
    }
    if let Some(factor) = checks.multiple_of {
        let in_range = range.holds(Num::Float(factor));
        if !in_range {
            run.general_fault(range.sentence("MultipleOf", path));
        }
        multiple(run, as_compared(value, in_range), factor, path);
    }
    if let Some(least) = checks.minimum {
        let in_range = range.holds(Num::Float(least));
        if !in_range {
            run.general_fault(range.sentence("Minimum boundary", path));
        }
        let exclusive = checks.exclusive_minimum;
        let words = if exclusive { "greater than" } else { "greater than or equal to" };
        bound(run, as_compared(value, in_range), least, words, path, |value, least| {
            if exclusive { value <= least } else { value < least }
        });
    }
    if let Some(most) = checks.maximum {
        let in_range = range.holds(Num::Float(most));
        if !in_range {
            run.general_fault(range.sentence("Maximum boundary", path));
        }
        let exclusive = checks.exclusive_maximum;
        let words = if exclusive { "less than" } else { "less than or equal to" };
        bound(run, as_compared(value, in_range), most, words, path, |value, most| {
            if exclusive { value >= most } else { value > most }
        });
    }
}

/// Returns the value for comparison: as a float, if a bound is outside the range of the type.
fn as_compared(value: Num, in_range: bool) -> Num {
    if in_range { value } else { Num::Float(value.as_float()) }
}

/// Compares as integers if the value is an integer. `breaks` then gets integers.
fn bound(
    run: &mut Run<'_>,
    value: Num,
    limit: f64,
    words: &str,
    path: &Path<'_>,
    breaks: impl Fn(Ordered, Ordered) -> bool,
) {
    let (value_text, limit_text, broken) = match value {
        Num::Int(int) => {
            let limit = to_int(limit);
            (int.to_string(), limit.to_string(), breaks(Ordered::Int(int), Ordered::Int(limit)))
        }
        Num::Float(float) => {
            let broken = breaks(Ordered::Float(float), Ordered::Float(limit));
            (golang::float(float), golang::float(limit), broken)
        }
    };
    if broken {
        let text = format!("{} in body should be {words} {limit_text}", name(path));
        run.fault(path, text, |path, text| FieldError::invalid(path, &value_text, text));
    }
}

/// Converts a bound to an integer. An out-of-range bound becomes the smallest integer, as in kube-apiserver.
fn to_int(float: f64) -> i64 {
    let limit = 9_223_372_036_854_775_808.0;
    if float >= -limit && float < limit { float as i64 } else { i64::MIN }
}

/// Numbers that are only compared with numbers of the same kind.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Ordered {
    Int(i64),
    Float(f64),
}

fn multiple(run: &mut Run<'_>, value: Num, factor: f64, path: &Path<'_>) {
    let (is_positive, is_multiple, value_text, factor_text) = match value {
        Num::Int(int) => {
            let factor = to_int(factor);
            (factor > 0, factor > 0 && int % factor == 0, int.to_string(), factor.to_string())
        }
        Num::Float(float) => {
            let times = if factor < 1.0 { 1.0 / factor * float } else { float / factor };
            (factor > 0.0, is_whole(times), golang::float(float), golang::float(factor))
        }
    };
    if !is_positive {
        let text = format!("factor MultipleOf declared for {} must be positive: {factor_text}", name(path));
        run.fault(path, text, |path, text| FieldError::invalid(path, &factor_text, text));
    } else if !is_multiple {
        let text = format!("{} in body should be a multiple of {factor_text}", name(path));
        run.fault(path, text, |path, text| FieldError::invalid(path, &value_text, text));
    }
}

/// The range of a type and format.
struct Range<'a> {
    kind: &'a Kind,
    format: &'a str,
}

impl Range<'_> {
    fn holds(&self, value: Num) -> bool {
        match (self.kind, value) {
            (Kind::Integer, Num::Int(int)) => self.format != "int32" || i32::try_from(int).is_ok(),
            (Kind::Integer, Num::Float(float)) => {
                let limit = if self.format == "int32" { 2_147_483_648.0 } else { 9_223_372_036_854_775_808.0 };
                float.fract() == 0.0 && float >= -limit && float < limit
            }
            (Kind::Number, value) if self.format == "float" => value.as_float().abs() <= f64::from(f32::MAX),
            _ => true,
        }
    }

    fn sentence(&self, what: &str, path: &Path<'_>) -> String {
        let kind = self.kind.name();
        let format = match (self.kind, self.format) {
            (Kind::Integer, "int32" | "int64") | (Kind::Number, "float" | "double") => {
                format!("with format {}", self.format)
            }
            _ => "(default format)".to_owned(),
        };
        format!("{what} value must be of type {kind} {format} in {}", name(path))
    }
}
