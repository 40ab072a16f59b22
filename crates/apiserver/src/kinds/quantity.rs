//! Quantities such as `1500m` or `8Gi`, in the canonical form that kube-apiserver writes.

/// The smallest power of ten that a quantity keeps.
const NANO: i32 = -9;
/// The smallest power of ten of a quantity in a list of resources.
const MILLI: i32 = -3;
/// More digits than any value has.
const DIGITS: usize = 30;

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// The kind of suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notation {
    /// `k`, `M`, `m` and so on.
    Decimal,
    /// `Ki`, `Mi` and so on.
    Binary,
    /// `e6`.
    Exponent,
}

/// A number times a power of ten.
#[derive(Debug, Clone, Copy)]
struct Amount {
    value: i128,
    scale: i32,
    notation: Notation,
}

/// Returns the canonical form of a quantity, or `None` if it is invalid. A quantity with too many digits stays as it is.
pub(crate) fn canonical(text: &str) -> Option<String> {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    match parsed(text) {
        Some(amount) => Some(amount.rounded_up(NANO).and_then(Amount::text).unwrap_or_else(|| text.to_owned())),
        None if digits > DIGITS && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)) => {
            Some(text.to_owned())
        }
        None => None,
    }
}

/// Returns the quantity rounded up to a thousandth, or `None` if it needs no rounding.
pub(crate) fn rounded_up_to_milli(text: &str) -> Option<String> {
    let amount = parsed(text)?.rounded_up(NANO)?;
    let rounded = amount.rounded_up(MILLI)?;
    (rounded.text() != amount.text()).then(|| rounded.text()).flatten()
}

fn parsed(text: &str) -> Option<Amount> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let split = |text: &'_ str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = unsigned.split_at(split(unsigned));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(split(rest)),
        None => ("", rest),
    };
    let (notation, binary, power) = match (DECIMAL.iter().find(|(name, _)| *name == suffix), suffix) {
        (Some((_, power)), _) => (Notation::Decimal, 0, *power),
        (None, suffix) => match BINARY.iter().position(|name| *name == suffix) {
            Some(exponent) => (Notation::Binary, exponent, 0),
            None => (Notation::Exponent, 0, suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
        },
    };
    if text.is_empty() || whole.len() + fraction.len() > DIGITS {
        return None;
    }
    // As in kube-apiserver, missing digits are zero.
    let value: i128 = format!("0{whole}{fraction}").parse().ok()?;
    let value = value.checked_mul(1024_i128.pow(u32::try_from(binary).ok()?))?;
    let scale = power.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    Some(Amount { value: if text.starts_with('-') { -value } else { value }, scale, notation })
}

impl Amount {
    /// Rounds away from zero to this power of ten.
    fn rounded_up(self, unit: i32) -> Option<Self> {
        if self.scale >= unit {
            return Some(self);
        }
        let Some(divisor) = 10_i128.checked_pow(unit.abs_diff(self.scale)) else {
            return Some(Self { value: self.value.signum(), scale: unit, ..self });
        };
        let more = if self.value % divisor == 0 { 0 } else { self.value.signum() };
        Some(Self { value: self.value / divisor + more, scale: unit, ..self })
    }

    /// Formats the amount with the largest suffix that keeps it whole, or returns `None` if it is too large for that.
    fn text(self) -> Option<String> {
        let Self { mut value, mut scale, mut notation } = self;
        if value == 0 {
            return Some("0".to_owned());
        }
        while value % 10 == 0 {
            value /= 10;
            scale = scale.checked_add(1)?;
        }
        if notation == Notation::Binary {
            let whole =
                10_i128.checked_pow(u32::try_from(scale).unwrap_or(0)).and_then(|power| value.checked_mul(power));
            match whole.filter(|whole| scale >= 0 && whole.unsigned_abs() >= 1024) {
                Some(whole) => return Some(binary_text(whole)),
                None => notation = Notation::Decimal,
            }
        }
        while scale % 3 != 0 {
            value = value.checked_mul(10)?;
            scale = scale.checked_sub(1)?;
        }
        Some(match (notation, DECIMAL.iter().find(|(_, power)| *power == scale)) {
            (Notation::Exponent, _) if scale != 0 => format!("{value}e{scale}"),
            (_, suffix) => format!("{value}{}", suffix.map_or("", |(name, _)| name)),
        })
    }
}

/// Formats a whole number with the largest binary suffix that keeps it whole, and at most the largest 64-bit integer.
fn binary_text(mut value: i128) -> String {
    let most = i128::from(i64::MAX);
    value = value.clamp(-most, most);
    let mut exponent = 0;
    while value % 1024 == 0 && exponent + 1 < BINARY.len() {
        value /= 1024;
        exponent += 1;
    }
    format!("{value}{}", BINARY[exponent])
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
