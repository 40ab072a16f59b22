//! What no table of types can hold about the built-in kinds: their defaults, what the server resets and keeps on each
//! kind of write, and what it refuses.
//!
//! The order of a write is: [`defaults`], then for services the allocation of [`strategy::service`], then a
//! `prepare_` of [`strategy`], then the checks of [`immutable`]. Objects are JSON as Go writes it, where what is
//! absent is the zero value.

pub(crate) mod json;
pub(crate) mod equal;
pub(crate) mod image;
pub(crate) mod defaults;
pub(crate) mod strategy;
pub(crate) mod immutable;

#[cfg(test)]
mod tests;
