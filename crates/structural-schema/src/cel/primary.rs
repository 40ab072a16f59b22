//! Primary expressions: literals, names, lists and maps.

use super::super::names;
use super::ast::{Element, Expr, ExprKind, MapEntry};
use super::lexer::{CelToken, Wrong};
use super::literal::Literal;
use super::macros;
use super::parser::{Parser, unexpected};

impl Parser {
    pub(super) fn primary(&mut self) -> Result<Expr, Wrong> {
        let at = self.at();
        match self.advance() {
            CelToken::Literal(literal) => Expr::new(at, ExprKind::Literal(literal)),
            CelToken::Sign("(") => {
                let expr = self.expression()?;
                self.expect(")")?;
                Ok(expr)
            }
            CelToken::Sign(open @ ("[" | "[?")) => self.list(at, open),
            CelToken::Sign(open @ ("{" | "{?")) => self.map(at, open),
            // A leading dot means the root scope, which is the only one.
            CelToken::Sign(".") => self.primary_name(self.at()),
            CelToken::Name(_) => {
                self.next -= 1;
                self.primary_name(at)
            }
            other => {
                self.next -= 1;
                let expected = "expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, \
                                NUM_UINT, STRING, BYTES, IDENTIFIER}";
                Err(self.wrong(format!("{} {expected}", unexpected(&other))))
            }
        }
    }

    fn primary_name(&mut self, at: usize) -> Result<Expr, Wrong> {
        let CelToken::Name(name) = self.advance() else {
            self.next -= 1;
            return Err(self.wrong(unexpected(self.peek())));
        };
        let literal = match name.as_str() {
            "true" => Some(Literal::Bool(true)),
            "false" => Some(Literal::Bool(false)),
            "null" => Some(Literal::Null),
            _ => None,
        };
        if let Some(literal) = literal {
            return Expr::new(at, ExprKind::Literal(literal));
        }
        if names::is_reserved(&name) {
            return Err(Wrong { at, what: format!("reserved identifier: {name}") });
        }
        let open = self.at();
        if self.takes("(") {
            let args = self.arguments(")")?;
            return macros::global(open, &name, args);
        }
        Expr::new(at, ExprKind::Name(name))
    }

    fn list(&mut self, at: usize, open: &str) -> Result<Expr, Wrong> {
        let mut elements = Vec::new();
        let mut is_optional = open == "[?";
        while is_optional || !self.takes("]") {
            is_optional = is_optional || self.takes("?");
            elements.push(Element { value: self.expression()?, is_optional });
            is_optional = false;
            if !self.takes(",") {
                self.expect("]")?;
                break;
            }
        }
        Expr::new(at, ExprKind::List(elements))
    }

    fn map(&mut self, at: usize, open: &str) -> Result<Expr, Wrong> {
        let mut entries = Vec::new();
        let mut is_optional = open == "{?";
        while is_optional || !self.takes("}") {
            is_optional = is_optional || self.takes("?");
            let key = self.expression()?;
            self.expect(":")?;
            entries.push(MapEntry { key, value: self.expression()?, is_optional });
            is_optional = false;
            if !self.takes(",") {
                self.expect("}")?;
                break;
            }
        }
        Expr::new(at, ExprKind::Map(entries))
    }
}
