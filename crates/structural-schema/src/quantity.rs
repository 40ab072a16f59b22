//! Resource quantities such as `1.5Gi`.

/// A resource quantity, compared by value: `1000m` equals `1`.
///
/// ```
/// use kube_structural_schema::Quantity;
/// assert_eq!(Quantity::parse("1000m"), Quantity::parse("1"));
/// assert!(Quantity::parse("1Gi") > Quantity::parse("1G"));
/// assert!(Quantity::parse("a lot").is_err());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity {
    pub(crate) nanos: i128,
}

pub(crate) const UNIT: i128 = 1_000_000_000;
const FORM: &str = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

impl Quantity {
    /// Parses a quantity. Fractions below a billionth are rounded away from zero.
    ///
    /// # Errors
    ///
    /// The error in the quantity, in the words of kube-apiserver.
    pub fn parse(text: &str) -> Result<Self, String> {
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
        // Excess digits are cut: they exceed the precision.
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

    pub(crate) fn as_int(self) -> Option<i64> {
        (self.nanos % UNIT == 0).then(|| i64::try_from(self.nanos / UNIT).ok()).flatten()
    }
}

/// Returns the power of 1024 and the power of ten of a suffix.
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
