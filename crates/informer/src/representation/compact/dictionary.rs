//! Dictionaries, trained on objects of a kind.

use std::cell::RefCell;
use std::sync::Arc;

use parking_lot::Mutex;
use zstd_safe::{CCtx, CDict, DCtx, DDict};

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

/// One generation. What was compressed against it needs it to be read.
pub(super) struct Dictionary {
    compress: CDict<'static>,
    decompress: DDict<'static>,
}

/// How a dictionary comes to be, and when there is a new one.
#[derive(Default)]
pub(super) struct Training(Mutex<State>);

#[derive(Default)]
struct State {
    context: Option<CCtx<'static>>,
    dictionary: Option<Arc<Dictionary>>,
    generations: usize,
    /// What the next one will be trained on; `None` while none is wanted.
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
        let mut state = self.0.lock();
        state.sample(json);
        let dictionary = state.dictionary.clone()?;
        let context = state.context.get_or_insert_with(CCtx::create);
        let mut packed = Vec::with_capacity(zstd_safe::compress_bound(json.len()));
        context.compress_using_cdict(&mut packed, json, &dictionary.compress).ok()?;
        state.look(json.len(), packed.len());
        (packed.len() < json.len()).then(|| (packed.into(), dictionary))
    }

    pub(super) fn generations(&self) -> usize {
        self.0.lock().generations
    }
}

impl State {
    /// Takes an object as a sample if samples are wanted; trains a dictionary when there are enough.
    fn sample(&mut self, json: &[u8]) {
        let Samples { wanted: true, bytes, sizes } = &mut self.samples else { return };
        bytes.extend_from_slice(json);
        sizes.push(json.len());
        if sizes.len() < SAMPLES && bytes.len() < SAMPLE_BYTES {
            return;
        }
        let samples = std::mem::replace(&mut self.samples, Samples { wanted: false, ..Samples::default() });
        let mut trained = Vec::with_capacity(DICTIONARY);
        // Too few samples, or too alike: the objects themselves serve nearly as well.
        if zstd_safe::train_from_buffer(&mut trained, &samples.bytes, &samples.sizes).is_err() {
            trained = samples.bytes[..samples.bytes.len().min(DICTIONARY)].to_vec();
        }
        let compress = CDict::try_create(&trained, LEVEL);
        if let Some((compress, decompress)) = compress.zip(DDict::try_create(&trained)) {
            self.dictionary = Some(Arc::new(Dictionary { compress, decompress }));
            self.generations += 1;
            (self.baseline, self.window) = (None, Window::default());
        }
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

/// Appends what was compressed to a buffer that has room for it. False if it cannot be read.
pub(super) fn decompress(packed: &[u8], dictionary: &Dictionary, into: &mut Vec<u8>) -> bool {
    thread_local! {
        static CONTEXT: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
    }
    CONTEXT.with_borrow_mut(|context| context.decompress_using_ddict(into, packed, &dictionary.decompress).is_ok())
}
