//! Random numbers from a seed that do not depend on the version of a library.

/// The generator SplitMix64: small, and good enough for names and digests.
pub(crate) struct Chance(u64);

impl Chance {
    /// Creates a generator from a seed, for one part of the data and one number in it.
    pub(crate) fn new(seed: u64, part: &str, number: usize) -> Self {
        let mixed = part.bytes().fold(seed, |mixed, byte| Self(mixed ^ u64::from(byte)).next());
        Self(Self(mixed ^ number as u64).next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// Returns this many hexadecimal digits.
    pub(crate) fn hex(&mut self, digits: usize) -> String {
        let mut text = String::with_capacity(digits + 16);
        while text.len() < digits {
            text += &format!("{:016x}", self.next());
        }
        text.truncate(digits);
        text
    }

    /// Shuffles a slice.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_and_its_parts_differ() {
        let hex = |seed, part, number| Chance::new(seed, part, number).hex(20);
        assert_eq!(hex(1, "pod", 7), hex(1, "pod", 7));
        assert_eq!(hex(1, "pod", 7).len(), 20);
        let others = [hex(2, "pod", 7), hex(1, "node", 7), hex(1, "pod", 8)];
        assert!(others.iter().all(|other| *other != hex(1, "pod", 7)));
    }

    // bench/go/informer shuffles in the same way and has the same test.
    #[test]
    fn keys_are_shuffled_as_in_the_go_program() {
        let mut numbers: Vec<_> = (0..10).collect();
        Chance::new(7, "keys", 0).shuffle(&mut numbers);
        assert_eq!(numbers, [8, 9, 3, 6, 5, 2, 1, 0, 7, 4]);
    }

    #[test]
    fn shuffling_keeps_all_items() {
        let mut numbers: Vec<_> = (0..100).collect();
        Chance::new(1, "order", 0).shuffle(&mut numbers);
        assert_ne!(numbers, (0..100).collect::<Vec<_>>());
        numbers.sort_unstable();
        assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    }
}
