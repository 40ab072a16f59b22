//! Runs what the real libraries were run on, and small cases by hand.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

mod described;
mod hostile;
mod sets;
mod strategic;
mod truth;
mod writes;

use std::sync::Arc;

use crate::kinds::{Catalog, Resource};

/// A built-in kind.
fn built_in(kind: &str) -> Arc<Resource> {
    Arc::clone(Catalog::built_in().named(kind).unwrap_or_else(|| panic!("{kind} is not built in")))
}
