//! Amounts of resources, as `1.5Gi`.

use super::functions::Args;
use super::meter::Fail;
use super::value::Val;

type Found<'v> = Result<Val<'v>, Fail>;

/// An amount, in billionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Quantity {
    nanos: i128,
}

const UNIT: i128 = 1_000_000_000;
const FORM: &str = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

impl Quantity {
    /// Reads an amount; what is finer than a billionth is rounded away from zero.
    ///
    /// # Errors
    ///
    /// The sentence that says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let negative = text.starts_with('-');
        let digits_end = unsigned.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(digits_end);
        if number.is_empty() {
            return Err(FORM.to_owned());
        }
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        if part.contains('.') {
            return Err(FORM.to_owned());
        }
        if whole.is_empty() && part.is_empty() {
            return Err("unable to parse numeric part of quantity".to_owned());
        }
        let (twos, tens) = scale(suffix)?;
        let digits: String = whole.chars().chain(part.chars()).collect();
        let digits = digits.trim_start_matches('0');
        // More digits than can matter are cut: they are beyond what is held exactly.
        let cut = digits.len().saturating_sub(30);
        let mut value: i128 = digits[..digits.len() - cut].parse().unwrap_or(0);
        let mut exponent = tens - part.len() as i32 + cut as i32 + 9;
        for _ in 0..twos {
            value = value.saturating_mul(1024);
        }
        while exponent > 0 && value != 0 {
            value = value.saturating_mul(10);
            exponent -= 1;
            if value == i128::MAX {
                break;
            }
        }
        let mut inexact = false;
        while exponent < 0 && value != 0 {
            inexact |= value % 10 != 0;
            value /= 10;
            exponent += 1;
        }
        value = value.saturating_add(i128::from(inexact));
        Ok(Self { nanos: if negative { -value } else { value } })
    }

    fn as_int(self) -> Option<i64> {
        (self.nanos % UNIT == 0).then(|| i64::try_from(self.nanos / UNIT).ok()).flatten()
    }
}

/// Powers of 1024 and of ten.
fn scale(suffix: &str) -> Result<(u32, i32), String> {
    let decimal = match suffix {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "" => 0,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        _ => {
            if let Some(power) = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].iter().position(|binary| *binary == suffix) {
                return Ok((power as u32 + 1, 0));
            }
            let exponent = suffix.strip_prefix(['e', 'E']).and_then(|digits| digits.parse::<i32>().ok());
            return match exponent.filter(|exponent| exponent.abs() <= 1000) {
                Some(exponent) => Ok((0, exponent)),
                None if suffix.chars().all(|char| "eEinumkKMGTP+-0123456789".contains(char)) => {
                    Err("unable to parse quantity's suffix".to_owned())
                }
                None => Err(FORM.to_owned()),
            };
        }
    };
    Ok((0, decimal))
}

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
