//! Macros that iterate over lists and maps.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::ast::{Fold, FoldWay};
use super::compare::{check_sortable, order};
use super::eval::Eval;
use super::meter::{Fail, Meter};
use super::value::Val;
use super::view::as_key;

impl<'v> Eval<'v, '_> {
    pub(crate) fn fold(&mut self, fold: &'v Fold) -> Result<Val<'v>, Fail> {
        let range = self.expr(&fold.range)?;
        if matches!(fold.way, FoldWay::OptionalMap | FoldWay::OptionalFlatMap) {
            return self.over_optional(fold, range);
        }
        let walk = Walk::over(range, self.meter)?;
        let before = self.names.len();
        let result = match fold.way {
            FoldWay::All => self.quantified(fold, &walk, false),
            FoldWay::Exists => self.quantified(fold, &walk, true),
            FoldWay::ExistsOne => self.exists_one(fold, &walk),
            FoldWay::Map => self.mapped(fold, &walk),
            FoldWay::Filter => self.filtered(fold, &walk),
            FoldWay::SortBy => self.sorted(fold, &walk),
            _ => self.transformed(fold, &walk),
        };
        self.names.truncate(before);
        result
    }

    fn over_optional(&mut self, fold: &'v Fold, range: Val<'v>) -> Result<Val<'v>, Fail> {
        match range {
            Val::Optional(None) => Ok(Val::none()),
            Val::Optional(Some(inner)) => {
                self.names.push((&fold.variable, Ok(inner.as_ref().clone())));
                let result = self.expr(&fold.body);
                self.names.pop();
                let result = result?;
                Ok(if fold.way == FoldWay::OptionalMap { Val::some(result) } else { result })
            }
            _ => Err(Fail::no_overload()),
        }
    }

    /// Binds the names of the fold for one step.
    fn bind(&mut self, fold: &'v Fold, walk: &Walk<'v>, step: usize) -> Result<(), Fail> {
        self.meter.spend(1)?;
        let (first, second) = walk.step(step, fold.second.is_some(), self.meter)?;
        self.names.push((&fold.variable, Ok(first)));
        if let (Some(name), Some(second)) = (&fold.second, second) {
            self.names.push((name, Ok(second)));
        }
        Ok(())
    }

    fn unbind(&mut self, fold: &'v Fold) {
        let bound = 1 + usize::from(fold.second.is_some());
        self.names.truncate(self.names.len().saturating_sub(bound));
    }

    fn with_step<T>(
        &mut self,
        fold: &'v Fold,
        walk: &Walk<'v>,
        step: usize,
        work: impl FnOnce(&mut Self) -> Result<T, Fail>,
    ) -> Result<T, Fail> {
        self.bind(fold, walk, step)?;
        let result = work(self);
        self.unbind(fold);
        result
    }

    fn quantified(&mut self, fold: &'v Fold, walk: &Walk<'v>, decides: bool) -> Result<Val<'v>, Fail> {
        let mut failed = None;
        for step in 0..walk.length() {
            match self.with_step(fold, walk, step, |this| this.expr(&fold.body)) {
                Ok(Val::Bool(value)) if value == decides => return Ok(Val::Bool(decides)),
                Ok(Val::Bool(_)) => {}
                Ok(_) => failed = failed.or(Some(Fail::no_overload())),
                Err(Fail::Cost) => return Err(Fail::Cost),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(Val::Bool(!decides)), Err)
    }

    fn holds(&mut self, expr: &'v super::ast::Expr) -> Result<bool, Fail> {
        match self.expr(expr)? {
            Val::Bool(value) => Ok(value),
            _ => Err(Fail::no_overload()),
        }
    }

    fn exists_one(&mut self, fold: &'v Fold, walk: &Walk<'v>) -> Result<Val<'v>, Fail> {
        let mut count = 0;
        for step in 0..walk.length() {
            count += usize::from(self.with_step(fold, walk, step, |this| this.holds(&fold.body))?);
        }
        Ok(Val::Bool(count == 1))
    }

    /// Returns the value of the body, if the filter accepts the step.
    fn passed(&mut self, fold: &'v Fold, walk: &Walk<'v>, step: usize) -> Result<Option<Val<'v>>, Fail> {
        self.with_step(fold, walk, step, |this| {
            if let Some(filter) = &fold.filter
                && !this.holds(filter)?
            {
                return Ok(None);
            }
            this.expr(&fold.body).map(Some)
        })
    }

    fn mapped(&mut self, fold: &'v Fold, walk: &Walk<'v>) -> Result<Val<'v>, Fail> {
        let mut items = Vec::new();
        for step in 0..walk.length() {
            items.extend(self.passed(fold, walk, step)?);
        }
        Ok(Val::list(items))
    }

    fn filtered(&mut self, fold: &'v Fold, walk: &Walk<'v>) -> Result<Val<'v>, Fail> {
        let mut items = Vec::new();
        for step in 0..walk.length() {
            if self.with_step(fold, walk, step, |this| this.holds(&fold.body))? {
                items.push(walk.step(step, false, self.meter)?.0);
            }
        }
        Ok(Val::list(items))
    }

    fn sorted(&mut self, fold: &'v Fold, walk: &Walk<'v>) -> Result<Val<'v>, Fail> {
        let mut pairs = Vec::new();
        for step in 0..walk.length() {
            let key = self.with_step(fold, walk, step, |this| this.expr(&fold.body))?;
            pairs.push((key, walk.step(step, false, self.meter)?.0));
        }
        self.meter.spend(pairs.len() as u64 * 2)?;
        check_sortable(pairs.iter().map(|(key, _)| key), self.meter)?;
        pairs.sort_by(|(a, _), (b, _)| order(a, b).unwrap_or(Ordering::Equal));
        Ok(Val::list(pairs.into_iter().map(|(_, value)| value).collect()))
    }

    fn transformed(&mut self, fold: &'v Fold, walk: &Walk<'v>) -> Result<Val<'v>, Fail> {
        let mut map = BTreeMap::new();
        for step in 0..walk.length() {
            if let Some(value) = self.passed(fold, walk, step)? {
                let (key, _) = walk.step(step, true, self.meter)?;
                map.insert(as_key(&key, self.meter)?, value);
            }
        }
        Ok(Val::Map(Rc::new(map)))
    }
}

/// The collection of a fold.
enum Walk<'v> {
    List(Val<'v>, usize),
    Map(Val<'v>, Vec<Val<'v>>),
}

impl<'v> Walk<'v> {
    fn over(range: Val<'v>, meter: &mut Meter) -> Result<Self, Fail> {
        if let Some(length) = range.list_length() {
            return Ok(Self::List(range, length));
        }
        match range.map_keys(meter)? {
            Some(keys) => Ok(Self::Map(range, keys)),
            None => Err(Fail::no_overload()),
        }
    }

    fn length(&self) -> usize {
        match self {
            Self::List(_, length) => *length,
            Self::Map(_, keys) => keys.len(),
        }
    }

    /// Returns the element or key of a step. With `both`, returns the index or key, and the element.
    fn step(&self, step: usize, both: bool, meter: &mut Meter) -> Result<(Val<'v>, Option<Val<'v>>), Fail> {
        let missing = || Fail::error(format!("index out of bounds: {step}"));
        match self {
            Self::List(list, _) => {
                let item = list.list_item(step, meter).ok_or_else(missing)??;
                Ok(if both { (Val::Int(step as i64), Some(item)) } else { (item, None) })
            }
            Self::Map(map, keys) => {
                let key = keys.get(step).ok_or_else(missing)?.clone();
                let value = if both { map.map_find(&key, meter)? } else { None };
                Ok((key, value))
            }
        }
    }
}
