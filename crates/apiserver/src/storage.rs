//! What is stored: one revision for everything, a collection for each resource, and the history of both.

pub(crate) mod state;
pub(crate) mod collection;
pub(crate) mod event;
pub(crate) mod object;
pub(crate) mod owners;
