//! Patterns: written for Go's engine and run by another linear-time engine, whose syntax differs in a few places.

use regex::{Regex, RegexBuilder};
use std::iter::Peekable;
use std::str::Chars;

use super::limits;

/// A pattern in the syntax of the engine used here.
pub(crate) struct Translated {
    text: String,
    /// The number of parts after repetitions are unrolled.
    pub(crate) parts: usize,
}

/// Compiles one pattern.
///
/// # Errors
///
/// The error message.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    let translated = Translated::of(pattern);
    if translated.parts > limits::PATTERN_PARTS / 4 || pattern.len() > limits::EXPRESSION_BYTES {
        return Err("the expression is too large".to_owned());
    }
    translated.build()
}

impl Translated {
    /// Translates a pattern. Whether it is valid shows when it is built.
    pub(crate) fn of(pattern: &str) -> Self {
        let rest = pattern.chars().peekable();
        let mut translator =
            Translator { rest, text: String::with_capacity(pattern.len() + 8), groups: vec![PatternGroup::default()] };
        while let Some(char) = translator.rest.next() {
            translator.step(char);
        }
        let parts = translator.groups.iter().map(|group| group.parts).fold(0, usize::saturating_add);
        Self { text: translator.text, parts }
    }

    /// Compiles the translated pattern.
    pub(crate) fn build(&self) -> Result<Regex, String> {
        let mut builder = RegexBuilder::new(&self.text);
        builder.octal(true).nest_limit(100).size_limit(limits::PATTERN_BYTES).dfa_size_limit(limits::PATTERN_CACHE);
        builder.build().map_err(|error| {
            let error = error.to_string();
            error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
        })
    }
}

/// The parts in a group, and those of its last piece, which a repetition multiplies.
#[derive(Default)]
struct PatternGroup {
    parts: usize,
    last: usize,
}

struct Translator<'a> {
    rest: Peekable<Chars<'a>>,
    text: String,
    groups: Vec<PatternGroup>,
}

impl Translator<'_> {
    fn step(&mut self, char: char) {
        match char {
            '\\' => self.escape(),
            '[' => self.class(),
            '{' => self.braces(),
            '(' => {
                self.text.push('(');
                self.groups.push(PatternGroup::default());
                // Names of groups are dropped: one may occur twice in Go.
                let ahead: String = self.rest.clone().take(3).collect();
                if ahead == "?P<" || ahead.starts_with("?<") && !matches!(ahead.as_str(), "?<=" | "?<!") {
                    self.rest.by_ref().take_while(|char| *char != '>').for_each(drop);
                }
            }
            ')' => {
                let group = if self.groups.len() > 1 { self.groups.pop() } else { None };
                self.piece(")", group.map_or(1, |group| group.parts.max(1)));
            }
            '.' => self.piece(".", 12),
            char => self.piece(char.encode_utf8(&mut [0; 4]), 1),
        }
    }

    fn piece(&mut self, text: &str, parts: usize) {
        self.text.push_str(text);
        if let Some(group) = self.groups.last_mut() {
            group.parts = group.parts.saturating_add(parts);
            group.last = parts;
        }
    }

    /// Translates an escape. In Go, classes such as `\d` hold ASCII characters only.
    fn escape(&mut self) {
        let Some(char) = self.rest.next() else { return self.text.push('\\') };
        match char {
            'd' => self.piece("[0-9]", 10),
            'w' => self.piece("[0-9A-Za-z_]", 10),
            's' => self.piece("[\\t\\n\\f\\r ]", 10),
            'D' => self.piece("[^0-9]", 10),
            'W' => self.piece("[^0-9A-Za-z_]", 10),
            'S' => self.piece("[^\\t\\n\\f\\r ]", 10),
            'b' => self.piece("(?-u:\\b)", 10),
            'p' | 'P' => {
                let is_named = self.rest.peek() == Some(&'{');
                let name: String = if is_named {
                    self.rest.by_ref().take_while(|char| *char != '}').chain(['}']).collect()
                } else {
                    self.rest.next().into_iter().collect()
                };
                self.piece(&format!("\\{char}{name}"), 600);
            }
            'Q' => {
                // Literal text up to `\E`.
                while let Some(char) = self.rest.next() {
                    if char == '\\' && self.rest.next_if_eq(&'E').is_some() {
                        break;
                    }
                    self.piece(&exactly(char), 1);
                }
            }
            char if char.is_ascii_punctuation() => self.piece(&exactly(char), 1),
            char => self.piece(&format!("\\{char}"), 1),
        }
    }

    /// Translates a character class after its bracket. Brackets and set operators inside are literal in Go.
    fn class(&mut self) {
        self.text.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.text.push('^');
        }
        let mut is_first = true;
        while let Some(char) = self.rest.next() {
            match char {
                ']' if !is_first => return self.piece("]", 10),
                '[' if self.is_named_class() => {
                    let name: String = self.rest.by_ref().take_while(|char| *char != ']').collect();
                    self.text.push_str(&format!("[{name}]"));
                }
                '-' if self.rest.peek() == Some(&'-') => self.text.push_str("-\\-"),
                '-' => self.text.push('-'),
                '\\' => match self.rest.next() {
                    // The last item is no single character, so that a minus after it is literal.
                    Some('d') => self.text.push_str("0-9"),
                    Some('w') => self.text.push_str("_0-9A-Za-z"),
                    Some('s') => self.text.push_str(" \\t-\\n\\f-\\r"),
                    Some('D') => self.text.push_str("[^0-9]"),
                    Some('W') => self.text.push_str("[^0-9A-Za-z_]"),
                    Some('S') => self.text.push_str("[^\\t\\n\\f\\r ]"),
                    Some(char) if char.is_ascii_punctuation() => self.text.push_str(&exactly(char)),
                    Some(char) => self.text.extend(['\\', char]),
                    None => self.text.push('\\'),
                },
                char if char.is_ascii_punctuation() => self.text.push_str(&exactly(char)),
                char => self.text.push(char),
            }
            is_first = false;
        }
    }

    /// Returns whether a class such as `[:alpha:]` follows a bracket.
    fn is_named_class(&mut self) -> bool {
        let mut ahead = self.rest.clone();
        ahead.next() == Some(':')
            && ahead.skip_while(|char| char.is_ascii_lowercase() || *char == '^').take(2).eq([':', ']'])
    }

    /// Translates a repetition. Braces that are not a repetition are literal.
    fn braces(&mut self) {
        let ahead: String = self.rest.clone().take_while(|char| *char != '}').take(16).collect();
        let closes = self.rest.clone().nth(ahead.chars().count()) == Some('}');
        let (least, most) = ahead.split_once(',').unwrap_or((&ahead, &ahead));
        let is_count = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !closes || !is_count(least) || !(most.is_empty() || is_count(most)) {
            return self.piece("\\{", 1);
        }
        self.text.push_str(&format!("{{{ahead}}}"));
        self.rest.nth(ahead.len());
        let times = if most.is_empty() { least } else { most }.parse::<usize>().unwrap_or(usize::MAX).max(1);
        if let Some(group) = self.groups.last_mut() {
            group.parts = group.parts.saturating_add(group.last.saturating_mul(times - 1));
            group.last = group.last.saturating_mul(times);
        }
    }
}

/// Returns the pattern of one character, valid inside and outside of classes.
fn exactly(char: char) -> String {
    format!("\\x{{{:x}}}", char as u32)
}
