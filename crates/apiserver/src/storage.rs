//! The storage: one revision for all resources, and for each resource a collection with its history.

pub(crate) mod state;
pub(crate) mod collection;
pub(crate) mod event;
pub(crate) mod key;
pub(crate) mod object;
pub(crate) mod owners;
