#![doc = include_str!("../README.md")]

// In reading order: a module uses only modules that stand before it.
// Bounds, paths and errors.
mod limits;
mod golang;
mod path;
mod cause;
// Strings: patterns, formats, names, times.
mod pattern;
pub mod identifier;
mod quantity;
mod duration;
mod url;
mod formats;
mod wrong_names;
mod names;
// The schema as a tree.
mod node;
mod read;
mod patterns;
mod fieldpath;
mod place;
// Unknown fields and defaults.
mod unknown;
mod meta;
mod prune;
mod default;
// Rules in CEL.
mod cel;
mod condition;
mod programs;
mod rules;
mod correlate;
mod runner;
// Objects against the schema.
mod faults;
mod numbers;
mod strings;
mod objects;
mod lists;
mod validate;
// Schemas against the rules for schemas.
mod check;
mod structural;
mod defaults;
mod schema;
// Printer columns.
mod jsonpath;
mod columns;

pub use cause::{FieldError, FieldErrorReason};
pub use columns::{PrinterCell, PrinterColumn, PrinterColumns};
pub use condition::{CelCondition, CelError};
pub use default::TooLarge;
pub use duration::parse as parse_duration;
pub use place::SchemaPlace;
pub use quantity::Quantity;
pub use read::SchemaDefinition;
pub use schema::StructuralSchema;

#[cfg(test)]
mod tests;
// Compares with recorded answers of Kubernetes' own libraries; shared with the embedded API server.
#[cfg(test)]
#[path = "../../apiserver/src/truth.rs"]
#[allow(dead_code, reason = "the tests of the server use more of it")]
mod truth;
