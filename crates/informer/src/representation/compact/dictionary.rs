//! Compression dictionaries, trained on objects of a kind.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zstd_safe::{CCtx, CDict, DCtx, DDict};

use super::super::KEPT_BUFFER;
use crate::lock::Mutex;

/// A dictionary is trained on this many objects, or on `SAMPLE_BYTES` bytes of them, whichever is reached first.
const SAMPLES: usize = 128;
const SAMPLE_BYTES: usize = 2 * 1024 * 1024;
const DICTIONARY: usize = 32 * 1024;
/// The compression level: the fastest that compresses well.
const LEVEL: i32 = 1;
/// The compression ratio is measured over this many objects.
const WINDOW: u32 = 2048;
/// If the ratio gets worse by this factor, the shape of the objects has changed.
const WORSE: f64 = 1.5;
/// An informer trains no more dictionaries than this. Otherwise objects of several shapes in turn would train one at
/// each turn.
const MOST_GENERATIONS: usize = 8;

/// One generation of a dictionary. Objects that were compressed with it need it for decompression.
pub(super) struct Dictionary {
    compress: CDict<'static>,
    decompress: DDict<'static>,
}

/// Trains dictionaries, and decides when a new one is needed.
#[derive(Default)]
pub(super) struct Training {
    state: Mutex<TrainingState>,
    /// Outside of the state, which is locked while a dictionary is trained.
    generations: AtomicUsize,
}

#[derive(Default)]
struct TrainingState {
    context: Option<CCtx<'static>>,
    /// The output buffer: as large as the worst case.
    buffer: Vec<u8>,
    dictionary: Option<Arc<Dictionary>>,
    /// The samples for the next dictionary.
    samples: Samples,
    /// The compression ratio when the dictionary was new.
    baseline: Option<f64>,
    window: Window,
}

/// Sample objects, concatenated.
struct Samples {
    wanted: bool,
    bytes: Vec<u8>,
    sizes: Vec<usize>,
}

impl Default for Samples {
    fn default() -> Self {
        Self { wanted: true, bytes: Vec::new(), sizes: Vec::new() }
    }
}

#[derive(Default)]
struct Window {
    objects: u32,
    raw: u64,
    stored: u64,
}

impl Training {
    /// Compresses an object; `None` if there is no dictionary yet, or if the result would not be smaller.
    pub(super) fn compress(&self, json: &[u8]) -> Option<(Box<[u8]>, Arc<Dictionary>)> {
        let mut state = self.state.lock();
        if self.generations() < MOST_GENERATIONS && state.sample(json) {
            self.generations.fetch_add(1, Ordering::Relaxed);
        }
        let dictionary = state.dictionary.clone()?;
        let TrainingState { context, buffer, .. } = &mut *state;
        buffer.clear();
        buffer.reserve(zstd_safe::compress_bound(json.len()));
        let context = context.get_or_insert_with(CCtx::create);
        context.compress_using_cdict(buffer, json, &dictionary.compress).ok()?;
        let packed: Box<[u8]> = buffer.as_slice().into();
        if buffer.capacity() > KEPT_BUFFER {
            *buffer = Vec::new();
        }
        state.look(json.len(), packed.len());
        (packed.len() < json.len()).then_some((packed, dictionary))
    }

    pub(super) fn generations(&self) -> usize {
        self.generations.load(Ordering::Relaxed)
    }
}

impl TrainingState {
    /// Adds an object to the samples if they are needed, and trains a dictionary if they are complete. Returns true if
    /// there is a new one.
    ///
    /// The caller with the last sample waits for the training: objects that arrived meanwhile would stay uncompressed.
    fn sample(&mut self, json: &[u8]) -> bool {
        let Samples { wanted: true, bytes, sizes } = &mut self.samples else { return false };
        bytes.extend_from_slice(json);
        sizes.push(json.len());
        if sizes.len() < SAMPLES && bytes.len() < SAMPLE_BYTES {
            return false;
        }
        let samples = std::mem::replace(&mut self.samples, Samples { wanted: false, ..Samples::default() });
        let mut trained = Vec::with_capacity(DICTIONARY);
        // Training fails if there are too few samples or if they are too similar. The objects themselves then serve
        // nearly as well.
        if zstd_safe::train_from_buffer(&mut trained, &samples.bytes, &samples.sizes).is_err() {
            trained = samples.bytes[..samples.bytes.len().min(DICTIONARY)].to_vec();
        }
        let compress = CDict::try_create(&trained, LEVEL);
        let Some((compress, decompress)) = compress.zip(DDict::try_create(&trained)) else { return false };
        self.dictionary = Some(Arc::new(Dictionary { compress, decompress }));
        (self.baseline, self.window) = (None, Window::default());
        true
    }

    /// Records the ratio, and requests new samples if it has become much worse.
    fn look(&mut self, raw: usize, stored: usize) {
        let Window { objects, raw: all, stored: kept } = &mut self.window;
        *objects += 1;
        *all += raw as u64;
        *kept += stored as u64;
        if *objects < WINDOW {
            return;
        }
        let ratio = *kept as f64 / (*all).max(1) as f64;
        self.window = Window::default();
        if ratio > *self.baseline.get_or_insert(ratio) * WORSE {
            self.samples.wanted = true;
        }
    }
}

/// Decompresses into an empty buffer with enough capacity. Returns false if the data is not valid.
pub(super) fn decompress(packed: &[u8], dictionary: &Dictionary, into: &mut Vec<u8>) -> bool {
    thread_local! {
        static CONTEXT: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
    }
    CONTEXT.with_borrow_mut(|context| context.decompress_using_ddict(into, packed, &dictionary.decompress).is_ok())
}
