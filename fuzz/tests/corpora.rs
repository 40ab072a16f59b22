//! Replays what is in `corpus`, and what a fixed seed makes of it, with cargo alone.
#![allow(missing_docs)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

/// How many inputs are made for each target. The same ones each time, so that a change is judged by itself; `cargo xtask fuzz`
/// looks elsewhere.
const MADE: usize = 400;
/// Larger input finds little more.
const LARGEST: usize = 4096;
/// What the inputs are full of, and what upsets readers of them.
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
fn every_input_in_the_corpora_and_near_them_is_dealt_with() {
    count_panics();
    for (name, target) in kube_informer_fuzz::TARGETS {
        let mut inputs = corpus(name);
        assert!(inputs.len() >= 3, "{name} has {} inputs only", inputs.len());
        let mut rng = StdRng::seed_from_u64(1);
        let made: Vec<Vec<u8>> = (0..MADE).map(|_| changed(&inputs, &mut rng)).collect();
        inputs.extend(made);
        inputs.push(Vec::new());
        for input in &inputs {
            let dealt_with = catch_unwind(AssertUnwindSafe(|| target(input)));
            assert!(dealt_with.is_ok(), "{name} fails for {:?}", String::from_utf8_lossy(input));
        }
    }
    assert_eq!(PANICS.load(Ordering::Relaxed), 0, "something panicked in the background");
}

/// In the order of their names, so that chance makes the same of them each time.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    files.sort_unstable();
    files.iter().map(|file| std::fs::read(file).expect("its bytes")).collect()
}

/// One of them, with a few small changes.
fn changed(inputs: &[Vec<u8>], rng: &mut StdRng) -> Vec<u8> {
    let mut input = inputs.choose(rng).cloned().unwrap_or_default();
    for _ in 0..rng.random_range(1..=4) {
        let from = rng.random_range(0..=input.len());
        let to = rng.random_range(from..=input.len().min(from + 64));
        // A byte or a word takes the place of one byte, so that most of the input stays what it was.
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

/// Some of its bytes.
fn piece(input: &[u8], rng: &mut StdRng) -> Vec<u8> {
    let from = rng.random_range(0..=input.len());
    input[from..rng.random_range(from..=input.len().min(from + 200))].to_vec()
}

/// Counts them: one in a task of the server unwinds to nobody.
fn count_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        usual(panic);
    }));
}
