//! Values in the notation that kube-apiserver prints.

use serde_json::{Number, Value};

/// Returns a string in quotes.
pub(crate) fn quote(text: &str) -> String {
    format!("{text:?}")
}

pub(crate) fn json(value: &Value) -> String {
    value.to_string()
}

/// A number as in kube-apiserver: a float, unless it is a 64-bit integer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Num {
    Int(i64),
    Float(f64),
}

pub(crate) fn number(number: &Number) -> Num {
    match number.as_i64() {
        Some(int) => Num::Int(int),
        None => Num::Float(number.as_f64().unwrap_or(0.0)),
    }
}

impl Num {
    pub(crate) fn as_float(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Float(float) => float,
        }
    }
}

/// Formats a float as `%v` does: with an exponent from a million on.
pub(crate) fn float(float: f64) -> String {
    let exponent = exponent(float);
    if float != 0.0 && float.is_finite() && !(-4..=5).contains(&exponent) { scientific(float, 2) } else { plain(float) }
}

/// Formats a float with all digits and without an exponent.
pub(crate) fn plain(float: f64) -> String {
    if float.is_nan() {
        "NaN".to_owned()
    } else if float.is_infinite() {
        (if float > 0.0 { "+Inf" } else { "-Inf" }).to_owned()
    } else {
        format!("{float}")
    }
}

fn exponent(float: f64) -> i32 {
    let text = format!("{float:e}");
    text.rsplit('e').next().and_then(|exponent| exponent.parse().ok()).unwrap_or(0)
}

fn scientific(float: f64, least_digits: usize) -> String {
    with_exponent_digits(&format!("{float:e}"), least_digits)
}

/// Changes `1.5e7` to `1.5e+07`.
pub(crate) fn with_exponent_digits(text: &str, least_digits: usize) -> String {
    let Some((digits, exponent)) = text.split_once('e') else {
        return text.to_owned();
    };
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>least_digits$}")
}
