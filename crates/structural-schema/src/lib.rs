#![doc = include_str!("../README.md")]

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
mod schema;
mod steps;
mod strings;
mod structural;
mod translate;
mod validate;
mod wrong_names;

pub use cause::{FieldError, FieldErrorReason};
pub use columns::{PrinterCell, PrinterColumn, PrinterColumns};
pub use default::TooLarge;
pub use place::SchemaPlace;
pub use read::SchemaDefinition;
pub use schema::StructuralSchema;

#[cfg(test)]
mod tests;
// The comparison with files that Kubernetes' own libraries wrote, shared with the embedded API server.
#[cfg(test)]
#[path = "../../apiserver/src/truth.rs"]
#[allow(dead_code, reason = "the tests of the server use more of it")]
mod truth;
