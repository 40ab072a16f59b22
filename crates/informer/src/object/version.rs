//! Resource versions, and their order.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A resource version of an object or of a whole collection.
///
/// Decimal numbers of any width compare; any other version is only equal to itself. Versions compare only within one
/// collection, and only until the API server is restored from an older state (an *epoch*).
///
/// ```
/// use kube_informer::ResourceVersion;
///
/// let (old, new) = (ResourceVersion::from("999"), ResourceVersion::from("1000"));
/// assert!(old.is_older_than(&new));
/// assert_eq!(ResourceVersion::from("abc").compare(&new), None);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ResourceVersion(Arc<str>);

impl ResourceVersion {
    /// Returns the version as the API server wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if the version is a number, so that it compares with others.
    pub fn is_number(&self) -> bool {
        is_canonical(&self.0)
    }

    /// Returns the order of both versions, or `None` if they do not compare.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        compare(&self.0, &other.0)
    }

    /// Returns true if both versions compare and this one is older.
    pub fn is_older_than(&self, other: &Self) -> bool {
        is_older(&self.0, &other.0)
    }

    /// Returns true if both versions compare (or are equal) and this one is not older.
    pub fn is_at_least(&self, other: &Self) -> bool {
        matches!(self.compare(other), Some(Ordering::Equal | Ordering::Greater))
    }
}

/// Returns true if both versions compare and the left one is older: the only place that decides this.
pub(crate) fn is_older(left: &str, right: &str) -> bool {
    compare(left, right) == Some(Ordering::Less)
}

/// Compares two versions as strings, without making values of them.
pub(crate) fn compare(left: &str, right: &str) -> Option<Ordering> {
    if left == right {
        return Some(Ordering::Equal);
    }
    if let (Some(left), Some(right)) = (pack(left), pack(right)) {
        return Some(left.cmp(&right));
    }
    let comparable = is_canonical(left) && is_canonical(right);
    comparable.then(|| left.len().cmp(&right.len()).then_with(|| left.cmp(right)))
}

/// Returns a value with the order of the number, if the version is a canonical number of at most 16 digits. All digits
/// are checked at once, because versions are compared several times per event.
fn pack(text: &str) -> Option<u128> {
    const HIGH: u128 = u128::from_ne_bytes([0xf0; 16]);
    const ZEROS: u128 = u128::from_ne_bytes([b'0'; 16]);
    const SIX: u128 = u128::from_ne_bytes([6; 16]);
    let text = text.as_bytes();
    let start = size_of::<u128>().checked_sub(text.len())?;
    if text.first().is_none_or(|first| *first == b'0') {
        return None;
    }
    let mut digits = ZEROS.to_be_bytes();
    digits[start..].copy_from_slice(text);
    let packed = u128::from_be_bytes(digits);
    // A digit is 0x30 to 0x39: its high half is 3, and is still 3 after six is added. No byte carries into the next if
    // both hold.
    let is_number = packed & HIGH == ZEROS && packed.wrapping_add(SIX) & HIGH == ZEROS;
    is_number.then_some(packed)
}

/// Returns true for a decimal number without leading zeros that is not zero.
fn is_canonical(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.starts_with(|first| first != '0')
}

impl From<&str> for ResourceVersion {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for ResourceVersion {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<u64> for ResourceVersion {
    fn from(number: u64) -> Self {
        Self(number.to_string().into())
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(left: &str, right: &str, expected: Option<Ordering>) {
        assert_eq!(compare(left, right), expected, "{left:?} against {right:?}");
        assert_eq!(compare(right, left), expected.map(Ordering::reverse), "{right:?} against {left:?}");
    }

    #[test]
    fn only_canonical_decimals_compare_with_each_other() {
        check("9", "10", Some(Ordering::Less));
        check("99999999999999999999999", "100000000000000000000000", Some(Ordering::Less));
        check("12", "12", Some(Ordering::Equal));
        check("abc", "abc", Some(Ordering::Equal));
        check("abc", "12", None);
        check("012", "13", None);
        check("", "13", None);
        check("0", "13", None);
        check("-1", "13", None);
        check("1:", "13", None);
        check("1/", "13", None);
        check("9\u{e9}", "13", None);
        check("9999999999999999", "10000000000000000", Some(Ordering::Less));
        check("1999999999999999", "9000000000000000", Some(Ordering::Less));
    }

    proptest! {
        #[test]
        fn versions_compare_as_their_numbers(left in 1u64.., right in 1u64..) {
            prop_assert_eq!(compare(&left.to_string(), &right.to_string()), Some(left.cmp(&right)));
        }

        #[test]
        fn a_string_is_packed_only_if_it_is_a_canonical_number(text in "[/0-9:]{0,17}|\\PC{0,5}") {
            prop_assert_eq!(pack(&text).is_some(), is_canonical(&text) && text.len() <= 16);
        }
    }
}
