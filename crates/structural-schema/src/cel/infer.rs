//! Type inference for calls and macros.

use std::rc::Rc;

use super::super::duration;
use super::super::pattern;
use super::ast::{Element, Expr, ExprKind, Fold, FoldWay, FunctionCall};
use super::check::{Checker, dotted};
use super::format_check;
use super::functions::{self, Function};
use super::literal::Literal;
use super::types::CelType;

impl<'s> Checker<'s> {
    pub(super) fn call(&mut self, call: &mut FunctionCall, at: usize) -> CelType<'s> {
        // A member call can also be a function with a dotted name.
        if call.is_member
            && let Some(prefix) = call.args.first().and_then(dotted)
            && !self.names.iter().any(|(held, _)| *held == prefix)
        {
            let name = format!("{prefix}.{}", call.name);
            if functions::find(&name).is_some() {
                call.args.remove(0);
                call.name = name;
                call.is_member = false;
            }
        }
        let mixed_before = self.mixed_allowed;
        self.mixed_allowed = call.name == "format";
        let args: Vec<CelType<'s>> = match call.args.as_mut_slice() {
            [text, Expr { kind: ExprKind::List(values), .. }] if call.is_member && call.name == "format" => {
                vec![self.expr(text), self.format(text, values, at)]
            }
            args => args.iter_mut().map(|arg| self.expr(arg)).collect(),
        };
        self.mixed_allowed = mixed_before;
        let Some(function) = functions::find(&call.name) else {
            return self.report(at, format!("undeclared reference to '{}' (in container '')", call.name));
        };
        call.function = Some(function);
        self.literals(call);
        match self.resolve(function, &args, call.is_member) {
            Some(result) => result,
            None => self.no_overload(&call.name, &args, call.is_member, at),
        }
    }

    /// Checks the arguments of a format, each against its own clause.
    fn format(&mut self, text: &Expr, values: &mut [Element], at: usize) -> CelType<'s> {
        let mut found = Vec::with_capacity(values.len());
        for value in values {
            let value_type = self.expr(&mut value.value);
            found.push((value.value.at, self.known.resolve(&value_type)));
        }
        if let ExprKind::Literal(Literal::String(text)) = &text.kind {
            self.wrong.extend(format_check::check(text, &found, at));
        }
        CelType::list(CelType::Dyn)
    }

    /// Returns the result type of the matching overloads. They may differ.
    fn resolve(&mut self, function: &'static Function, args: &[CelType<'s>], is_member: bool) -> Option<CelType<'s>> {
        let mut result: Option<CelType<'s>> = None;
        for overload in &function.overloads {
            if overload.is_member != is_member || overload.params.len() != args.len() {
                continue;
            }
            let mark = self.known.mark();
            let letters = [self.known.fresh(), self.known.fresh()];
            let fits = overload.params.iter().zip(args).all(|(param, arg)| self.known.fits(&param.with(&letters), arg));
            if !fits {
                self.known.forget(&mark);
                continue;
            }
            let found = self.known.resolve(&overload.result.with(&letters));
            result = match result {
                None => Some(found),
                Some(earlier) if earlier.to_string() == found.to_string() => Some(earlier),
                Some(_) => Some(CelType::Dyn),
            };
        }
        result
    }

    /// Checks arguments that are literals.
    fn literals(&mut self, call: &mut FunctionCall) {
        let Some(Expr { at, kind: ExprKind::Literal(Literal::String(text)), .. }) = call.args.last() else {
            if times_with_zone(call) {
                let at = call.args.last().map_or(0, |arg| arg.at);
                self.report(at, "a time zone must be written as a literal".to_owned());
            }
            return;
        };
        let (at, text) = (*at, text.clone());
        match (call.name.as_str(), call.args.len()) {
            ("matches" | "find" | "findAll", 2) => match pattern::compile(&text) {
                Ok(regex) => call.regex = Some(regex),
                Err(_) => {
                    self.report(at, format!("invalid {} argument", call.name));
                }
            },
            ("duration", 1) if duration::parse(&text).is_err() => {
                self.report(at, "invalid duration argument".to_owned());
            }
            ("timestamp", 1) if duration::Timestamp::parse(&text).is_none() => {
                self.report(at, "invalid timestamp argument".to_owned());
            }
            _ if times_with_zone(call) && duration::zone(&text).is_none() => {
                let what = format!("time zone '{text}' is not supported by this server: use UTC or an offset");
                self.report(at, what);
            }
            _ => {}
        }
    }

    pub(super) fn fold(&mut self, fold: &mut Fold, at: usize) -> CelType<'s> {
        let range = self.expr(&mut fold.range);
        let range = self.known.resolve(&range);
        let (first, second) = match (&range, fold.way) {
            (CelType::Optional(inner), FoldWay::OptionalMap | FoldWay::OptionalFlatMap) => {
                (inner.as_ref().clone(), CelType::Dyn)
            }
            (CelType::Dyn | CelType::Any(_), _) => (CelType::Dyn, CelType::Dyn),
            (_, FoldWay::OptionalMap | FoldWay::OptionalFlatMap) => {
                let name = if fold.way == FoldWay::OptionalMap { "optMap" } else { "optFlatMap" };
                return self.no_overload(name, &[range], true, at);
            }
            (CelType::List(inner), _) if fold.second.is_some() => (CelType::Int, inner.as_ref().clone()),
            (CelType::List(inner), _) => (inner.as_ref().clone(), CelType::Dyn),
            (CelType::Map(pair), _) => (pair.0.clone(), pair.1.clone()),
            (other, _) => {
                let what = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                return self.report(fold.range.at, what);
            }
        };
        let before = self.names.len();
        self.names.push((fold.variable.clone(), first.clone()));
        if let Some(name) = &fold.second {
            self.names.push((name.clone(), second));
        }
        if let Some(filter) = &mut fold.filter {
            self.wants_bool(filter);
        }
        let result = match fold.way {
            FoldWay::All | FoldWay::Exists | FoldWay::ExistsOne => {
                self.wants_bool(&mut fold.body);
                CelType::Bool
            }
            FoldWay::Filter => {
                self.wants_bool(&mut fold.body);
                CelType::list(first)
            }
            FoldWay::Map => CelType::list(self.expr(&mut fold.body)),
            FoldWay::SortBy => {
                self.expr(&mut fold.body);
                range
            }
            FoldWay::TransformMap => CelType::Map(Rc::new((first, self.expr(&mut fold.body)))),
            FoldWay::OptionalMap => CelType::optional(self.expr(&mut fold.body)),
            FoldWay::OptionalFlatMap => self.expr(&mut fold.body),
        };
        self.names.truncate(before);
        result
    }
}

fn times_with_zone(call: &FunctionCall) -> bool {
    call.name.starts_with("get") && call.args.len() == 2
}
