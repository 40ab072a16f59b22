//! Quantities such as `1500m` or `8Gi`, in the canonical form that kube-apiserver writes.

mod text;

use self::text::{Notation, Parts};

/// The smallest power of ten that a quantity keeps.
const NANO: i32 = -9;
/// The smallest power of ten of a quantity in a list of resources.
const MILLI: i32 = -3;
/// The maximum number of digits for which kube-apiserver uses 64-bit integers.
const DIGITS: usize = 18;

/// A number times a power of ten.
#[derive(Debug, Clone, Copy)]
struct Amount {
    value: i128,
    scale: i32,
}

/// Returns the quantity in canonical form, or unchanged if it has too many digits for this module. Returns `None` if it
/// is invalid.
pub(crate) fn canonical(text: &str) -> Option<String> {
    let text = text.trim();
    let parts = Parts::of(text)?;
    let written = if parts.is_kept_as_written() {
        None
    } else {
        parts.amount().and_then(|(amount, notation)| written(amount, notation))
    };
    Some(written.unwrap_or_else(|| text.to_owned()))
}

/// Returns the quantity rounded up to a thousandth, or `None` if it needs no rounding.
pub(crate) fn rounded_up_to_milli(text: &str) -> Option<String> {
    let (amount, notation) = Parts::of(text)?.amount()?;
    let rounded = amount.rounded_up(MILLI);
    if rounded.scale == amount.scale || rounded.value.checked_mul(power(MILLI.abs_diff(amount.scale))?)? == amount.value
    {
        return None;
    }
    written(rounded, notation)
}

fn written(amount: Amount, notation: Notation) -> Option<String> {
    if amount.value == 0 {
        return Some("0".into());
    }
    match notation {
        Notation::Binary => match amount.whole().filter(|whole| whole.unsigned_abs() >= 1024) {
            Some(whole) => Some(binary(whole)),
            None => amount.decimal(Notation::Decimal),
        },
        notation => amount.decimal(notation),
    }
}

/// Formats a whole number with the largest binary suffix that keeps it whole.
fn binary(mut value: i128) -> String {
    let mut exponent = 0;
    while value % 1024 == 0 && value != 0 {
        value /= 1024;
        exponent += 1;
    }
    let suffix = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].get(exponent).copied().unwrap_or("");
    format!("{value}{suffix}")
}

impl Amount {
    /// Returns the amount as a whole number, if it is one.
    fn whole(self) -> Option<i128> {
        if self.scale >= 0 {
            return self.value.checked_mul(power(self.scale.unsigned_abs())?);
        }
        let divisor = power(self.scale.unsigned_abs())?;
        (self.value % divisor == 0).then_some(self.value / divisor)
    }

    /// Formats the amount as a whole number with the largest possible suffix for a power of a thousand.
    fn decimal(self, notation: Notation) -> Option<String> {
        let Self { mut value, mut scale } = self;
        while value % 10 == 0 && value != 0 {
            value /= 10;
            scale = scale.checked_add(1)?;
        }
        while scale % 3 != 0 {
            value = value.checked_mul(10)?;
            scale = scale.checked_sub(1)?;
        }
        Some(format!("{value}{}", notation.suffix(scale)))
    }

    /// Rounds away from zero to this unit.
    fn rounded_up(self, unit: i32) -> Self {
        if self.scale >= unit {
            return self;
        }
        let Some(divisor) = power(unit.abs_diff(self.scale)) else {
            return Self { value: self.value.signum(), scale: unit };
        };
        let more = if self.value % divisor == 0 { 0 } else { self.value.signum() };
        Self { value: self.value / divisor + more, scale: unit }
    }
}

impl Parts<'_> {
    /// Returns whether kube-apiserver keeps the string as written, because it looks canonical.
    fn is_kept_as_written(&self) -> bool {
        let digits = self.whole.len() + self.fraction.len();
        match self.notation {
            Notation::Binary => {
                let room = 14_i32.saturating_sub_unsigned(u32::try_from(self.whole.len()).unwrap_or(u32::MAX));
                let value: Option<i64> = self.whole.parse().ok();
                self.fraction.is_empty() && room >= self.exponent * 3 / 10 && value.is_some_and(|value| value & 7 != 0)
            }
            _ => {
                let all = || self.whole.bytes().chain(self.fraction.bytes());
                let scale = self.scale();
                digits <= DIGITS
                    && scale >= NANO
                    && scale % 3 == 0
                    && all().next().is_some_and(|first| first != b'0')
                    && !(digits >= 3 && all().skip(digits - 3).all(|digit| digit == b'0'))
            }
        }
    }

    /// Returns the power of ten of the last digit.
    fn scale(&self) -> i32 {
        let exponent = if self.notation == Notation::Binary { 0 } else { self.exponent };
        exponent.saturating_sub(i32::try_from(self.fraction.len()).unwrap_or(i32::MAX))
    }

    /// Returns the amount and its notation.
    fn amount(&self) -> Option<(Amount, Notation)> {
        let digits = format!("{}{}", self.whole, self.fraction);
        let value: i128 = digits.parse().ok()?;
        let (mut amount, notation) = match self.notation {
            Notation::Binary => self.binary_amount(value)?,
            notation => (Amount { value, scale: self.scale() }.rounded_up(NANO), notation),
        };
        if self.negative {
            amount.value = -amount.value;
        }
        Some((amount, notation))
    }

    /// Returns a binary amount: at most the largest 64-bit integer, and decimal below one.
    fn binary_amount(&self, value: i128) -> Option<(Amount, Notation)> {
        let most = Amount { value: i128::from(i64::MAX), scale: 0 };
        let Some(value) = value.checked_mul(1_i128 << self.exponent.clamp(0, 60)) else {
            // A number that overflows here exceeds the maximum, unless most of its digits are a fraction.
            return (self.fraction.len() < DIGITS).then_some((most, Notation::Binary));
        };
        let amount = Amount { value, scale: self.scale() }.rounded_up(NANO);
        let one = power(amount.scale.unsigned_abs())?;
        Some(match amount.value {
            value if value / one >= most.value => (most, Notation::Binary),
            value if value < one => (amount, Notation::Decimal),
            _ => (amount, Notation::Binary),
        })
    }
}

fn power(exponent: u32) -> Option<i128> {
    10_i128.checked_pow(exponent)
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn invalid_quantities_are_refused() {
        for text in ["", "1.2.3", "1 Gi", "abc", "1ki", "1e", "1ee3", "--1", "é", "1é"] {
            assert_eq!(canonical(text), None, "{text}");
        }
    }

    #[test]
    fn missing_digits_are_zero() {
        for text in ["-", "+", ".", "Ki", "-m"] {
            assert_eq!(canonical(text).as_deref(), Some("0"), "{text}");
        }
    }
}
