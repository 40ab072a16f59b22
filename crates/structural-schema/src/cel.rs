//! CEL, the expression language of rules: an expression is parsed and checked once, and run within a cost budget.
//!
//! This is our own implementation. Kubernetes' variant of the language needs types from the schema, escaped names, its
//! own functions, and a cost for every step.

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

pub(crate) use check::{CelScope, compile, compile_with};
pub(crate) use eval::{CelProgram, Inputs};
pub(crate) use meter::{Fail, Meter};
pub(crate) use types::CelType;
pub(crate) use value::Val;
pub(crate) use view::{untyped, view};
