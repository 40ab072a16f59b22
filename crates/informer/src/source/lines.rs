//! Cuts the lines of a watch out of the bytes as they arrive.

use bytes::{Buf as _, Bytes, BytesMut};

use super::SourceError;
use crate::representation::KEPT_BUFFER;

/// Collects bytes and hands out whole lines, without their line ends.
///
/// A line inside one chunk is a slice of it; only a line that straddles chunks is copied. Holds at most one unfinished
/// line, and that no longer than the limit. Blanks in front of a line are none of it, so that they can come without end.
pub(crate) struct Lines {
    limit: usize,
    /// The start of a line whose end has not come yet. It does not begin with a blank.
    partial: BytesMut,
    /// What has come and is not yet handed out.
    chunk: Bytes,
}

impl Lines {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, partial: BytesMut::new(), chunk: Bytes::new() }
    }

    /// Takes the next chunk. The lines of the one before must have been taken out.
    pub(crate) fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty(), "lines are taken out before more bytes come");
        self.chunk = chunk;
    }

    /// The next whole line that is not blank, or `None` until more bytes come.
    ///
    /// # Errors
    ///
    /// [`SourceError::TooLarge`] once a line is over the limit, whether or not its end has come.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, SourceError> {
        if self.partial.is_empty() {
            let blank = self.chunk.len() - self.chunk.trim_ascii_start().len();
            self.chunk.advance(blank);
        }
        let end = memchr::memchr(b'\n', &self.chunk);
        let length = self.partial.len() + end.unwrap_or(self.chunk.len());
        if length > self.limit {
            return Err(SourceError::TooLarge { limit: self.limit });
        }
        let Some(end) = end else {
            self.partial.extend_from_slice(&self.chunk);
            self.chunk.clear();
            return Ok(None);
        };
        let mut line = self.chunk.split_to(end);
        self.chunk.advance(1);
        if !self.partial.is_empty() {
            self.partial.extend_from_slice(&line);
            line = whole(&mut self.partial);
        }
        Ok(Some(line))
    }

    /// True if nothing is left of an unfinished line.
    pub(crate) fn is_at_line_end(&self) -> bool {
        self.partial.is_empty()
    }
}

/// Takes out what has been collected. Where that was much, its buffer goes with it: it would stay as long as the watch.
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
                found.push(line.to_vec());
            }
        }
        Ok((found, lines.is_at_line_end()))
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_the_bytes_arrive(text in prop::collection::vec(prop::sample::select(&b"ab \r\n\n"[..]), 0..200), chunk in 1usize..40) {
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
    fn blanks_without_end_take_no_room() {
        let mut lines = Lines::new(10);
        for _ in 0..1000 {
            lines.push(Bytes::from_static(b" \r\n "));
            assert!(lines.next().unwrap().is_none() && lines.is_at_line_end());
            assert_eq!(lines.partial.len(), 0);
        }
    }

    #[test]
    fn an_endless_line_ends_at_the_limit() {
        assert!(matches!(lines(&[b'x'; 5000], 64, 1000), Err(SourceError::TooLarge { limit: 1000 })));
        assert!(lines(&[b'x'; 1000], 64, 1000).is_ok());
    }
}
