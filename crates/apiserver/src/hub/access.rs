//! Access reviews: a closure of this process that decides them.

use serde_json::Value;
use std::fmt;
use std::sync::Arc;

type Closure = dyn Fn(&Value) -> bool + Send + Sync;

/// Decides access reviews.
#[derive(Clone)]
pub(crate) struct Access(Arc<Closure>);

impl Access {
    pub(crate) fn new(allows: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(allows))
    }

    /// Returns whether the review with this `spec` is allowed.
    pub(crate) fn allows(&self, spec: &Value) -> bool {
        (self.0)(spec)
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Access")
    }
}
