//! The rules of built-in kinds beyond the table of types: defaults, the fields that each kind of write resets or keeps,
//! and validation.
//!
//! The order of a write is: [`defaults`], then for services the allocation of [`strategy::service`], then a
//! `prepare_` function of [`strategy`], then the checks of [`immutable`]. Objects are JSON as Go writes it: an absent
//! field has the zero value.

pub(crate) mod json;
pub(crate) mod equal;
pub(crate) mod image;
pub(crate) mod defaults;
pub(crate) mod strategy;
pub(crate) mod immutable;

#[cfg(test)]
mod tests;
