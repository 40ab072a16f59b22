//! The expression language of rules: parsed and checked once, run within a budget.
//!
//! Everything is our own, because the language as Kubernetes has it needs types that come from the schema, names that
//! are escaped, its own functions, and a cost for every step.

mod ast;
mod check;
mod compare;
mod convert;
mod eval;
mod fold;
mod format;
mod format_check;
mod functions;
mod infer;
mod lexer;
mod library;
mod lists;
mod literal;
mod macros;
mod meter;
mod net;
mod operators;
mod optional;
mod parser;
mod primary;
mod quantity;
mod strings;
mod times;
mod types;
mod url;
mod value;
mod view;

pub(crate) use check::{Scope, compile};
pub(crate) use eval::{Inputs, Program};
pub(crate) use meter::{Fail, Meter};
pub(crate) use types::Type;
pub(crate) use value::Val;
pub(crate) use view::view;
