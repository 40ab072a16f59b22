//! gzip, one finished member at a time.

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

/// One complete gzip member that holds `bytes`.
pub(crate) fn gzip(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4 + 64), Compression::fast());
    // Writing into memory does not fail; if it did, the client would see a member that is cut short.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default().into()
}
