//! The syntax tree of an expression.

use regex::Regex;

use super::functions::Function;
use super::literal::Literal;

/// An expression, and its position in the text, counted in characters.
#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) at: usize,
    /// The number of levels from here down. No walk of the tree goes deeper than the parser allowed.
    pub(crate) depth: usize,
    pub(crate) kind: ExprKind,
}

#[derive(Debug)]
pub(crate) enum ExprKind {
    Literal(Literal),
    Name(String),
    Select(Box<Select>),
    Call(Box<FunctionCall>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Choice(Box<[Expr; 3]>),
    List(Vec<Element>),
    Map(Vec<MapEntry>),
    Fold(Box<Fold>),
    /// A type used as a value.
    Type(&'static str),
}

/// `operand.field`, or the test whether it exists.
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
pub(crate) struct FunctionCall {
    pub(crate) name: String,
    /// Whether the first argument stands before the name.
    pub(crate) is_member: bool,
    pub(crate) args: Vec<Expr>,
    /// The function, set by the type check.
    pub(crate) function: Option<&'static Function>,
    /// The compiled pattern, if it is a literal.
    pub(crate) regex: Option<Regex>,
}

#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) value: Expr,
    pub(crate) is_optional: bool,
}

#[derive(Debug)]
pub(crate) struct MapEntry {
    pub(crate) key: Expr,
    pub(crate) value: Expr,
    pub(crate) is_optional: bool,
}

/// A macro that binds names while it iterates.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) way: FoldWay,
    pub(crate) range: Expr,
    pub(crate) variable: String,
    /// The second name, for macros over pairs.
    pub(crate) second: Option<String>,
    pub(crate) filter: Option<Expr>,
    pub(crate) body: Expr,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FoldWay {
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
