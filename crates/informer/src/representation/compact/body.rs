//! The compressed JSON of an object.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::{DecodeError, KEPT_BUFFER};
use super::dictionary::{Dictionary, Training, decompress};

/// The JSON of an object, without managed fields.
#[derive(Clone)]
pub(super) enum CompactBody {
    Raw(Box<[u8]>),
    Packed { bytes: Box<[u8]>, length: u32, dictionary: Arc<Dictionary> },
}

/// The state that the bodies of one informer share.
pub(super) struct Bodies {
    /// `None` if this informer does not compress.
    training: Option<Training>,
    raw_bytes: AtomicU64,
    stored_bytes: AtomicU64,
}

thread_local! {
    /// The buffer into which one read decompresses.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Bodies {
    pub(super) fn new(compressed: bool) -> Self {
        let (raw_bytes, stored_bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { training: compressed.then(Training::default), raw_bytes, stored_bytes }
    }

    /// Stores the JSON in as few bytes as possible.
    pub(super) fn keep(&self, json: &str) -> CompactBody {
        let body = self.pack(json.as_bytes());
        self.raw_bytes.fetch_add(json.len() as u64, Ordering::Relaxed);
        self.stored_bytes.fetch_add(body.stored() as u64, Ordering::Relaxed);
        body
    }

    fn pack(&self, json: &[u8]) -> CompactBody {
        let packed = self.training.as_ref().and_then(|training| training.compress(json));
        match (packed, u32::try_from(json.len())) {
            (Some((bytes, dictionary)), Ok(length)) => CompactBody::Packed { bytes, length, dictionary },
            _ => CompactBody::Raw(json.into()),
        }
    }

    pub(super) fn figures(&self) -> Vec<(&'static str, f64)> {
        let (raw, stored) = (self.raw_bytes.load(Ordering::Relaxed), self.stored_bytes.load(Ordering::Relaxed));
        let dictionaries = self.training.as_ref().map_or(0, Training::generations);
        let ratio = if raw == 0 { 1.0 } else { stored as f64 / raw as f64 };
        vec![("compact_ratio", ratio), ("compact_dictionaries", dictionaries as f64)]
    }
}

impl CompactBody {
    /// Decompresses the JSON, and calls a function with it.
    pub(super) fn with<R>(&self, read: impl FnOnce(&[u8]) -> Result<R, DecodeError>) -> Result<R, DecodeError> {
        let (bytes, length, dictionary) = match self {
            Self::Raw(json) => return read(json),
            Self::Packed { bytes, length, dictionary } => (bytes, length, dictionary),
        };
        // A read inside of another read gets its own buffer.
        let mut buffer = BUFFER.take();
        buffer.clear();
        buffer.reserve(*length as usize);
        let outcome = if decompress(bytes, dictionary, &mut buffer) { read(&buffer) } else { Err(broken()) };
        if buffer.capacity() <= KEPT_BUFFER {
            BUFFER.set(buffer);
        }
        outcome
    }

    /// Returns the length of the JSON.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Raw(json) => json.len(),
            Self::Packed { length, .. } => *length as usize,
        }
    }

    /// Returns how many bytes the stored form takes.
    pub(super) fn stored(&self) -> usize {
        match self {
            Self::Raw(bytes) | Self::Packed { bytes, .. } => bytes.len(),
        }
    }
}

fn broken() -> DecodeError {
    DecodeError::Shape("its compressed bytes cannot be read".to_owned())
}
