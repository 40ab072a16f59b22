//! Parses tokens into a syntax tree.

use super::super::limits;
use super::ast::{Expr, ExprKind, FunctionCall, Mode, Select};
use super::lexer::{CelToken, Placed, Wrong, tokens};
use super::literal::Literal;
use super::macros;

/// Parses an expression.
///
/// # Errors
///
/// The error and its position.
pub(crate) fn parse(text: &str) -> Result<Expr, Wrong> {
    if text.len() > limits::EXPRESSION_BYTES {
        return Err(Wrong { at: 0, what: format!("expression is longer than {} bytes", limits::EXPRESSION_BYTES) });
    }
    let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0 };
    let expr = parser.expression()?;
    match parser.peek() {
        CelToken::End => Ok(expr),
        other => Err(parser.wrong(unexpected(other))),
    }
}

pub(super) fn unexpected(token: &CelToken) -> String {
    match token {
        CelToken::End => "Syntax error: mismatched input '<EOF>'".to_owned(),
        CelToken::Sign(sign) => format!("Syntax error: mismatched input '{sign}'"),
        CelToken::Name(name) => format!("Syntax error: mismatched input '{name}'"),
        CelToken::Literal(_) => "Syntax error: mismatched input".to_owned(),
    }
}

pub(super) struct Parser {
    tokens: Vec<Placed>,
    pub(super) next: usize,
    depth: usize,
}

impl Expr {
    pub(crate) fn new(at: usize, kind: ExprKind) -> Result<Self, Wrong> {
        let depth = 1 + deepest(&kind);
        if depth > 2 * limits::EXPRESSION_DEPTH {
            return Err(Wrong { at, what: "expression is nested too deeply".to_owned() });
        }
        Ok(Self { at, depth, kind })
    }
}

fn deepest(kind: &ExprKind) -> usize {
    let of = |exprs: &[Expr]| exprs.iter().map(|expr| expr.depth).max().unwrap_or(0);
    match kind {
        ExprKind::Literal(_) | ExprKind::Name(_) | ExprKind::Type(_) => 0,
        ExprKind::Select(select) => select.operand.depth,
        ExprKind::Call(call) => of(&call.args),
        ExprKind::And(exprs) | ExprKind::Or(exprs) => of(exprs),
        ExprKind::Choice(exprs) => of(&exprs[..]),
        ExprKind::List(elements) => elements.iter().map(|element| element.value.depth).max().unwrap_or(0),
        ExprKind::Map(entries) => entries.iter().map(|entry| entry.key.depth.max(entry.value.depth)).max().unwrap_or(0),
        ExprKind::Fold(fold) => {
            let filter = fold.filter.as_ref().map_or(0, |filter| filter.depth);
            fold.range.depth.max(fold.body.depth).max(filter)
        }
    }
}

/// Returns the precedence of an operator, and its function.
fn binary(token: &CelToken) -> Option<(u8, &'static str)> {
    let CelToken::Sign(sign) = token else {
        return matches!(token, CelToken::Name(name) if name == "in").then_some((3, "@in"));
    };
    Some(match *sign {
        "||" => (1, "_||_"),
        "&&" => (2, "_&&_"),
        "==" => (3, "_==_"),
        "!=" => (3, "_!=_"),
        "<" => (3, "_<_"),
        "<=" => (3, "_<=_"),
        ">" => (3, "_>_"),
        ">=" => (3, "_>=_"),
        "+" => (4, "_+_"),
        "-" => (4, "_-_"),
        "*" => (5, "_*_"),
        "/" => (5, "_/_"),
        "%" => (5, "_%_"),
        _ => return None,
    })
}

impl Parser {
    pub(super) fn peek(&self) -> &CelToken {
        self.tokens.get(self.next).map_or(&CelToken::End, |placed| &placed.token)
    }

    pub(super) fn at(&self) -> usize {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(0, |placed| placed.at)
    }

    pub(super) fn advance(&mut self) -> CelToken {
        let token = self.peek().clone();
        self.next += 1;
        token
    }

    pub(super) fn takes(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), CelToken::Sign(found) if *found == sign);
        self.next += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, sign: &str) -> Result<(), Wrong> {
        if self.takes(sign) { Ok(()) } else { Err(self.wrong(unexpected(self.peek()))) }
    }

    pub(super) fn wrong(&self, what: impl Into<String>) -> Wrong {
        Wrong { at: self.at(), what: what.into() }
    }

    pub(super) fn expression(&mut self) -> Result<Expr, Wrong> {
        self.depth += 1;
        if self.depth > limits::EXPRESSION_DEPTH {
            return Err(self.wrong("expression is nested too deeply"));
        }
        let condition = self.binary(1)?;
        let at = self.at();
        let expr = if self.takes("?") {
            let yes = self.binary(1)?;
            self.expect(":")?;
            let no = self.expression()?;
            Expr::new(at, ExprKind::Choice(Box::new([condition, yes, no])))?
        } else {
            condition
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn binary(&mut self, least: u8) -> Result<Expr, Wrong> {
        let mut left = self.unary()?;
        while let Some((binding, name)) = binary(self.peek()).filter(|(binding, _)| *binding >= least) {
            let at = self.at();
            self.next += 1;
            let right = self.binary(binding + 1)?;
            left = match (name, left.kind) {
                // Chains are kept flat: they may be much longer than the nesting limit.
                ("_&&_", ExprKind::And(mut all)) => {
                    all.push(right);
                    Expr::new(at, ExprKind::And(all))?
                }
                ("_||_", ExprKind::Or(mut all)) => {
                    all.push(right);
                    Expr::new(at, ExprKind::Or(all))?
                }
                (name, kind) => {
                    let left = Expr { at: left.at, depth: left.depth, kind };
                    match name {
                        "_&&_" => Expr::new(at, ExprKind::And(vec![left, right]))?,
                        "_||_" => Expr::new(at, ExprKind::Or(vec![left, right]))?,
                        _ => call(at, name, false, vec![left, right])?,
                    }
                }
            };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, Wrong> {
        let at = self.at();
        let (sign, name) = match self.peek() {
            CelToken::Sign("!") => ("!", "!_"),
            CelToken::Sign("-") => ("-", "-_"),
            _ => return self.member(),
        };
        let mut times = 0;
        while self.takes(sign) {
            times += 1;
        }
        let is_number = matches!(self.peek(), CelToken::Literal(Literal::Int(_) | Literal::Double(_)));
        let mut operand = if sign == "-" && is_number {
            times -= 1;
            self.negative(at)?
        } else {
            self.member()?
        };
        if times % 2 == 1 {
            operand = call(at, name, false, vec![operand])?;
        }
        Ok(operand)
    }

    /// Parses a number with its sign, which belongs to the literal.
    fn negative(&mut self, at: usize) -> Result<Expr, Wrong> {
        let literal = match self.advance() {
            CelToken::Literal(Literal::Int(int)) => Literal::Int(int.wrapping_neg()),
            CelToken::Literal(Literal::Double(double)) => Literal::Double(-double),
            _ => return Err(self.wrong("Syntax error")),
        };
        let number = Expr::new(at, ExprKind::Literal(literal))?;
        self.members(number)
    }

    fn member(&mut self) -> Result<Expr, Wrong> {
        if matches!(self.peek(), CelToken::Literal(Literal::Int(i64::MIN))) {
            return Err(self.wrong("invalid int literal"));
        }
        let primary = self.primary()?;
        self.members(primary)
    }

    fn members(&mut self, mut operand: Expr) -> Result<Expr, Wrong> {
        loop {
            let at = self.at();
            if self.takes(".") {
                let field = self.name()?;
                let open = self.at();
                if self.takes("(") {
                    let mut args = vec![operand];
                    args.append(&mut self.arguments(")")?);
                    operand = macros::member(open, &field, args)?;
                } else {
                    let select = Select { operand, field, mode: Mode::Value };
                    operand = Expr::new(at, ExprKind::Select(Box::new(select)))?;
                }
            } else if self.takes(".?") {
                let select = Select { operand, field: self.name()?, mode: Mode::Optional };
                operand = Expr::new(at, ExprKind::Select(Box::new(select)))?;
            } else if self.takes("[?") {
                let index = self.expression()?;
                self.expect("]")?;
                operand = call(at, "_[?_]", false, vec![operand, index])?;
            } else if self.takes("[") {
                let index = self.expression()?;
                self.expect("]")?;
                operand = call(at, "_[_]", false, vec![operand, index])?;
            } else {
                return Ok(operand);
            }
        }
    }

    fn name(&mut self) -> Result<String, Wrong> {
        match self.advance() {
            CelToken::Name(name) if !matches!(name.as_str(), "true" | "false" | "null" | "in") => Ok(name),
            other => {
                self.next -= 1;
                Err(self.wrong(unexpected(&other)))
            }
        }
    }

    pub(super) fn arguments(&mut self, end: &str) -> Result<Vec<Expr>, Wrong> {
        let mut args = Vec::new();
        while !self.takes(end) {
            args.push(self.expression()?);
            if !self.takes(",") {
                self.expect(end)?;
                break;
            }
        }
        Ok(args)
    }
}

/// Builds a call whose function is not resolved yet.
pub(crate) fn call(at: usize, name: &str, is_member: bool, args: Vec<Expr>) -> Result<Expr, Wrong> {
    let call = FunctionCall { name: name.to_owned(), is_member, args, function: None, regex: None };
    Expr::new(at, ExprKind::Call(Box::new(call)))
}
