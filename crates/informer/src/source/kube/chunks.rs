//! The body of a response as it arrives: JSON, whatever its content type and encoding are.

use std::io::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use http::{Response, header};
use http_body_util::BodyExt as _;
use kube_client::client::Body;

use crate::source::{ByteMeter, SourceError};

/// How many bytes are decompressed at a time. They become at most a thousand times as many.
const PIECE: usize = 4096;

/// The body of a response, one chunk at a time.
pub(super) struct BodyChunks {
    body: Body,
    /// Set if the API server compresses, although the request asked for no compression.
    unpack: Option<MultiGzDecoder<Vec<u8>>>,
    /// Bytes that arrived and are not decompressed yet.
    packed: Bytes,
    /// The content type, if it is not JSON, until the first byte shows that the body is JSON nevertheless.
    doubtful: Option<String>,
}

impl BodyChunks {
    /// Reads the body of a successful response.
    ///
    /// # Errors
    ///
    /// [`SourceError::NotJson`] if the encoding is not supported.
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

    /// Returns the next chunk, or `None` at the end.
    ///
    /// # Errors
    ///
    /// [`SourceError::NotJson`] if the content type is not JSON, and the first byte is not that of an object either.
    /// The content type may be wrong, but no page of a proxy begins like an object.
    pub(super) async fn next(&mut self, meter: &ByteMeter) -> Result<Option<Bytes>, SourceError> {
        let Some(chunk) = self.receive().await? else { return Ok(None) };
        // White space is no progress, however much arrives.
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
                Err(_) => {} // Trailers are ignored.
            }
        }
        // The last gzip member must be complete.
        match self.unpack.as_mut().map(MultiGzDecoder::try_finish) {
            Some(Err(error)) => Err(SourceError::Interrupted(Arc::new(error))),
            _ => Ok(None),
        }
    }
}
