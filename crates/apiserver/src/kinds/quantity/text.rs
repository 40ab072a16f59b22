//! The parts of a quantity as written: sign, digits and suffix.

/// The kind of suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    /// `k`, `M`, `m` and so on.
    Decimal,
    /// `Ki`, `Mi` and so on.
    Binary,
    /// `e6`.
    Exponent,
}

/// The parts of a quantity.
pub(super) struct Parts<'a> {
    pub(super) negative: bool,
    /// The digits before the point, without leading zeros; one zero if none are left and there is no fraction.
    pub(super) whole: &'a str,
    pub(super) fraction: &'a str,
    pub(super) notation: Notation,
    /// The exponent: of two for binary suffixes, of ten for the others.
    pub(super) exponent: i32,
}

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, i32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

impl<'a> Parts<'a> {
    /// Splits the string, or returns `None` if it is not a quantity.
    pub(super) fn of(text: &'a str) -> Option<Self> {
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let negative = text.starts_with('-');
        let (digits, rest) = split_digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        // kube-apiserver reads a single sign or a single suffix as zero.
        if text.is_empty() {
            return None;
        }
        let (notation, exponent) = Notation::read(suffix)?;
        let whole = match digits.trim_start_matches('0') {
            "" => "0",
            stripped => stripped,
        };
        Some(Self { negative, whole, fraction, notation, exponent })
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

impl Notation {
    fn read(suffix: &str) -> Option<(Self, i32)> {
        let among = |table: &[(&str, i32)]| table.iter().find(|(name, _)| *name == suffix).map(|(_, power)| *power);
        if let Some(exponent) = among(&DECIMAL) {
            return Some((Self::Decimal, exponent));
        }
        if let Some(exponent) = among(&BINARY) {
            return Some((Self::Binary, exponent));
        }
        let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
        Some((Self::Exponent, exponent))
    }

    /// Returns the suffix for that power of ten. The largest suffix is for 18; kube-apiserver writes none beyond it.
    pub(super) fn suffix(self, exponent: i32) -> String {
        if self == Self::Exponent {
            return if exponent == 0 { String::new() } else { format!("e{exponent}") };
        }
        DECIMAL.iter().find(|(_, power)| *power == exponent).map_or("", |(name, _)| name).into()
    }
}
