//! Checks the types of an expression, and reports its errors.

use std::rc::Rc;

use super::ast::{Expr, Kind, Mode, Select};
use super::eval::Program;
use super::lexer::Wrong;
use super::literal::Literal;
use super::parser::parse;
use super::types::{Known, Type};

/// The variables of an expression.
pub(crate) struct Scope<'s> {
    pub(crate) this: Type<'s>,
    /// Whether `oldSelf` may be missing, so that it is optional.
    pub(crate) old_is_optional: bool,
}

/// A checked expression, and the type of its result.
pub(crate) struct Compiled<'s> {
    pub(crate) program: Program,
    pub(crate) result: Type<'s>,
    pub(crate) uses_old_self: bool,
}

/// Parses and checks an expression.
///
/// # Errors
///
/// All errors with their positions, as text of several lines.
pub(crate) fn compile<'s>(text: &str, scope: &Scope<'s>) -> Result<Compiled<'s>, String> {
    let old = if scope.old_is_optional { Type::optional(scope.this.clone()) } else { scope.this.clone() };
    compile_with(text, vec![("self".to_owned(), scope.this.clone()), ("oldSelf".to_owned(), old)])
}

/// Parses and checks an expression that may use these variables.
///
/// # Errors
///
/// The same as for [`compile`].
pub(crate) fn compile_with<'s>(text: &str, names: Vec<(String, Type<'s>)>) -> Result<Compiled<'s>, String> {
    let mut expr = parse(text).map_err(|wrong| placed(text, &[wrong]))?;
    let mut checker =
        Checker { known: Known::default(), wrong: Vec::new(), names, uses_old_self: false, mixed_allowed: false };
    let result = checker.expr(&mut expr);
    let result = checker.known.resolve(&result);
    if !checker.wrong.is_empty() {
        checker.wrong.sort_by_key(|wrong| wrong.at);
        return Err(placed(text, &checker.wrong));
    }
    Ok(Compiled { program: Program::new(expr), result, uses_old_self: checker.uses_old_self })
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
    pub(super) known: Known<'s>,
    pub(super) wrong: Vec<Wrong>,
    pub(super) names: Vec<(String, Type<'s>)>,
    uses_old_self: bool,
    /// Whether this is an argument list of `format`, which may have mixed types.
    pub(super) mixed_allowed: bool,
}

impl<'s> Checker<'s> {
    pub(super) fn report(&mut self, at: usize, what: String) -> Type<'s> {
        self.wrong.push(Wrong { at, what });
        Type::Dyn
    }

    pub(super) fn expr(&mut self, expr: &mut Expr) -> Type<'s> {
        let at = expr.at;
        match &mut expr.kind {
            Kind::Literal(literal) => of_literal(literal),
            Kind::Type(_) => Type::Dyn,
            Kind::Name(name) => {
                let name = name.clone();
                self.name(expr, &name)
            }
            Kind::Select(select) => match type_of_name(&qualified(select)) {
                Some((name, found)) if select.mode == Mode::Value => {
                    expr.kind = Kind::Type(name);
                    Type::Kind(Rc::new(found))
                }
                _ => self.select(select, at),
            },
            Kind::Call(call) => self.call(call, at),
            Kind::And(exprs) | Kind::Or(exprs) => self.logic(exprs),
            Kind::Choice(exprs) => self.choice(exprs, at),
            Kind::List(elements) => {
                let mut joined = None;
                for element in elements {
                    let mut found = self.expr(&mut element.value);
                    if element.is_optional {
                        found = self.unwrapped(found, element.value.at);
                    }
                    joined = Some(self.join(joined, found, element.value.at));
                }
                Type::list(joined.unwrap_or_else(|| self.known.fresh()))
            }
            Kind::Map(entries) => {
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
                Type::Map(Rc::new((key, value)))
            }
            Kind::Fold(fold) => self.fold(fold, at),
        }
    }

    fn name(&mut self, expr: &mut Expr, name: &str) -> Type<'s> {
        if let Some((_, found)) = self.names.iter().rev().find(|(held, _)| held == name) {
            let found = found.clone();
            let is_outer = self.names.iter().rposition(|(held, _)| held == name) == Some(1);
            self.uses_old_self |= is_outer && name == "oldSelf";
            return found;
        }
        if let Some((name, found)) = type_of_name(name) {
            expr.kind = Kind::Type(name);
            return Type::Kind(Rc::new(found));
        }
        self.report(expr.at, format!("undeclared reference to '{name}' (in container '')"))
    }

    /// Checks that the elements of a list have one type.
    fn join(&mut self, joined: Option<Type<'s>>, found: Type<'s>, at: usize) -> Type<'s> {
        let Some(joined) = joined else {
            return if self.mixed_allowed { Type::Dyn } else { found };
        };
        if !self.known.fits(&joined, &found) {
            let (joined, found) = (self.known.resolve(&joined), self.known.resolve(&found));
            self.report(at, format!("expected type '{joined}' but found '{found}'"));
        }
        joined
    }

    /// Checks that a key has a simple type, so that nested types stay small.
    fn wants_key(&mut self, key: &Type<'s>, at: usize) {
        let key = self.known.resolve(key);
        if !matches!(key, Type::Bool | Type::Int | Type::Uint | Type::String | Type::Dyn) {
            self.report(at, format!("unsupported map key type '{key}'"));
        }
    }

    fn unwrapped(&mut self, found: Type<'s>, at: usize) -> Type<'s> {
        match self.known.resolve(&found) {
            Type::Optional(inner) => inner.as_ref().clone(),
            Type::Dyn => Type::Dyn,
            other => self.report(at, format!("expected type 'optional_type(dyn)' but found '{other}'")),
        }
    }

    fn select(&mut self, select: &mut Select, at: usize) -> Type<'s> {
        let operand = self.expr(&mut select.operand);
        let operand = self.known.resolve(&operand);
        let (operand, was_optional) = match operand {
            Type::Optional(inner) => (inner.as_ref().clone(), true),
            other => (other, false),
        };
        let field = match &operand {
            Type::Object(node, is_resource) => match Type::field(node, *is_resource, &select.field) {
                Some(field) => field,
                None => self.report(at, format!("undefined field '{}'", select.field)),
            },
            Type::Map(pair) => pair.1.clone(),
            Type::Dyn | Type::Any(_) => Type::Dyn,
            other => self.report(at, format!("type '{other}' does not support field selection")),
        };
        match select.mode {
            Mode::Presence => Type::Bool,
            Mode::Value if !was_optional => field,
            _ => Type::optional(field),
        }
    }

    fn logic(&mut self, exprs: &mut [Expr]) -> Type<'s> {
        for expr in exprs {
            self.wants_bool(expr);
        }
        Type::Bool
    }

    fn choice(&mut self, exprs: &mut [Expr; 3], at: usize) -> Type<'s> {
        let [condition, yes, no] = exprs.each_mut().map(|expr| self.expr(expr));
        if self.known.fits(&Type::Bool, &condition) && self.known.fits(&yes, &no) {
            let resolved = self.known.resolve(&yes);
            return if matches!(resolved, Type::Null) { no } else { yes };
        }
        self.no_overload("_?_:_", &[condition, yes, no], false, at)
    }

    pub(super) fn no_overload(&mut self, name: &str, args: &[Type<'s>], is_member: bool, at: usize) -> Type<'s> {
        let texts: Vec<String> = args.iter().map(|arg| self.known.resolve(arg).to_string()).collect();
        let applied = match texts.split_first() {
            Some((target, rest)) if is_member => format!("{target}.({})", rest.join(", ")),
            _ => format!("({})", texts.join(", ")),
        };
        self.report(at, format!("found no matching overload for '{name}' applied to '{applied}'"))
    }

    pub(super) fn wants_bool(&mut self, expr: &mut Expr) {
        let found = self.expr(expr);
        if !self.known.fits(&Type::Bool, &found) {
            let found = self.known.resolve(&found);
            self.report(expr.at, format!("expected type 'bool' but found '{found}'"));
        }
    }
}

fn of_literal<'s>(literal: &Literal) -> Type<'s> {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

/// Returns a dotted name as one string.
pub(super) fn dotted(expr: &Expr) -> Option<String> {
    match &expr.kind {
        Kind::Name(name) => Some(name.clone()),
        Kind::Select(select) if select.mode == Mode::Value => Some(qualified(select)).filter(|name| !name.is_empty()),
        _ => None,
    }
}

fn qualified(select: &Select) -> String {
    dotted(&select.operand).map_or_else(String::new, |prefix| format!("{prefix}.{}", select.field))
}

/// Returns the type for a type name.
fn type_of_name<'s>(name: &str) -> Option<(&'static str, Type<'s>)> {
    Some(match name {
        "bool" => ("bool", Type::Bool),
        "int" => ("int", Type::Int),
        "uint" => ("uint", Type::Uint),
        "double" => ("double", Type::Double),
        "string" => ("string", Type::String),
        "bytes" => ("bytes", Type::Bytes),
        "list" => ("list", Type::list(Type::Dyn)),
        "map" => ("map", Type::Map(Rc::new((Type::Dyn, Type::Dyn)))),
        "null_type" => ("null_type", Type::Null),
        "type" => ("type", Type::Kind(Rc::new(Type::Dyn))),
        "google.protobuf.Duration" => ("google.protobuf.Duration", Type::Duration),
        "google.protobuf.Timestamp" => ("google.protobuf.Timestamp", Type::Timestamp),
        "net.IP" => ("net.IP", Type::Named("net.IP")),
        "net.CIDR" => ("net.CIDR", Type::Named("net.CIDR")),
        _ => return None,
    })
}
