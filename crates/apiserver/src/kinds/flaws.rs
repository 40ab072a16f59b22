//! What is wrong with a body that strict clients are told of, and others warned of.

/// The server that clients know tells no more.
const MOST: usize = 100;
/// Bytes of all that are told: names can be long, and the same ones stand in many paths.
const MOST_BYTES: usize = 4 << 20;

/// Flaws of a body: each once, and not too many.
#[derive(Debug, Default)]
pub(crate) struct Flaws {
    told: Vec<String>,
    /// What all of them would take.
    bytes: usize,
}

impl Flaws {
    /// Adds a flaw of about this length, which is only put into words if there is room for it.
    pub(crate) fn add(&mut self, length: usize, words: impl FnOnce() -> String) {
        self.bytes = self.bytes.saturating_add(length);
        if self.told.len() >= MOST || self.bytes > MOST_BYTES {
            return;
        }
        let flaw = words();
        if !self.told.contains(&flaw) {
            self.told.push(flaw);
        }
    }

    pub(crate) fn into_vec(self) -> Vec<String> {
        self.told
    }
}
