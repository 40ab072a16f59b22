//! Macros: calls that bind names, or test for presence.

use super::ast::{Expr, ExprKind, Fold, FoldWay, Mode};
use super::lexer::Wrong;
use super::parser::call;

/// Builds a call without a target.
pub(crate) fn global(at: usize, name: &str, mut args: Vec<Expr>) -> Result<Expr, Wrong> {
    if name != "has" || args.len() != 1 {
        return call(at, name, false, args);
    }
    match args.pop() {
        Some(Expr { kind: ExprKind::Select(mut select), .. }) if select.mode == Mode::Value => {
            select.mode = Mode::Presence;
            Expr::new(at, ExprKind::Select(select))
        }
        other => {
            let at = other.map_or(at, |arg| arg.at);
            Err(Wrong { at, what: "invalid argument to has() macro".to_owned() })
        }
    }
}

/// Builds a call with a target, which is the first of `args`.
pub(crate) fn member(at: usize, name: &str, args: Vec<Expr>) -> Result<Expr, Wrong> {
    let way = match (name, args.len() - 1) {
        ("all", 2 | 3) => FoldWay::All,
        ("exists", 2 | 3) => FoldWay::Exists,
        ("exists_one" | "existsOne", 2 | 3) => FoldWay::ExistsOne,
        ("map", 2 | 3) => FoldWay::Map,
        ("filter", 2) => FoldWay::Filter,
        ("sortBy", 2) => FoldWay::SortBy,
        ("transformList", 3 | 4) => FoldWay::Map,
        ("transformMap", 3 | 4) => FoldWay::TransformMap,
        ("optMap", 2) => FoldWay::OptionalMap,
        ("optFlatMap", 2) => FoldWay::OptionalFlatMap,
        ("transformMapEntry", 3 | 4) => {
            return Err(Wrong { at, what: "transformMapEntry() is not supported by this server".to_owned() });
        }
        _ => return call(at, name, true, args),
    };
    let has_two = name.starts_with("transform") || (way != FoldWay::Map && args.len() == 4);
    let mut args = args.into_iter();
    let (Some(range), Some(first)) = (args.next(), args.next()) else {
        return Err(Wrong { at, what: "Syntax error".to_owned() });
    };
    let variable = variable(&first)?;
    let second = match args.next() {
        Some(second) if has_two => Some(self::variable(&second)?),
        other => {
            let rest: Vec<Expr> = other.into_iter().chain(args).collect();
            return fold(at, way, range, variable, None, rest);
        }
    };
    fold(at, way, range, variable, second, args.collect())
}

fn variable(expr: &Expr) -> Result<String, Wrong> {
    match &expr.kind {
        ExprKind::Name(name) => Ok(name.clone()),
        _ => Err(Wrong { at: expr.at, what: "argument must be a simple name".to_owned() }),
    }
}

/// Builds a fold. The last of `rest` is the body; one before it is the filter.
fn fold(
    at: usize,
    way: FoldWay,
    range: Expr,
    variable: String,
    second: Option<String>,
    mut rest: Vec<Expr>,
) -> Result<Expr, Wrong> {
    let Some(body) = rest.pop() else {
        return Err(Wrong { at, what: "Syntax error".to_owned() });
    };
    if second.as_ref() == Some(&variable) {
        return Err(Wrong { at, what: "duplicate variable name".to_owned() });
    }
    let fold = Fold { way, range, variable, second, filter: rest.pop(), body };
    Expr::new(at, ExprKind::Fold(Box::new(fold)))
}
