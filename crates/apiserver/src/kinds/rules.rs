//! The rules of built-in kinds beyond the table of types: defaults, the fields that each kind of write resets or keeps,
//! and validation.
//!
//! These are the rules that an operator's test can notice: required and immutable fields, defaults, the status
//! subresource, generations, and the addresses of services. kube-apiserver has more. The order of a write is
//! [`defaults`], then [`service`] for services, then [`strategy`], then [`validation`]. Objects are JSON as Go writes
//! it: an absent field has the zero value.

pub(crate) mod json;
pub(crate) mod defaults;
pub(crate) mod validation;
pub(crate) mod service;
pub(crate) mod strategy;

#[cfg(test)]
mod tests;
