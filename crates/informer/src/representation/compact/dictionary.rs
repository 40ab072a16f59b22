//! Dictionaries, trained on objects of a kind.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zstd_safe::{CCtx, CDict, DCtx, DDict};

use super::super::KEPT_BUFFER;
use crate::lock::Mutex;

/// A dictionary is trained on so many objects, or so many bytes of them, whatever comes first.
const SAMPLES: usize = 128;
const SAMPLE_BYTES: usize = 2 * 1024 * 1024;
const DICTIONARY: usize = 32 * 1024;
/// The quickest that is worth it.
const LEVEL: i32 = 1;
/// The ratio is looked at over so many objects.
const WINDOW: u32 = 2048;
/// If the ratio gets worse than it was by this much, the objects are no longer what they were.
const WORSE: f64 = 1.5;
/// An informer trains no more dictionaries than this: objects of several shapes that take turns would have one trained at each turn.
const MOST_GENERATIONS: usize = 8;

/// One generation. What was compressed against it needs it to be read.
pub(super) struct Dictionary {
    compress: CDict<'static>,
    decompress: DDict<'static>,
}

/// How a dictionary comes to be, and when there is a new one.
#[derive(Default)]
pub(super) struct Training {
    state: Mutex<TrainingState>,
    /// Beside the state, which is held while a dictionary is trained.
    generations: AtomicUsize,
}

#[derive(Default)]
struct TrainingState {
    context: Option<CCtx<'static>>,
    /// Compressed into: as large as the worst case, of which little is used.
    buffer: Vec<u8>,
    dictionary: Option<Arc<Dictionary>>,
    /// What the next one will be trained on.
    samples: Samples,
    /// What the ratio was when the dictionary was new.
    baseline: Option<f64>,
    window: Window,
}

/// Objects, one behind the other.
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
    /// Compresses an object; `None` as long as there is no dictionary, or if it would not get smaller.
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
    /// Takes an object as a sample if samples are wanted; trains a dictionary when there are enough. True if there is a new one.
    ///
    /// Whoever brings the last sample waits for it: what came meanwhile would stay as large as it is.
    fn sample(&mut self, json: &[u8]) -> bool {
        let Samples { wanted: true, bytes, sizes } = &mut self.samples else { return false };
        bytes.extend_from_slice(json);
        sizes.push(json.len());
        if sizes.len() < SAMPLES && bytes.len() < SAMPLE_BYTES {
            return false;
        }
        let samples = std::mem::replace(&mut self.samples, Samples { wanted: false, ..Samples::default() });
        let mut trained = Vec::with_capacity(DICTIONARY);
        // Too few samples, or too alike: the objects themselves serve nearly as well.
        if zstd_safe::train_from_buffer(&mut trained, &samples.bytes, &samples.sizes).is_err() {
            trained = samples.bytes[..samples.bytes.len().min(DICTIONARY)].to_vec();
        }
        let compress = CDict::try_create(&trained, LEVEL);
        let Some((compress, decompress)) = compress.zip(DDict::try_create(&trained)) else { return false };
        self.dictionary = Some(Arc::new(Dictionary { compress, decompress }));
        (self.baseline, self.window) = (None, Window::default());
        true
    }

    /// Notes how well it went, and wants new samples if that has become much worse.
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

/// Writes what was compressed into an empty buffer that has room for it. False if it cannot be read.
pub(super) fn decompress(packed: &[u8], dictionary: &Dictionary, into: &mut Vec<u8>) -> bool {
    thread_local! {
        static CONTEXT: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
    }
    CONTEXT.with_borrow_mut(|context| context.decompress_using_ddict(into, packed, &dictionary.decompress).is_ok())
}
