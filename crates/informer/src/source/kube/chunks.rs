//! The body of an answer as it arrives: JSON, whatever the server calls it and however it packs it.

use std::io::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use http::{Response, header};
use http_body_util::BodyExt as _;
use kube_client::client::Body;

use crate::source::{ByteMeter, SourceError};

/// So many bytes are unpacked at a time: a thousand times as many, at most, come of them.
const PIECE: usize = 4096;

/// The body of an answer, a chunk at a time.
pub(super) struct BodyChunks {
    body: Body,
    /// Set if the server compresses, though it was asked not to.
    unpack: Option<MultiGzDecoder<Vec<u8>>>,
    /// Bytes that came and are not unpacked yet.
    packed: Bytes,
    /// What the server calls it, if that is not JSON, until it is known to be JSON all the same.
    doubtful: Option<String>,
}

impl BodyChunks {
    /// The body of a successful answer.
    ///
    /// # Errors
    ///
    /// [`SourceError::NotJson`] if it is packed in a way that cannot be read.
    pub(super) fn of(response: Response<Body>) -> Result<Self, SourceError> {
        let text =
            |name| response.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let unpack = match text(header::CONTENT_ENCODING).as_deref() {
            None | Some("" | "identity") => None,
            Some("gzip" | "x-gzip") => Some(MultiGzDecoder::new(Vec::new())),
            Some(other) => return Err(SourceError::NotJson { content_type: format!("content encoded as {other}") }),
        };
        let doubtful = text(header::CONTENT_TYPE).filter(|content_type| !content_type.contains("json"));
        Ok(Self { body: response.into_body(), unpack, packed: Bytes::new(), doubtful })
    }

    /// The next chunk, or `None` at the end.
    ///
    /// # Errors
    ///
    /// [`SourceError::NotJson`] if the server says that it is something else, and it is. A media type may be wrong; the first byte
    /// tells: no page of a proxy begins like an object.
    pub(super) async fn next(&mut self, meter: &ByteMeter) -> Result<Option<Bytes>, SourceError> {
        let Some(chunk) = self.receive().await? else { return Ok(None) };
        // Blanks are no progress, however many come.
        let filled = chunk.trim_ascii();
        meter.add(filled.len());
        match (filled.first(), self.doubtful.take()) {
            (Some(first), Some(content_type)) if *first != b'{' => return Err(SourceError::NotJson { content_type }),
            (None, doubtful) => self.doubtful = doubtful,
            _ => {}
        }
        Ok(Some(chunk))
    }

    async fn receive(&mut self) -> Result<Option<Bytes>, SourceError> {
        loop {
            if let Some(unpack) = self.unpack.as_mut().filter(|_| !self.packed.is_empty()) {
                let piece = self.packed.split_to(self.packed.len().min(PIECE));
                let unpacked = unpack.write_all(&piece).and_then(|()| unpack.flush());
                unpacked.map_err(|error| SourceError::Interrupted(Arc::new(error)))?;
                let unpacked = std::mem::take(unpack.get_mut());
                if !unpacked.is_empty() {
                    return Ok(Some(unpacked.into()));
                }
                continue;
            }
            let Some(frame) = self.body.frame().await else { break };
            let frame = frame.map_err(|error| SourceError::Interrupted(Arc::new(error)))?;
            match frame.into_data() {
                Ok(data) if self.unpack.is_some() => self.packed = data,
                Ok(data) => return Ok(Some(data)),
                Err(_) => {} // Trailers are of no interest.
            }
        }
        // The last member must be complete.
        match self.unpack.as_mut().map(MultiGzDecoder::try_finish) {
            Some(Err(error)) => Err(SourceError::Interrupted(Arc::new(error))),
            _ => Ok(None),
        }
    }
}
