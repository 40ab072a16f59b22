//! Who owns which field of an object: sets of field paths, typed comparison and merge, the entries of
//! `metadata.managedFields`, server-side apply, and strategic merge patch.
//!
//! Everything here is a pure function over JSON values. A [`schema::Schema`] says how lists and maps are taken apart.
//! Recursion follows the depth of an object, which whoever parsed it has bounded.

pub(crate) mod apply;
mod atom;
mod cap;
mod check;
mod compare;
mod conflict;
mod extract;
pub(crate) mod filter;
pub(crate) mod golang;
mod item;
mod last_applied;
pub(crate) mod manager;
mod merge;
mod moment;
mod order;
pub(crate) mod path;
mod prune;
mod reconcile;
mod remove;
pub(crate) mod request;
pub(crate) mod schema;
pub(crate) mod set;
pub(crate) mod strategic;
pub(crate) mod text;
pub(crate) mod update;
mod weave;

#[cfg(test)]
mod tests;
