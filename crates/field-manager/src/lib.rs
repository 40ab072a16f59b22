#![doc = include_str!("../README.md")]
//!
//! # Limits
//!
//! The functions recurse as deep as an object is nested. The caller limits this depth when it parses the object.

// Types and field paths.
mod order;
mod schema;
mod path;
mod atom;
mod set;
mod text;
mod filter;
// Objects compared with their types and with each other.
mod item;
mod extract;
mod check;
mod compare;
mod weave;
mod merge;
mod remove;
// Managers and their writes.
mod manager;
mod write;
mod reconcile;
mod last_applied;
mod conflict;
mod prune;
mod update;
mod apply;
// Patches.
mod strategic;

pub use apply::{ApplyError, Force, apply};
pub use conflict::{ConflictCause, Conflicts};
pub use filter::{FieldFilter, FieldPattern, PatternStep};
pub use manager::keep_times;
pub use path::PathElement;
pub use schema::{FieldSchema, Member, PatchRule, PatchStrategy, Scalar, Shape};
pub use set::FieldSet;
pub use strategic::{StrategicMergeError, strategic_merge_patch};
pub use update::update;
pub use write::Write;

// The tests of the embedded API server include a module of these tests, which names this crate.
#[cfg(test)]
extern crate self as kube_field_manager;
#[cfg(test)]
mod tests;
