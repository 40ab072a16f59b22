//! The flaws of a request body: strict validation refuses them, otherwise the response warns of them.

/// kube-apiserver tells no more.
const MOST: usize = 100;
/// The bytes of all reported flaws: names can be long, and one name can stand in many paths.
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
