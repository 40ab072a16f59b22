//! Splits the bytes of a watch into lines as they arrive.

use bytes::{Buf as _, Bytes, BytesMut};

use super::SourceError;
use crate::representation::KEPT_BUFFER;

/// A line that is this many times longer than the limit counts as endless, and the connection is closed.
const ENDLESS: usize = 16;
/// How many bytes of an object that is too large are kept, so that its key can be read.
const BEGINNING: usize = 1024 * 1024;

/// Returns how many bytes are kept of an object that is larger than this limit.
pub(super) fn beginning(limit: usize) -> usize {
    limit.min(BEGINNING)
}

/// Returns how many bytes are skipped at most of an object that is larger than this limit.
pub(super) fn most_passed_over(limit: usize) -> usize {
    limit.saturating_mul(ENDLESS)
}

/// A line of a watch, or an item of a list.
pub(crate) enum LinePiece {
    /// The complete line or item.
    Whole(Bytes),
    /// A line or item that is larger than the limit. The rest was skipped.
    TooLarge {
        /// The beginning: at most the first MiB.
        beginning: Bytes,
    },
}

impl LinePiece {
    /// Returns the bytes that were kept.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Whole(bytes) | Self::TooLarge { beginning: bytes } => bytes,
        }
    }
}

/// Collects bytes and returns lines, without their line ends.
///
/// A line inside one chunk is a slice of it; only a line that spans chunks is copied. This holds at most one unfinished
/// line of at most the limit. It keeps only the beginning of a longer line, and skips the rest. White space before a
/// line is dropped, so it may arrive without end.
pub(crate) struct Lines {
    limit: usize,
    /// The beginning of a line whose end has not arrived yet. It does not begin with white space.
    partial: BytesMut,
    /// How many bytes of that line were skipped because it is too long.
    passed_over: usize,
    /// Bytes that arrived and are not returned yet.
    chunk: Bytes,
}

impl Lines {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, partial: BytesMut::new(), passed_over: 0, chunk: Bytes::new() }
    }

    /// Takes the next chunk. All lines of the chunk before must have been taken out.
    pub(crate) fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty(), "lines are taken out before more bytes come");
        self.chunk = chunk;
    }

    /// Returns the next line that is not blank, or `None` until more bytes arrive.
    ///
    /// # Errors
    ///
    /// [`SourceError::TooLarge`] for a line that is many times longer than the limit.
    pub(crate) fn next(&mut self) -> Result<Option<LinePiece>, SourceError> {
        if self.is_at_line_end() {
            let blank = self.chunk.len() - self.chunk.trim_ascii_start().len();
            self.chunk.advance(blank);
        }
        let end = memchr::memchr(b'\n', &self.chunk);
        let rest = self.chunk.split_to(end.unwrap_or(self.chunk.len()));
        if end.is_some() {
            self.chunk.advance(1);
        }
        if self.partial.len() + rest.len() > self.limit || self.passed_over > 0 {
            if self.passed_over.saturating_add(rest.len()) > most_passed_over(self.limit) {
                return Err(SourceError::TooLarge { limit: self.limit });
            }
            let room = beginning(self.limit).saturating_sub(self.partial.len()).min(rest.len());
            self.partial.extend_from_slice(&rest[..room]);
            self.passed_over += rest.len();
            return Ok(end.map(|_| {
                self.passed_over = 0;
                LinePiece::TooLarge { beginning: std::mem::take(&mut self.partial).freeze() }
            }));
        }
        if end.is_none() {
            self.partial.extend_from_slice(&rest);
            return Ok(None);
        }
        if self.partial.is_empty() {
            return Ok(Some(LinePiece::Whole(rest)));
        }
        self.partial.extend_from_slice(&rest);
        Ok(Some(LinePiece::Whole(whole(&mut self.partial))))
    }

    /// Returns true if no unfinished line is left.
    pub(crate) fn is_at_line_end(&self) -> bool {
        self.partial.is_empty() && self.passed_over == 0
    }
}

/// Takes out the collected bytes. A large buffer is given away with them: otherwise it would be kept as long as the
/// watch.
pub(super) fn whole(partial: &mut BytesMut) -> Bytes {
    if partial.len() > KEPT_BUFFER { std::mem::take(partial).freeze() } else { partial.split().freeze() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(text: &[u8], chunk: usize, limit: usize) -> Result<(Vec<Vec<u8>>, bool), SourceError> {
        let (mut lines, mut found) = (Lines::new(limit), Vec::new());
        for chunk in text.chunks(chunk) {
            lines.push(Bytes::copy_from_slice(chunk));
            while let Some(line) = lines.next()? {
                found.push(line.bytes().to_vec());
            }
        }
        Ok((found, lines.is_at_line_end()))
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_the_bytes_are_split_into_chunks(text in prop::collection::vec(prop::sample::select(&b"ab \r\n\n"[..]), 0..200), chunk in 1usize..40) {
            let mut expected: Vec<Vec<u8>> = text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            let rest = expected.pop().unwrap_or_default();
            expected.retain(|line| !line.trim_ascii().is_empty());
            let expected: Vec<Vec<u8>> = expected.iter().map(|line| line.trim_ascii_start().to_vec()).collect();
            prop_assert_eq!(lines(&text, chunk, 1000).unwrap(), (expected, rest.trim_ascii().is_empty()));
        }
    }

    #[test]
    fn the_buffer_of_a_huge_line_is_not_kept() {
        let mut lines = Lines::new(usize::MAX);
        for chunk in [&vec![b'x'; 2 * KEPT_BUFFER][..], b"x\n"] {
            lines.push(Bytes::copy_from_slice(chunk));
            drop(lines.next().unwrap());
        }
        lines.partial.reserve(1);
        assert!(lines.partial.capacity() < KEPT_BUFFER, "{} bytes", lines.partial.capacity());
    }

    #[test]
    fn endless_white_space_takes_no_memory() {
        let mut lines = Lines::new(10);
        for _ in 0..1000 {
            lines.push(Bytes::from_static(b" \r\n "));
            assert!(lines.next().unwrap().is_none() && lines.is_at_line_end());
            assert_eq!(lines.partial.len(), 0);
        }
    }

    #[test]
    fn a_line_above_the_limit_is_skipped_and_the_next_is_returned() {
        let text = [&[b'x'; 5000][..], b"\nnext\n"].concat();
        for chunk in [1, 64, 999, 1000, 1001, 5000, 6000] {
            let (found, at_end) = lines(&text, chunk, 1000).unwrap();
            assert_eq!((found[0].len(), &found[1][..], at_end), (1000, &b"next"[..], true), "{chunk}");
        }
        assert_eq!(lines(&[b'x'; 1000], 64, 1000).unwrap(), (Vec::new(), false));
    }

    #[test]
    fn a_line_that_does_not_end_is_an_error() {
        let mut lines = Lines::new(10);
        lines.passed_over = most_passed_over(10);
        lines.push(Bytes::from_static(b"xxxx"));
        assert!(matches!(lines.next(), Err(SourceError::TooLarge { limit: 10 })));
    }
}
