//! All random values of one server, drawn from one seed.

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::ops::Range;

/// The characters kube-apiserver uses for generated names: no vowels, and no two that look alike.
const NAME_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A seeded source of uids, names and draws. Two servers with one seed and the same calls draw the same values.
#[derive(Debug)]
pub(crate) struct Chance(Mutex<StdRng>);

impl Chance {
    /// Returns a source whose draws all depend on `seed` alone.
    pub(crate) fn new(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }

    /// Returns a new version 4 UUID.
    pub(crate) fn uid(&self) -> String {
        let mut bytes: [u8; 16] = self.0.lock().random();
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let mut text = String::with_capacity(36);
        for (index, byte) in bytes.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            for digit in [byte >> 4, byte & 0x0f] {
                text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
            }
        }
        text
    }

    /// Returns the five characters appended to a `generateName`.
    pub(crate) fn name_suffix(&self) -> String {
        let mut random = self.0.lock();
        (0..5).map(|_| char::from(NAME_ALPHABET[random.random_range(0..NAME_ALPHABET.len())])).collect()
    }

    /// Returns a whole number in `range`.
    pub(crate) fn within(&self, range: Range<u64>) -> u64 {
        self.0.lock().random_range(range)
    }

    /// Draws whether an event of this probability happens now.
    pub(crate) fn happens(&self, probability: f64) -> bool {
        self.0.lock().random_bool(probability.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_draws_same_values() {
        let (one, two) = (Chance::new(7), Chance::new(7));
        assert_eq!(one.uid(), two.uid());
        assert_eq!(one.name_suffix(), two.name_suffix());
        assert_ne!(Chance::new(8).uid(), Chance::new(7).uid());
    }

    #[test]
    fn a_uid_is_a_version_4_uuid() {
        let uid = Chance::new(1).uid();
        let parts: Vec<_> = uid.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert_eq!(uid.as_bytes()[14], b'4');
    }
}
