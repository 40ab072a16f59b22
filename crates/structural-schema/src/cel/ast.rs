//! An expression as a tree.

use regex::Regex;

use super::functions::Function;
use super::literal::Literal;

/// An expression, and where it begins in its text, counted in characters.
#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) at: usize,
    /// Levels below and with this one: nothing that walks the tree goes deeper than the parser allowed.
    pub(crate) depth: usize,
    pub(crate) kind: Kind,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Literal(Literal),
    Name(String),
    Select(Box<Select>),
    Call(Box<Call>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Choice(Box<[Expr; 3]>),
    List(Vec<Element>),
    Map(Vec<Entry>),
    Fold(Box<Fold>),
    /// A type that is named as a value.
    Type(&'static str),
}

/// `operand.field`, or whether that is there.
#[derive(Debug)]
pub(crate) struct Select {
    pub(crate) operand: Expr,
    pub(crate) field: String,
    pub(crate) mode: Mode,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mode {
    Value,
    /// `has(operand.field)`.
    Presence,
    /// `operand.?field`.
    Optional,
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// Whether the first argument was written before the name.
    pub(crate) is_member: bool,
    pub(crate) args: Vec<Expr>,
    /// Found when the expression is checked.
    pub(crate) function: Option<&'static Function>,
    /// The pattern, if it is written in the expression.
    pub(crate) regex: Option<Regex>,
}

#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) value: Expr,
    pub(crate) is_optional: bool,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: Expr,
    pub(crate) value: Expr,
    pub(crate) is_optional: bool,
}

/// A macro that binds names while it walks over something.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) way: Way,
    pub(crate) range: Expr,
    pub(crate) variable: String,
    /// The second name of macros over pairs.
    pub(crate) second: Option<String>,
    pub(crate) filter: Option<Expr>,
    pub(crate) body: Expr,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Way {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
    SortBy,
    TransformMap,
    OptionalMap,
    OptionalFlatMap,
}
