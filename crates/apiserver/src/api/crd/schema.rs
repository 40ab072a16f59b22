//! What an API server does with the schema of a version of a custom resource: read it, check it, and then prune,
//! default and validate the objects that come in.

mod cause;
mod cel;
mod check;
mod columns;
mod correlate;
mod default;
mod defaults;
mod escapes;
mod fieldpath;
mod formats;
mod golang;
mod jsonpath;
mod limits;
mod lists;
mod meta;
mod names;
mod node;
mod numbers;
mod objects;
mod path;
mod pattern;
mod place;
mod prune;
mod read;
mod rules;
mod runner;
mod steps;
mod strings;
mod structural;
mod translate;
mod validate;
mod wrong_names;

#[cfg(test)]
mod tests;

pub(crate) use cause::Cause;
pub(crate) use columns::{Cell, Columns};
pub(crate) use default::default;
pub(crate) use node::{Definition, Schema};
pub(crate) use place::Place;
pub(crate) use prune::prune;
pub(crate) use validate::{validate, validate_status};
