//! The flaws of a request body: strict validation refuses them, otherwise the response warns of them.

/// The maximum number of reported flaws, as in kube-apiserver.
const MOST: usize = 100;
/// The maximum size of all flaws in bytes: names can be long, and one name can occur in many paths.
const MOST_BYTES: usize = 4 << 20;

/// The flaws of a body: each once, up to a limit.
#[derive(Debug, Default)]
pub(crate) struct Flaws {
    told: Vec<String>,
    /// The size of all flaws, also of those that were not kept.
    bytes: usize,
}

impl Flaws {
    /// Adds a flaw of about this length. The message is only built if there is room for it.
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
