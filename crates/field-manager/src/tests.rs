//! Small hand-written cases. The embedded API server compares the same functions with Kubernetes' own library, for its
//! built-in kinds.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

mod described;
mod sets;
mod writes;
