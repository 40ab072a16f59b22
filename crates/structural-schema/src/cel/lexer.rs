//! Splits the text of an expression into tokens.

use super::literal::{Literal, unescape};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CelToken {
    Literal(Literal),
    Name(String),
    /// An operator or a bracket.
    Sign(&'static str),
    End,
}

/// A token and its position, in characters.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) at: usize,
    pub(crate) token: CelToken,
}

/// An error at a position of the text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wrong {
    pub(crate) at: usize,
    pub(crate) what: String,
}

/// All operators and brackets, longer ones first.
const SIGNS: [&str; 26] = [
    "&&", "||", "==", "!=", "<=", ">=", ".?", "[?", "{?", "(", ")", "[", "]", "{", "}", ".", ",", ":", "?", "<", ">",
    "+", "-", "*", "/", "%",
];

pub(crate) fn tokens(text: &str) -> Result<Vec<Placed>, Wrong> {
    let chars: Vec<char> = text.chars().collect();
    let mut lexer = Lexer { chars: &chars, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_space();
        let at = lexer.at;
        let token = lexer.token()?;
        let is_end = token == CelToken::End;
        tokens.push(Placed { at, token });
        if is_end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    chars: &'a [char],
    at: usize,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn wrong(&self, at: usize, what: impl Into<String>) -> Wrong {
        Wrong { at, what: what.into() }
    }

    fn starts_with(&self, sign: &str) -> bool {
        sign.chars().enumerate().all(|(index, char)| self.peek(index) == Some(char))
    }

    fn skip_space(&mut self) {
        loop {
            match self.peek(0) {
                Some(' ' | '\t' | '\n' | '\r' | '\x0c') => self.at += 1,
                Some('/') if self.peek(1) == Some('/') => {
                    while self.peek(0).is_some_and(|char| char != '\n') {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    fn token(&mut self) -> Result<CelToken, Wrong> {
        let Some(first) = self.peek(0) else {
            return Ok(CelToken::End);
        };
        if let Some(token) = self.quoted()? {
            return Ok(token);
        }
        if first.is_ascii_digit() || (first == '.' && self.peek(1).is_some_and(|char| char.is_ascii_digit())) {
            return self.number();
        }
        if first.is_ascii_alphabetic() || first == '_' {
            return Ok(CelToken::Name(self.take_while(|char| char.is_ascii_alphanumeric() || char == '_')));
        }
        if let Some(sign) = SIGNS.into_iter().find(|sign| self.starts_with(sign)) {
            self.at += sign.len();
            return Ok(CelToken::Sign(sign));
        }
        if first == '!' {
            self.at += 1;
            return Ok(CelToken::Sign("!"));
        }
        Err(self.wrong(self.at, format!("Syntax error: token recognition error at: '{first}'")))
    }

    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> String {
        let start = self.at;
        while self.peek(0).is_some_and(&fits) {
            self.at += 1;
        }
        self.chars[start..self.at].iter().collect()
    }

    fn number(&mut self) -> Result<CelToken, Wrong> {
        let start = self.at;
        if self.peek(0) == Some('0') && matches!(self.peek(1), Some('x' | 'X')) {
            self.at += 2;
            let digits = self.take_while(|char| char.is_ascii_hexdigit());
            return self.integer(start, &digits, 16);
        }
        let mut digits = self.take_while(|char| char.is_ascii_digit());
        let mut is_double = false;
        if self.peek(0) == Some('.') && self.peek(1).is_some_and(|char| char.is_ascii_digit()) {
            self.at += 1;
            digits.push('.');
            digits.push_str(&self.take_while(|char| char.is_ascii_digit()));
            is_double = true;
        }
        if matches!(self.peek(0), Some('e' | 'E')) {
            let signed = usize::from(matches!(self.peek(1), Some('+' | '-')));
            if self.peek(1 + signed).is_some_and(|char| char.is_ascii_digit()) {
                digits.extend(&self.chars[self.at..=self.at + signed]);
                self.at += 1 + signed;
                digits.push_str(&self.take_while(|char| char.is_ascii_digit()));
                is_double = true;
            }
        }
        if !is_double {
            return self.integer(start, &digits, 10);
        }
        match digits.parse::<f64>() {
            Ok(double) if double.is_finite() => Ok(CelToken::Literal(Literal::Double(double))),
            _ => Err(self.wrong(start, "invalid double literal")),
        }
    }

    fn integer(&mut self, start: usize, digits: &str, radix: u32) -> Result<CelToken, Wrong> {
        let value = u64::from_str_radix(digits, radix);
        if matches!(self.peek(0), Some('u' | 'U')) {
            self.at += 1;
            return match value {
                Ok(uint) => Ok(CelToken::Literal(Literal::Uint(uint))),
                Err(_) => Err(self.wrong(start, "invalid uint literal")),
            };
        }
        // The smallest integer has no positive counterpart, so the parser applies its sign.
        match value {
            Ok(uint) if uint <= 1 << 63 => Ok(CelToken::Literal(Literal::Int((uint as i64).wrapping_abs()))),
            _ => Err(self.wrong(start, "invalid int literal")),
        }
    }

    /// Reads a string or bytes literal in any of its notations.
    fn quoted(&mut self) -> Result<Option<CelToken>, Wrong> {
        let (mut is_raw, mut is_bytes, mut prefix) = (false, false, 0);
        while prefix < 2 {
            match self.peek(prefix) {
                Some('r' | 'R') if !is_raw => is_raw = true,
                Some('b' | 'B') if !is_bytes && !is_raw => is_bytes = true,
                _ => break,
            }
            prefix += 1;
        }
        let Some(quote @ ('"' | '\'')) = self.peek(prefix) else {
            return Ok(None);
        };
        let start = self.at;
        self.at += prefix;
        let triple: String = [quote; 3].iter().collect();
        let end = if self.starts_with(&triple) { triple } else { quote.to_string() };
        self.at += end.len();
        let content_start = self.at;
        while !self.starts_with(&end) {
            match self.peek(0) {
                None => return Err(self.wrong(start, "Syntax error: unterminated string")),
                Some('\n' | '\r') if end.len() == 1 => {
                    return Err(self.wrong(start, "Syntax error: unterminated string"));
                }
                Some('\\') if !is_raw => self.at += 2,
                Some(_) => self.at += 1,
            }
        }
        let content: String = self.chars[content_start..self.at].iter().collect();
        self.at += end.len();
        let bytes = if is_raw { Ok(content.into_bytes()) } else { unescape(&content, is_bytes) };
        let bytes = bytes.map_err(|what| self.wrong(start, what))?;
        if is_bytes {
            return Ok(Some(CelToken::Literal(Literal::Bytes(bytes))));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(CelToken::Literal(Literal::String(text)))),
            Err(_) => Err(self.wrong(start, "invalid unicode code point")),
        }
    }
}
