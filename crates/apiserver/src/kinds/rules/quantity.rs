//! Amounts of resources such as `500m` or `1Gi`: compared by value, and written in one canonical form.

use std::fmt;

/// Nothing finer than this is kept.
const NANOS: i128 = 1_000_000_000;
/// Larger amounts of more than a few digits count as this one.
const LARGEST: i128 = i64::MAX as i128 * NANOS;
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// How an amount is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Decimal,
    Exponent,
    Binary,
}

/// An amount of a resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quantity {
    nanos: i128,
    format: Format,
}

impl Quantity {
    /// Nothing at all.
    pub(crate) const ZERO: Self = Self { nanos: 0, format: Format::Decimal };

    /// Reads an amount.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let end = unsigned.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(unsigned.len());
        let (digits, suffix) = unsigned.split_at(end);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let (tens, twos, format) = scale(suffix)?;
        let significant = format!("{whole}{fraction}");
        let significant = significant.trim_start_matches('0');
        if significant.len() > 36 {
            return None;
        }
        let value: i128 = if significant.is_empty() { 0 } else { significant.parse().ok()? };
        let tens = tens.checked_add(9)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        // Short numbers are kept as they are; the others go through a longer way, at whose end is a bound.
        let is_short = format != Format::Binary && significant.len() <= 18 && tens >= 0;
        let nanos = scaled(value, tens, twos).filter(|nanos| is_short || *nanos <= LARGEST).unwrap_or(LARGEST);
        Some(Self { nanos: if text.starts_with('-') { -nanos } else { nanos }, format })
    }

    /// The same, without what is finer than a thousandth.
    #[must_use]
    pub(crate) fn rounded_up(self) -> Self {
        let unit = NANOS / 1000;
        let rest = self.nanos % unit;
        let up = if rest == 0 { 0 } else { unit * rest.signum() };
        Self { nanos: self.nanos - rest + up, ..self }
    }

    /// Both together, written as the first is.
    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        let format = if self.nanos == 0 { other.format } else { self.format };
        // Both signs have the same bound, so that an amount can always be turned around.
        Self { nanos: self.nanos.saturating_add(other.nanos).max(-i128::MAX), format }
    }

    /// Compares by value: `1000m` is `1`.
    pub(crate) fn value(self) -> i128 {
        self.nanos
    }
}

/// The powers of ten and of two that a suffix stands for.
fn scale(suffix: &str) -> Option<(i32, u32, Format)> {
    if let Some((_, tens)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((*tens, 0, Format::Decimal));
    }
    if let Some(power) = BINARY.iter().position(|name| *name == suffix) {
        return Some((0, u32::try_from(power).ok()? * 10, Format::Binary));
    }
    let tens: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    (-60..=60).contains(&tens).then_some((tens, 0, Format::Exponent))
}

/// A value times powers of ten and two, rounded away from zero; `None` if that is too large.
fn scaled(value: i128, tens: i32, twos: u32) -> Option<i128> {
    let value = value.checked_mul(1_i128.checked_shl(twos)?)?;
    let factor = 10_i128.checked_pow(tens.unsigned_abs());
    if tens >= 0 {
        return if value == 0 { Some(0) } else { value.checked_mul(factor?) };
    }
    let Some(factor) = factor else { return Some(i128::from(value != 0)) };
    Some(value / factor + i128::from(value % factor != 0))
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return formatter.write_str("0");
        }
        let is_large = self.nanos.abs() >= 1024 * NANOS;
        if self.format == Format::Binary && is_large && self.nanos % NANOS == 0 {
            let (mut value, mut power) = (self.nanos / NANOS, 0);
            while value % 1024 == 0 && power + 1 < BINARY.len() {
                (value, power) = (value / 1024, power + 1);
            }
            return write!(formatter, "{value}{}", BINARY[power]);
        }
        let (mut value, mut tens) = (self.nanos, -9);
        while value % 1000 == 0 && tens < 18 {
            (value, tens) = (value / 1000, tens + 3);
        }
        match DECIMAL.iter().find(|(_, power)| *power == tens) {
            Some((_, power)) if self.format == Format::Exponent && *power != 0 => write!(formatter, "{value}e{power}"),
            Some((suffix, _)) if self.format != Format::Exponent => write!(formatter, "{value}{suffix}"),
            _ => write!(formatter, "{value}"),
        }
    }
}
