//! Replays the inputs in `corpus`, and variations of them from a fixed seed, with stable cargo.
#![allow(missing_docs)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

/// The number of variations for each target. They are the same each time, so that only a change of the code changes the
/// result; `cargo xtask fuzz` searches for others.
const MADE: usize = 400;
/// Larger input finds little more.
const LARGEST: usize = 4096;
/// Frequent parts of inputs, and strings that parsers handle specially.
const WORDS: [&[u8]; 16] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b",",
    b":",
    b"\n",
    b"/",
    b"null",
    b"{}",
    b"\"metadata\":",
    b"-1",
    b"\xff",
    b"\0",
];

static PANICS: AtomicUsize = AtomicUsize::new(0);

#[test]
fn no_input_of_the_corpora_and_no_variation_panics() {
    count_panics();
    for (name, target) in kube_informer_fuzz::TARGETS {
        let mut inputs = corpus(name);
        assert!(inputs.len() >= 3, "{name} has {} inputs only", inputs.len());
        let mut rng = StdRng::seed_from_u64(1);
        let made: Vec<Vec<u8>> = (0..MADE).map(|_| changed(&inputs, &mut rng)).collect();
        inputs.extend(made);
        inputs.push(Vec::new());
        for input in &inputs {
            let outcome = catch_unwind(AssertUnwindSafe(|| target(input)));
            assert!(outcome.is_ok(), "{name} fails for {:?}", String::from_utf8_lossy(input));
        }
    }
    assert_eq!(PANICS.load(Ordering::Relaxed), 0, "something panicked in the background");
}

/// Returns the inputs of a target in the order of their names, so that the variations are the same each time.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    files.sort_unstable();
    files.iter().map(|file| std::fs::read(file).expect("its bytes")).collect()
}

/// Returns a random input with a few small changes.
fn changed(inputs: &[Vec<u8>], rng: &mut StdRng) -> Vec<u8> {
    let mut input = inputs.choose(rng).cloned().unwrap_or_default();
    for _ in 0..rng.random_range(1..=4) {
        let from = rng.random_range(0..=input.len());
        let to = rng.random_range(from..=input.len().min(from + 64));
        // A byte or a word replaces one byte, so that most of the input stays unchanged.
        let one = to.min(from + 1);
        let (to, with) = match rng.random_range(0..5) {
            0 => (to, Vec::new()),
            1 => (to, input[from..to].repeat(2)),
            2 => (one, vec![rng.random()]),
            3 => (one, WORDS.choose(rng).map_or_else(Vec::new, |word| word.to_vec())),
            _ => (to, piece(inputs.choose(rng).map_or(&[], Vec::as_slice), rng)),
        };
        input.splice(from..to, with);
    }
    input.truncate(LARGEST);
    input
}

/// Returns a random part of an input.
fn piece(input: &[u8], rng: &mut StdRng) -> Vec<u8> {
    let from = rng.random_range(0..=input.len());
    input[from..rng.random_range(from..=input.len().min(from + 200))].to_vec()
}

/// Counts panics: one in a task of the server does not reach the test.
fn count_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        usual(panic);
    }));
}
