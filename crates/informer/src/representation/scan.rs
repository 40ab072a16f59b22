//! Skips JSON values without parsing them, sixty-four bytes at a time.

use wide::u8x16;

/// A scanner that skips one JSON value. The value may arrive in any number of pieces, and each byte is scanned once.
///
/// Only brackets and quotes are checked. The code that decodes the value checks the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passing {
    Text(InString),
    /// An object or an array.
    Nested(Nested),
    /// A number, `true`, `false` or `null`. It ends before the first byte that does not belong to it.
    Word,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InString {
    /// Before the opening quote.
    Before,
    Inside,
    /// After a backslash.
    Escaped,
}

/// The position in an object or an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Nested {
    /// How many brackets are open.
    depth: usize,
    in_text: bool,
    /// True if the next byte is after a backslash.
    escaped: bool,
}

const BLOCK: usize = 64;

impl Passing {
    /// Makes a scanner for a value that begins with this byte.
    pub(crate) fn from(first: u8) -> Self {
        match first {
            b'"' => Self::Text(InString::Before),
            b'{' | b'[' => Self::Nested(Nested::default()),
            _ => Self::Word,
        }
    }

    /// Returns the end of the value, as an offset into this piece, or `None` if the value continues in the next piece.
    /// The first piece must begin with the value.
    pub(crate) fn end_in(&mut self, piece: &[u8]) -> Option<usize> {
        match self {
            Self::Text(text) => text.end_in(piece),
            Self::Nested(nested) => nested.end_in(piece),
            Self::Word => piece.iter().position(|byte| is_blank(*byte) || matches!(byte, b',' | b'}' | b']')),
        }
    }
}

impl InString {
    fn end_in(&mut self, piece: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < piece.len() {
            match self {
                Self::Before | Self::Escaped => *self = Self::Inside,
                Self::Inside => {
                    at += memchr::memchr2(b'"', b'\\', &piece[at..])?;
                    if piece[at] == b'"' {
                        return Some(at + 1);
                    }
                    *self = Self::Escaped;
                }
            }
            at += 1;
        }
        None
    }
}

impl Nested {
    fn end_in(&mut self, piece: &[u8]) -> Option<usize> {
        let (blocks, rest) = piece.as_chunks::<BLOCK>();
        for (number, block) in blocks.iter().enumerate() {
            if let Some(end) = self.end_in_block(block, BLOCK) {
                return Some(number * BLOCK + end);
            }
        }
        if rest.is_empty() {
            return None;
        }
        let mut block = [b' '; BLOCK];
        block[..rest.len()].copy_from_slice(rest);
        self.end_in_block(&block, rest.len()).map(|end| blocks.len() * BLOCK + end)
    }

    /// Scans one block, of which the first `length` bytes are valid.
    fn end_in_block(&mut self, block: &[u8; BLOCK], length: usize) -> Option<usize> {
        let Marks { quotes, backslashes, opening, closing } = Marks::of(block);
        let quotes = quotes & !self.escapes(backslashes, length);
        // Each quote sets the bits up to the next quote: the bytes inside strings.
        let texts = up_to_next(quotes) ^ if self.in_text { u64::MAX } else { 0 };
        self.in_text = texts >> (BLOCK - 1) == 1;
        let (mut opening, mut closing) = (opening & !texts, closing & !texts);
        if (closing.count_ones() as usize) < self.depth {
            self.depth = self.depth + opening.count_ones() as usize - closing.count_ones() as usize;
            return None;
        }
        // The value may end in this block, so each closing bracket is checked.
        while closing != 0 {
            let end = closing.trailing_zeros();
            let before = opening & ((1 << end) - 1);
            self.depth += before.count_ones() as usize;
            if self.depth <= 1 {
                return Some(end as usize + 1);
            }
            self.depth -= 1;
            (opening, closing) = (opening ^ before, closing & (closing - 1));
        }
        self.depth += opening.count_ones() as usize;
        None
    }

    /// Returns the bytes that are escaped: those after a backslash that is not escaped itself.
    fn escapes(&mut self, mut backslashes: u64, length: usize) -> u64 {
        let mut escapes = u64::from(std::mem::take(&mut self.escaped));
        backslashes &= !escapes;
        while backslashes != 0 {
            let behind = backslashes.trailing_zeros() as usize + 1;
            self.escaped = behind == length;
            // The last byte of the block has no byte after it.
            let escape = 1_u64.checked_shl(behind as u32).unwrap_or(0);
            escapes |= escape;
            backslashes &= backslashes - 1;
            backslashes &= !escape;
        }
        escapes
    }
}

/// Bit masks of the special bytes of a block. The first byte is the lowest bit.
struct Marks {
    quotes: u64,
    backslashes: u64,
    opening: u64,
    closing: u64,
}

impl Marks {
    fn of(block: &[u8; BLOCK]) -> Self {
        let mut marks = Self { quotes: 0, backslashes: 0, opening: 0, closing: 0 };
        let (parts, _) = block.as_chunks::<16>();
        for (number, part) in parts.iter().enumerate() {
            let bytes = u8x16::new(*part);
            let is =
                |bytes: u8x16, byte: u8| u64::from(bytes.simd_eq(u8x16::splat(byte)).to_bitmask()) << (16 * number);
            // Braces and brackets differ only in this bit.
            let brackets = bytes | u8x16::splat(b'{' ^ b'[');
            marks.quotes |= is(bytes, b'"');
            marks.backslashes |= is(bytes, b'\\');
            marks.opening |= is(brackets, b'{');
            marks.closing |= is(brackets, b'}');
        }
        marks
    }
}

/// Sets each bit from a one up to the next one, excluding that one.
fn up_to_next(mut ones: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        ones ^= ones << shift;
    }
    ones
}

/// Returns true for JSON white space.
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Finds the end of a value byte by byte.
    fn reference(value: &[u8]) -> Option<usize> {
        let (mut depth, mut in_text, mut escaped) = (0_i64, false, false);
        for (at, byte) in value.iter().enumerate() {
            let behind_backslash = escaped;
            escaped = *byte == b'\\' && !behind_backslash;
            match byte {
                b'"' if !behind_backslash => in_text = !in_text,
                b'{' | b'[' if !in_text => depth += 1,
                b'}' | b']' if !in_text => depth -= 1,
                _ => continue,
            }
            if depth <= 0 && !in_text {
                return Some(at + 1);
            }
        }
        None
    }

    fn in_pieces(value: &[u8], size: usize) -> Option<usize> {
        let (mut passing, mut before) = (Passing::from(*value.first()?), 0);
        for piece in value.chunks(size) {
            if let Some(end) = passing.end_in(piece) {
                return Some(before + end);
            }
            before += piece.len();
        }
        None
    }

    proptest! {
        #[test]
        fn a_value_ends_at_its_matching_bracket_or_quote(
            first in prop::sample::select(&b"{[\""[..]),
            rest in prop::collection::vec(prop::sample::select(&br#"{}[]""\\a1:, "#[..]), 0..400),
            size in 1usize..200,
        ) {
            let value = [&[first], &rest[..]].concat();
            prop_assert_eq!(in_pieces(&value, size), reference(&value), "{}", String::from_utf8_lossy(&value));
            prop_assert_eq!(in_pieces(&value, 1), reference(&value));
        }
    }

    #[test]
    fn long_strings_with_escapes_at_every_offset_are_skipped() {
        for length in 0..200 {
            let value = format!(r#"{{"{}\"]}}\\":[1]}} rest"#, "x".repeat(length));
            assert_eq!(in_pieces(value.as_bytes(), 4096), Some(value.len() - 5), "{value}");
        }
    }

    #[test]
    fn a_word_ends_before_the_first_byte_that_does_not_belong_to_it() {
        assert_eq!(in_pieces(b"true,", 2), Some(4));
        assert_eq!(in_pieces(b"-1.5e3}", 3), Some(6));
        assert_eq!(in_pieces(b"null", 3), None);
    }
}
