//! Compression with gzip: a whole answer as one member, a watch as one member for each piece.

use bytes::Bytes;
use flate2::write::GzEncoder;
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderValue, Response, header};
use http_body::Body as _;
use http_body_util::BodyDataStream;
use std::io::{self, Write};

use crate::message::reply::{Body, stream_body};

/// The size in bytes above which a body is compressed.
pub(crate) const THRESHOLD: usize = 128 * 1024;

/// Returns whether an `Accept-Encoding` header lists gzip.
pub(crate) fn accepts_gzip(header: &str) -> bool {
    header.split(',').any(|clause| {
        let mut parts = clause.split(';').map(str::trim);
        let refused = |part: &str| matches!(part, "q=0" | "q=0.0");
        parts.next() == Some("gzip") && !parts.any(refused)
    })
}

/// Returns one complete gzip member with `bytes`. A reader can decode all of them before the end of the member.
///
/// A reader that gets data and the end of a member together may look for the next member before it returns the data.
/// The next member of a watch may come much later. Go's reader does this, so client-go would otherwise miss the end of
/// its initial events.
pub(crate) fn gzip(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4 + 64), flate2::Compression::fast());
    // Writing into memory does not fail. If it did, the client would see a truncated member.
    let _ = encoder.write_all(bytes);
    let _ = encoder.flush();
    encoder.finish().unwrap_or_default().into()
}

/// The compression of an answer, applied when nothing changes the answer any more.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Compression {
    Answer,
    Watch,
}

/// Compresses an answer that is marked for it.
pub(crate) fn compress(mut response: Response<Body>) -> Response<Body> {
    match response.extensions_mut().remove::<Compression>() {
        Some(Compression::Answer) => compress_answer(response),
        Some(Compression::Watch) => compress_watch(response),
        None => response,
    }
}

/// Compresses a whole answer if it is large, chunk by chunk.
fn compress_answer(response: Response<Body>) -> Response<Body> {
    let size = response.body().size_hint().exact();
    if size.is_some_and(|size| size <= THRESHOLD as u64) {
        return response;
    }
    marked(response).map(|body| stream_body(one_member(BodyDataStream::new(body))))
}

/// Compresses a watch with one member for each piece, so that the client can always read everything sent so far.
fn compress_watch(response: Response<Body>) -> Response<Body> {
    let members = |body| BodyDataStream::new(body).map(|piece: io::Result<Bytes>| piece.map(|bytes| gzip(&bytes)));
    marked(response).map(|body| stream_body(members(body)))
}

fn marked(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    response
}

/// Compresses a stream as one gzip member.
fn one_member(body: BodyDataStream<Body>) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    stream::unfold((body, Some(encoder)), |(mut body, encoder)| async move {
        let mut encoder = encoder?;
        loop {
            match body.next().await {
                Some(Ok(bytes)) => {
                    if let Err(error) = encoder.write_all(&bytes) {
                        return Some((Err(error), (body, None)));
                    }
                    let ready = std::mem::take(encoder.get_mut());
                    if !ready.is_empty() {
                        return Some((Ok(Bytes::from(ready)), (body, Some(encoder))));
                    }
                }
                Some(Err(error)) => return Some((Err(error), (body, None))),
                None => return Some((encoder.finish().map(Bytes::from), (body, None))),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read as _;

    #[test]
    fn member_can_be_read_before_its_end() {
        let member = gzip(b"one event of a watch");
        // The empty last block of two bytes, a checksum and a length.
        let mut decoder = GzDecoder::new(&member[..member.len() - 10]);
        let mut text = Vec::new();
        assert!(decoder.read_to_end(&mut text).is_err());
        assert_eq!(text, b"one event of a watch");
    }

    #[test]
    fn gzip_is_used_only_if_listed() {
        for (header, expected) in
            [("gzip", true), ("deflate, gzip;q=0.5", true), ("identity", false), ("", false), ("gzip;q=0", false)]
        {
            assert_eq!(accepts_gzip(header), expected, "{header}");
        }
    }
}
