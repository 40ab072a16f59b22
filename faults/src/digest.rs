//! A short string for the content of a cache.

use std::fmt;

/// The number of objects, and the sum of a hash for each, which does not depend on the order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Digest {
    count: usize,
    sum: u64,
}

impl Digest {
    /// Adds the hash of an object.
    pub(crate) fn add(&mut self, number: u64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(number);
    }

    /// Removes the hash of an object that was added.
    pub(crate) fn remove(&mut self, number: u64) {
        self.count = self.count.saturating_sub(1);
        self.sum = self.sum.wrapping_sub(number);
    }
}

impl FromIterator<u64> for Digest {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Self {
        let mut digest = Self::default();
        numbers.into_iter().for_each(|number| digest.add(number));
        digest
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:016x}", self.count, self.sum)
    }
}

/// Returns a hash of an object's state: FNV-1a, which Go's library has too. The content is included, so that an object
/// without its content is different.
pub(crate) fn number(key: &str, uid: &str, version: &str, content: &str) -> u64 {
    let bytes = [key, "\n", uid, "\n", version, "\n", content].into_iter().flat_map(str::bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(objects: &[(&str, &str, &str)]) -> Digest {
        objects.iter().map(|(key, uid, version)| number(key, uid, version, "7")).collect()
    }

    #[test]
    fn a_digest_depends_on_the_content_and_not_on_the_order() {
        let whole = digest(&[("a/x", "1", "10"), ("a/y", "2", "11")]);
        assert_eq!(whole, digest(&[("a/y", "2", "11"), ("a/x", "1", "10")]));
        for other in [("a/y", "2", "12"), ("a/y", "3", "11"), ("b/y", "2", "11")] {
            assert_ne!(whole, digest(&[("a/x", "1", "10"), other]));
        }
        assert_ne!(whole, digest(&[("a/x", "1", "10")]));
        assert_ne!(number("a/x", "1", "10", "7"), number("a/x", "1", "10", ""));
    }

    #[test]
    fn removing_an_object_restores_the_digest() {
        let mut changed = digest(&[("a/x", "1", "10"), ("a/y", "2", "11")]);
        changed.remove(number("a/y", "2", "11", "7"));
        assert_eq!(changed, digest(&[("a/x", "1", "10")]));
        assert_eq!(changed.to_string().split_once(':').map(|(count, sum)| (count, sum.len())), Some(("1", 16)));
    }

    #[test]
    fn the_hash_equals_that_of_go() {
        // hash/fnv, New64a, of "a/x\n1\n10\n7".
        assert_eq!(number("a/x", "1", "10", "7"), 0x5870_2e6d_b332_ae3e);
    }
}
