//! Tests of field management for built-in kinds, compared with Kubernetes' own library.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

#[path = "../../../field-manager/src/tests/described.rs"]
mod described;
mod hostile;
mod strategic;
mod truth;

use std::sync::Arc;

use crate::kinds::{Catalog, Resource};

/// Returns a built-in kind.
fn built_in(kind: &str) -> Arc<Resource> {
    Arc::clone(Catalog::built_in().named(kind).unwrap_or_else(|| panic!("{kind} is not built in")))
}
