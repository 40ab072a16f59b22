//! Checks the types of an expression, and reports its errors.

use std::rc::Rc;

use super::ast::{Expr, ExprKind, Mode, Select};
use super::eval::CelProgram;
use super::lexer::Wrong;
use super::literal::Literal;
use super::parser::parse;
use super::types::{CelType, KnownTypes};

/// The variables of an expression.
pub(crate) struct CelScope<'s> {
    pub(crate) this: CelType<'s>,
    /// Whether `oldSelf` may be missing, so that it is optional.
    pub(crate) old_is_optional: bool,
}

/// A checked expression, and the type of its result.
pub(crate) struct Compiled<'s> {
    pub(crate) program: CelProgram,
    pub(crate) result: CelType<'s>,
    pub(crate) uses_old_self: bool,
}

/// Parses and checks an expression.
///
/// # Errors
///
/// All errors with their positions, as text of several lines.
pub(crate) fn compile<'s>(text: &str, scope: &CelScope<'s>) -> Result<Compiled<'s>, String> {
    let old = if scope.old_is_optional { CelType::optional(scope.this.clone()) } else { scope.this.clone() };
    compile_with(text, vec![("self".to_owned(), scope.this.clone()), ("oldSelf".to_owned(), old)])
}

/// Parses and checks an expression that may use these variables.
///
/// # Errors
///
/// The same as for [`compile`].
pub(crate) fn compile_with<'s>(text: &str, names: Vec<(String, CelType<'s>)>) -> Result<Compiled<'s>, String> {
    let mut expr = parse(text).map_err(|wrong| placed(text, &[wrong]))?;
    let mut checker =
        Checker { known: KnownTypes::default(), wrong: Vec::new(), names, uses_old_self: false, mixed_allowed: false };
    let result = checker.expr(&mut expr);
    let result = checker.known.resolve(&result);
    if !checker.wrong.is_empty() {
        checker.wrong.sort_by_key(|wrong| wrong.at);
        return Err(placed(text, &checker.wrong));
    }
    Ok(Compiled { program: CelProgram::new(expr), result, uses_old_self: checker.uses_old_self })
}

/// Formats errors with their source lines and a mark.
fn placed(text: &str, wrong: &[Wrong]) -> String {
    let one = |wrong: &Wrong| {
        let before: String = text.chars().take(wrong.at).collect();
        let line_number = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count());
        let line = text.split('\n').nth(line_number - 1).unwrap_or("");
        let dots = ".".repeat(column);
        format!("ERROR: <input>:{line_number}:{}: {}\n | {line}\n | {dots}^", column + 1, wrong.what)
    };
    wrong.iter().take(10).map(one).collect::<Vec<_>>().join("\n")
}

pub(super) struct Checker<'s> {
    pub(super) known: KnownTypes<'s>,
    pub(super) wrong: Vec<Wrong>,
    pub(super) names: Vec<(String, CelType<'s>)>,
    uses_old_self: bool,
    /// Whether this is an argument list of `format`, which may have mixed types.
    pub(super) mixed_allowed: bool,
}

impl<'s> Checker<'s> {
    pub(super) fn report(&mut self, at: usize, what: String) -> CelType<'s> {
        self.wrong.push(Wrong { at, what });
        CelType::Dyn
    }

    pub(super) fn expr(&mut self, expr: &mut Expr) -> CelType<'s> {
        let at = expr.at;
        match &mut expr.kind {
            ExprKind::Literal(literal) => of_literal(literal),
            ExprKind::Type(_) => CelType::Dyn,
            ExprKind::Name(name) => {
                let name = name.clone();
                self.name(expr, &name)
            }
            ExprKind::Select(select) => match type_of_name(&qualified(select)) {
                Some((name, found)) if select.mode == Mode::Value => {
                    expr.kind = ExprKind::Type(name);
                    CelType::Kind(Rc::new(found))
                }
                _ => self.select(select, at),
            },
            ExprKind::Call(call) => self.call(call, at),
            ExprKind::And(exprs) | ExprKind::Or(exprs) => self.logic(exprs),
            ExprKind::Choice(exprs) => self.choice(exprs, at),
            ExprKind::List(elements) => {
                let mut joined = None;
                for element in elements {
                    let mut found = self.expr(&mut element.value);
                    if element.is_optional {
                        found = self.unwrapped(found, element.value.at);
                    }
                    joined = Some(self.join(joined, found, element.value.at));
                }
                CelType::list(joined.unwrap_or_else(|| self.known.fresh()))
            }
            ExprKind::Map(entries) => {
                let (mut keys, mut values) = (None, None);
                for entry in entries {
                    let key = self.expr(&mut entry.key);
                    self.wants_key(&key, entry.key.at);
                    keys = Some(self.join(keys, key, entry.key.at));
                    let mut value = self.expr(&mut entry.value);
                    if entry.is_optional {
                        value = self.unwrapped(value, entry.value.at);
                    }
                    values = Some(self.join(values, value, entry.value.at));
                }
                let key = keys.unwrap_or_else(|| self.known.fresh());
                let value = values.unwrap_or_else(|| self.known.fresh());
                CelType::Map(Rc::new((key, value)))
            }
            ExprKind::Fold(fold) => self.fold(fold, at),
        }
    }

    fn name(&mut self, expr: &mut Expr, name: &str) -> CelType<'s> {
        if let Some((_, found)) = self.names.iter().rev().find(|(held, _)| held == name) {
            let found = found.clone();
            let is_outer = self.names.iter().rposition(|(held, _)| held == name) == Some(1);
            self.uses_old_self |= is_outer && name == "oldSelf";
            return found;
        }
        if let Some((name, found)) = type_of_name(name) {
            expr.kind = ExprKind::Type(name);
            return CelType::Kind(Rc::new(found));
        }
        self.report(expr.at, format!("undeclared reference to '{name}' (in container '')"))
    }

    /// Checks that the elements of a list have one type.
    fn join(&mut self, joined: Option<CelType<'s>>, found: CelType<'s>, at: usize) -> CelType<'s> {
        let Some(joined) = joined else {
            return if self.mixed_allowed { CelType::Dyn } else { found };
        };
        if !self.known.fits(&joined, &found) {
            let (joined, found) = (self.known.resolve(&joined), self.known.resolve(&found));
            self.report(at, format!("expected type '{joined}' but found '{found}'"));
        }
        joined
    }

    /// Checks that a key has a simple type, so that nested types stay small.
    fn wants_key(&mut self, key: &CelType<'s>, at: usize) {
        let key = self.known.resolve(key);
        if !matches!(key, CelType::Bool | CelType::Int | CelType::Uint | CelType::String | CelType::Dyn) {
            self.report(at, format!("unsupported map key type '{key}'"));
        }
    }

    fn unwrapped(&mut self, found: CelType<'s>, at: usize) -> CelType<'s> {
        match self.known.resolve(&found) {
            CelType::Optional(inner) => inner.as_ref().clone(),
            CelType::Dyn => CelType::Dyn,
            other => self.report(at, format!("expected type 'optional_type(dyn)' but found '{other}'")),
        }
    }

    fn select(&mut self, select: &mut Select, at: usize) -> CelType<'s> {
        let operand = self.expr(&mut select.operand);
        let operand = self.known.resolve(&operand);
        let (operand, was_optional) = match operand {
            CelType::Optional(inner) => (inner.as_ref().clone(), true),
            other => (other, false),
        };
        let field = match &operand {
            CelType::Object(node, is_resource) => match CelType::field(node, *is_resource, &select.field) {
                Some(field) => field,
                None => self.report(at, format!("undefined field '{}'", select.field)),
            },
            CelType::Map(pair) => pair.1.clone(),
            CelType::Dyn | CelType::Any(_) => CelType::Dyn,
            other => self.report(at, format!("type '{other}' does not support field selection")),
        };
        match select.mode {
            Mode::Presence => CelType::Bool,
            Mode::Value if !was_optional => field,
            _ => CelType::optional(field),
        }
    }

    fn logic(&mut self, exprs: &mut [Expr]) -> CelType<'s> {
        for expr in exprs {
            self.wants_bool(expr);
        }
        CelType::Bool
    }

    fn choice(&mut self, exprs: &mut [Expr; 3], at: usize) -> CelType<'s> {
        let [condition, yes, no] = exprs.each_mut().map(|expr| self.expr(expr));
        if self.known.fits(&CelType::Bool, &condition) && self.known.fits(&yes, &no) {
            let resolved = self.known.resolve(&yes);
            return if matches!(resolved, CelType::Null) { no } else { yes };
        }
        self.no_overload("_?_:_", &[condition, yes, no], false, at)
    }

    pub(super) fn no_overload(&mut self, name: &str, args: &[CelType<'s>], is_member: bool, at: usize) -> CelType<'s> {
        let texts: Vec<String> = args.iter().map(|arg| self.known.resolve(arg).to_string()).collect();
        let applied = match texts.split_first() {
            Some((target, rest)) if is_member => format!("{target}.({})", rest.join(", ")),
            _ => format!("({})", texts.join(", ")),
        };
        self.report(at, format!("found no matching overload for '{name}' applied to '{applied}'"))
    }

    pub(super) fn wants_bool(&mut self, expr: &mut Expr) {
        let found = self.expr(expr);
        if !self.known.fits(&CelType::Bool, &found) {
            let found = self.known.resolve(&found);
            self.report(expr.at, format!("expected type 'bool' but found '{found}'"));
        }
    }
}

fn of_literal<'s>(literal: &Literal) -> CelType<'s> {
    match literal {
        Literal::Null => CelType::Null,
        Literal::Bool(_) => CelType::Bool,
        Literal::Int(_) => CelType::Int,
        Literal::Uint(_) => CelType::Uint,
        Literal::Double(_) => CelType::Double,
        Literal::String(_) => CelType::String,
        Literal::Bytes(_) => CelType::Bytes,
    }
}

/// Returns a dotted name as one string.
pub(super) fn dotted(expr: &Expr) -> Option<String> {
    match &expr.kind {
        ExprKind::Name(name) => Some(name.clone()),
        ExprKind::Select(select) if select.mode == Mode::Value => {
            Some(qualified(select)).filter(|name| !name.is_empty())
        }
        _ => None,
    }
}

fn qualified(select: &Select) -> String {
    dotted(&select.operand).map_or_else(String::new, |prefix| format!("{prefix}.{}", select.field))
}

/// Returns the type for a type name.
fn type_of_name<'s>(name: &str) -> Option<(&'static str, CelType<'s>)> {
    Some(match name {
        "bool" => ("bool", CelType::Bool),
        "int" => ("int", CelType::Int),
        "uint" => ("uint", CelType::Uint),
        "double" => ("double", CelType::Double),
        "string" => ("string", CelType::String),
        "bytes" => ("bytes", CelType::Bytes),
        "list" => ("list", CelType::list(CelType::Dyn)),
        "map" => ("map", CelType::Map(Rc::new((CelType::Dyn, CelType::Dyn)))),
        "null_type" => ("null_type", CelType::Null),
        "type" => ("type", CelType::Kind(Rc::new(CelType::Dyn))),
        "google.protobuf.Duration" => ("google.protobuf.Duration", CelType::Duration),
        "google.protobuf.Timestamp" => ("google.protobuf.Timestamp", CelType::Timestamp),
        "net.IP" => ("net.IP", CelType::Named("net.IP")),
        "net.CIDR" => ("net.CIDR", CelType::Named("net.CIDR")),
        _ => return None,
    })
}
