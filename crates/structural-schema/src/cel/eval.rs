//! Evaluates an expression.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::ast::{Element, Expr, ExprKind, FunctionCall, MapEntry, Mode, Select};
use super::functions::Args;
use super::literal::Literal;
use super::meter::{Fail, Meter};
use super::optional;
use super::value::{CelText, Val};
use super::view::as_key;

/// A checked expression.
#[derive(Debug)]
pub(crate) struct CelProgram {
    expr: Expr,
}

/// The inputs of an expression.
pub(crate) struct Inputs<'v> {
    /// The value. If it does not fit its schema, only its use is an error.
    pub(crate) this: Result<Val<'v>, Fail>,
    /// The old value; `None` if the expression does not use it.
    pub(crate) old: Option<Result<Val<'v>, Fail>>,
}

impl CelProgram {
    pub(crate) fn new(expr: Expr) -> Self {
        Self { expr }
    }

    /// Runs the expression. The meter contains the cost afterwards, also after an error.
    pub(crate) fn run<'v>(&'v self, inputs: &Inputs<'v>, meter: &mut Meter) -> Result<Val<'v>, Fail> {
        let mut names = vec![("self", inputs.this.clone())];
        names.extend(inputs.old.clone().map(|old| ("oldSelf", old)));
        self.run_with(names, meter)
    }

    /// Runs the expression with these values of its variables.
    pub(crate) fn run_with<'v>(&'v self, names: VariableValues<'v>, meter: &mut Meter) -> Result<Val<'v>, Fail> {
        Eval { names, meter }.expr(&self.expr)
    }
}

/// The values of variables, by name.
pub(crate) type VariableValues<'v> = Vec<(&'v str, Result<Val<'v>, Fail>)>;

pub(crate) struct Eval<'v, 'm> {
    pub(crate) names: VariableValues<'v>,
    pub(crate) meter: &'m mut Meter,
}

impl<'v> Eval<'v, '_> {
    pub(crate) fn expr(&mut self, expr: &'v Expr) -> Result<Val<'v>, Fail> {
        match &expr.kind {
            ExprKind::Literal(literal) => {
                if let Literal::Bytes(bytes) = literal {
                    self.meter.copy(bytes.len())?;
                }
                Ok(of_literal(literal))
            }
            ExprKind::Type(name) => Ok(Val::Type(name)),
            ExprKind::Name(name) => {
                self.meter.spend(1)?;
                let found = self.names.iter().rev().find(|(held, _)| held == name);
                match found {
                    Some((_, value)) => {
                        if let Err(Fail::Error(why)) = value {
                            self.meter.copy(why.len())?;
                        }
                        value.clone()
                    }
                    None => Err(Fail::error(format!("no such attribute(s): {name}"))),
                }
            }
            ExprKind::Select(select) => self.select(select),
            ExprKind::Call(call) => self.call(call),
            ExprKind::And(exprs) => self.logic(exprs, false),
            ExprKind::Or(exprs) => self.logic(exprs, true),
            ExprKind::Choice(exprs) => {
                let [condition, yes, no] = exprs.as_ref();
                match self.expr(condition)? {
                    Val::Bool(true) => self.expr(yes),
                    Val::Bool(false) => self.expr(no),
                    _ => Err(Fail::no_overload()),
                }
            }
            ExprKind::List(elements) => self.list(elements),
            ExprKind::Map(entries) => self.map(entries),
            ExprKind::Fold(fold) => self.fold(fold),
        }
    }

    /// Evaluates `&&` or `||`. A value equal to `decides` is the result; otherwise an error counts.
    fn logic(&mut self, exprs: &'v [Expr], decides: bool) -> Result<Val<'v>, Fail> {
        let mut failed = None;
        for expr in exprs {
            match self.expr(expr) {
                Ok(Val::Bool(value)) if value == decides => return Ok(Val::Bool(decides)),
                Ok(Val::Bool(_)) => {}
                Ok(_) => failed = failed.or(Some(Fail::no_overload())),
                Err(Fail::Cost) => return Err(Fail::Cost),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(Val::Bool(!decides)), Err)
    }

    fn select(&mut self, select: &'v Select) -> Result<Val<'v>, Fail> {
        let operand = self.expr(&select.operand)?;
        self.meter.spend(1)?;
        let key = Val::String(CelText::Borrowed(&select.field));
        let (operand, was_optional) = match operand {
            Val::Optional(None) if select.mode == Mode::Presence => return Ok(Val::Bool(false)),
            Val::Optional(None) => return Ok(Val::none()),
            Val::Optional(Some(inner)) => (inner.as_ref().clone(), true),
            other => (other, false),
        };
        match select.mode {
            Mode::Presence => match &operand {
                Val::Members(_) | Val::Map(_) => Ok(Val::Bool(operand.map_find(&key, self.meter)?.is_some())),
                _ => Err(Fail::no_overload()),
            },
            // As in cel-go, nothing has a field of null.
            Mode::Value if !was_optional && matches!(operand, Val::Null) => {
                Err(Fail::error(format!("no such key: {}", select.field)))
            }
            Mode::Value if !was_optional => {
                let found = operand.map_find(&key, self.meter)?;
                found.ok_or_else(|| Fail::error(format!("no such key: {}", select.field)))
            }
            _ => Ok(operand.map_find(&key, self.meter)?.map_or_else(Val::none, optional::flat_some)),
        }
    }

    fn call(&mut self, call: &'v FunctionCall) -> Result<Val<'v>, Fail> {
        let mut args = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            args.push(self.expr(arg)?);
            // For optionals, the first value decides whether the second is evaluated.
            if call.args.len() == 2
                && args.len() == 1
                && matches!(call.name.as_str(), "or" | "orValue")
                && let Some(Val::Optional(Some(inner))) = args.first()
            {
                let inner = inner.clone();
                return Ok(if call.name == "or" { Val::Optional(Some(inner)) } else { inner.as_ref().clone() });
            }
        }
        self.meter.spend(1)?;
        let Some(function) = call.function else {
            return Err(Fail::no_overload());
        };
        (function.run)(Args { args: &args, meter: self.meter, regex: call.regex.as_ref() })
    }

    fn list(&mut self, elements: &'v [Element]) -> Result<Val<'v>, Fail> {
        self.meter.spend(10)?;
        let mut items = Vec::with_capacity(elements.len());
        for element in elements {
            let value = self.expr(&element.value)?;
            match (element.is_optional, value) {
                (false, value) => items.push(value),
                (true, Val::Optional(Some(value))) => items.push(value.as_ref().clone()),
                (true, Val::Optional(None)) => {}
                (true, _) => {
                    return Err(Fail::error("cannot initialize optional list element from non-optional value"));
                }
            }
        }
        Ok(Val::list(items))
    }

    fn map(&mut self, entries: &'v [MapEntry]) -> Result<Val<'v>, Fail> {
        self.meter.spend(30)?;
        let mut map = BTreeMap::new();
        for entry in entries {
            let key = self.expr(&entry.key)?;
            let key = as_key(&key, self.meter)?;
            let value = match (entry.is_optional, self.expr(&entry.value)?) {
                (false, value) => value,
                (true, Val::Optional(Some(value))) => value.as_ref().clone(),
                (true, Val::Optional(None)) => continue,
                (true, _) => return Err(Fail::error("cannot initialize optional entry from non-optional value")),
            };
            map.insert(key, value);
        }
        Ok(Val::Map(Rc::new(map)))
    }
}

fn of_literal(literal: &Literal) -> Val<'_> {
    match literal {
        Literal::Null => Val::Null,
        Literal::Bool(bool) => Val::Bool(*bool),
        Literal::Int(int) => Val::Int(*int),
        Literal::Uint(uint) => Val::Uint(*uint),
        Literal::Double(double) => Val::Double(*double),
        Literal::String(text) => Val::String(CelText::Borrowed(text)),
        Literal::Bytes(bytes) => Val::Bytes(bytes.as_slice().into()),
    }
}
