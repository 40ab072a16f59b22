//! Translates patterns from Go's syntax to that of the engine used here.

use std::iter::Peekable;
use std::str::Chars;

use super::limits;

/// A translated pattern.
pub(crate) struct Translated {
    pub(crate) text: String,
    /// The number of parts after repetitions are unrolled.
    pub(crate) parts: usize,
}

/// Translates a pattern.
///
/// # Errors
///
/// The error message.
pub(crate) fn translate(pattern: &str) -> Result<Translated, String> {
    if pattern.len() > limits::EXPRESSION_BYTES {
        return Err("error parsing regexp: expression too large: ``".to_owned());
    }
    let mut translator = Translator {
        pattern,
        rest: pattern.chars().peekable(),
        out: String::with_capacity(pattern.len() + 8),
        groups: vec![Group::default()],
    };
    translator.run()?;
    let parts = translator.groups.iter().map(|group| group.parts).fold(0, usize::saturating_add);
    Ok(Translated { text: translator.out, parts })
}

/// The parts in a group, and those of its last piece, which a repetition multiplies.
#[derive(Default)]
struct Group {
    parts: usize,
    last: usize,
    before: Before,
}

/// The piece before a repetition.
#[derive(Default, Clone)]
enum Before {
    #[default]
    Nothing,
    Piece,
    Repetition(String),
    /// A repetition with a question mark after it.
    Lazy(String),
}

pub(super) struct Translator<'a> {
    pattern: &'a str,
    pub(super) rest: Peekable<Chars<'a>>,
    pub(super) out: String,
    groups: Vec<Group>,
}

impl Translator<'_> {
    fn run(&mut self) -> Result<(), String> {
        while let Some(char) = self.rest.next() {
            match char {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.open()?,
                ')' => self.close()?,
                '{' => self.braces()?,
                '*' | '+' | '?' => self.repeat(&char.to_string())?,
                '|' => {
                    self.out.push('|');
                    self.set_before(Before::Nothing);
                }
                '.' => self.piece(".", 12),
                _ => {
                    let mut text = [0; 4];
                    self.piece(char.encode_utf8(&mut text), 1);
                }
            }
        }
        if self.groups.len() > 1 {
            return Err(self.wrong("missing closing )", self.pattern));
        }
        Ok(())
    }

    pub(super) fn wrong(&self, what: &str, part: &str) -> String {
        format!("error parsing regexp: {what}: `{part}`")
    }

    fn set_before(&mut self, before: Before) {
        if let Some(group) = self.groups.last_mut() {
            group.before = before;
        }
    }

    fn repeat(&mut self, operator: &str) -> Result<(), String> {
        let before = self.groups.last().map(|group| group.before.clone()).unwrap_or_default();
        let after = match before {
            Before::Nothing => return Err(self.wrong("missing argument to repetition operator", operator)),
            Before::Piece => Before::Repetition(operator.to_owned()),
            Before::Repetition(earlier) if operator == "?" => Before::Lazy(earlier + "?"),
            Before::Repetition(earlier) | Before::Lazy(earlier) => {
                return Err(self.wrong("invalid nested repetition operator", &format!("{earlier}{operator}")));
            }
        };
        self.out.push_str(operator);
        self.set_before(after);
        Ok(())
    }

    pub(super) fn piece(&mut self, text: &str, parts: usize) {
        self.out.push_str(text);
        if let Some(group) = self.groups.last_mut() {
            group.parts = group.parts.saturating_add(parts);
            group.last = parts;
            group.before = Before::Piece;
        }
    }

    fn open(&mut self) -> Result<(), String> {
        if self.groups.len() > limits::DEPTH {
            return Err(self.wrong("expression nests too deeply", self.pattern));
        }
        self.out.push('(');
        self.groups.push(Group::default());
        if self.rest.next_if_eq(&'?').is_some() {
            return self.group_head();
        }
        Ok(())
    }

    /// Reads the flags and the name at the start of a group. Names are dropped.
    fn group_head(&mut self) -> Result<(), String> {
        let ahead: String = self.rest.clone().take(2).collect();
        if ahead.starts_with("P<") || (ahead.starts_with('<') && !matches!(ahead.as_str(), "<=" | "<!")) {
            let name: String = self.rest.clone().take_while(|char| *char != '>').collect();
            let word = name.trim_start_matches('P').trim_start_matches('<');
            let is_word = !word.is_empty() && word.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
            let closes = self.rest.clone().nth(name.chars().count()) == Some('>');
            if !is_word || !closes {
                let end = if closes { ">" } else { "" };
                return Err(self.wrong("invalid named capture", &format!("(?{name}{end}")));
            }
            for _ in 0..=name.chars().count() {
                self.rest.next();
            }
            return Ok(());
        }
        let mut head = String::from("?");
        while let Some(char) = self.rest.next_if(|char| matches!(char, 'i' | 'm' | 's' | 'U' | '-')) {
            head.push(char);
        }
        match self.rest.peek() {
            Some(':') => {
                self.rest.next();
                head.push(':');
            }
            Some(')') if head.len() > 1 => {}
            other => {
                let part: String = "(".chars().chain(head.chars()).chain(other.copied()).collect();
                return Err(self.wrong("invalid or unsupported Perl syntax", &part));
            }
        }
        self.out.push_str(&head);
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        if self.groups.len() < 2 {
            return Err(self.wrong("unexpected )", self.pattern));
        }
        let parts = self.groups.pop().map_or(1, |group| group.parts.max(1));
        self.piece(")", parts);
        Ok(())
    }

    /// Reads a repetition. Braces that are not a repetition are literal.
    fn braces(&mut self) -> Result<(), String> {
        let ahead: String = self.rest.clone().take_while(|char| *char != '}').take(16).collect();
        let closes = self.rest.clone().nth(ahead.chars().count()) == Some('}');
        let (least, most) = ahead.split_once(',').unwrap_or((&ahead, &ahead));
        let is_count = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !closes || !is_count(least) || !(most.is_empty() || is_count(most)) {
            self.piece("\\{", 1);
            return Ok(());
        }
        for _ in 0..=ahead.len() {
            self.rest.next();
        }
        let operator = format!("{{{ahead}}}");
        let least = least.parse::<usize>().unwrap_or(usize::MAX);
        let most = if most.is_empty() { least } else { most.parse().unwrap_or(usize::MAX) };
        if least > most || most > 1000 {
            return Err(self.wrong("invalid repeat count", &operator));
        }
        self.repeat(&operator)?;
        let times = most.max(1);
        if let Some(group) = self.groups.last_mut() {
            group.parts = group.parts.saturating_add(group.last.saturating_mul(times - 1));
            group.last = group.last.saturating_mul(times);
        }
        Ok(())
    }
}
