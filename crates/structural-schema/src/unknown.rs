//! The unknown fields of an object.

use super::limits;

/// The paths of unknown fields. Beyond a limit, fields are removed without a report.
#[derive(Default)]
pub(super) struct Unknown {
    pub(super) paths: Vec<String>,
    /// The size of all paths.
    bytes: usize,
}

impl Unknown {
    pub(super) fn record(&mut self, path: &str, name: &str) {
        self.bytes = self.bytes.saturating_add(path.len() + name.len());
        if self.bytes > limits::UNKNOWN_BYTES {
            return;
        }
        let mut path = path.to_owned();
        push_name(&mut path, name);
        self.paths.push(path);
    }
}

pub(crate) fn push_name(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}
