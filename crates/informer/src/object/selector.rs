//! Label selectors, with the syntax of the API server.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;

use super::Object;

/// A label selector. An object matches if all requirements hold.
///
/// ```
/// use kube_informer::Selector;
///
/// let selector: Selector = "app=web, tier in (front, back), !canary".parse()?;
/// assert_eq!(selector.to_string(), "app=web,tier in (back,front),!canary");
/// assert!("app in web".parse::<Selector>().is_err());
/// # Ok::<(), kube_informer::SelectorError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector {
    requirements: Vec<(String, Requirement)>,
}

/// A requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Requirement {
    In(BTreeSet<String>),
    /// An object without the label matches, too.
    NotIn(BTreeSet<String>),
    Exists,
    Absent,
    Above(i64),
    Below(i64),
}

/// Why a string is not a selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a label selector: {problem}")]
pub struct SelectorError {
    text: String,
    problem: &'static str,
}

impl Selector {
    /// Makes a selector that matches every object.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Adds a requirement: the label has this value.
    #[must_use]
    pub fn equal(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.and(key, Requirement::In(BTreeSet::from([value.into()])))
    }

    /// Adds a requirement: the object has this label.
    #[must_use]
    pub fn exists(self, key: impl Into<String>) -> Self {
        self.and(key, Requirement::Exists)
    }

    fn and(mut self, key: impl Into<String>, requirement: Requirement) -> Self {
        self.requirements.push((key.into(), requirement));
        self
    }

    /// Returns true if every object matches.
    pub fn matches_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Returns true if the labels of the object match.
    pub fn matches(&self, object: &(impl Object + ?Sized)) -> bool {
        self.requirements.iter().all(|(key, requirement)| requirement.holds(object.label(key)))
    }

    /// Returns [`Selector::matches`] as a function for many objects. Objects that share a set of labels are evaluated
    /// once. They must all exist until the last call.
    pub(crate) fn matching<'s>(&'s self) -> impl FnMut(&dyn Object) -> bool + use<'s> {
        let mut known: HashMap<usize, bool, foldhash::fast::RandomState> = HashMap::default();
        move |object| match object.label_set().filter(|_| !self.matches_everything()) {
            Some(set) => *known.entry(set).or_insert_with(|| self.matches(object)),
            None => self.matches(object),
        }
    }
}

impl Requirement {
    fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::In(values) => value.is_some_and(|value| values.contains(value)),
            Self::NotIn(values) => !value.is_some_and(|value| values.contains(value)),
            Self::Exists => value.is_some(),
            Self::Absent => value.is_none(),
            Self::Above(bound) => number().is_some_and(|number| number > *bound),
            Self::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let requirements = requirements(&mut Tokens { rest: text });
        let requirements = requirements.map_err(|problem| SelectorError { text: text.to_owned(), problem })?;
        Ok(Self { requirements })
    }
}

fn requirements(tokens: &mut Tokens<'_>) -> Result<Vec<(String, Requirement)>, &'static str> {
    let mut all = Vec::new();
    if tokens.peek() == Token::End {
        return Ok(all);
    }
    loop {
        all.push(requirement(tokens)?);
        match tokens.next() {
            Token::End => return Ok(all),
            Token::Mark(",") => {}
            _ => return Err("expected a comma or the end behind a requirement"),
        }
    }
}

fn requirement(tokens: &mut Tokens<'_>) -> Result<(String, Requirement), &'static str> {
    let absent = tokens.take(Token::Mark("!"));
    let Token::Word(key) = tokens.next() else { return Err("expected a key") };
    let key = checked_key(key)?;
    if absent {
        return Ok((key, Requirement::Absent));
    }
    let requirement = match tokens.peek() {
        Token::End | Token::Mark(",") => return Ok((key, Requirement::Exists)),
        operator => {
            tokens.next();
            let number = |value: String| value.parse().map_err(|_| "only whole numbers compare");
            match operator {
                Token::Mark("=" | "==") => Requirement::In([value(tokens)?].into()),
                Token::Mark("!=") => Requirement::NotIn([value(tokens)?].into()),
                Token::Mark(">") => Requirement::Above(number(value(tokens)?)?),
                Token::Mark("<") => Requirement::Below(number(value(tokens)?)?),
                Token::Word("in") => Requirement::In(values(tokens)?),
                Token::Word("notin") => Requirement::NotIn(values(tokens)?),
                _ => return Err("expected one of =, ==, !=, in, notin, <, > behind the key"),
            }
        }
    };
    Ok((key, requirement))
}

/// Parses one value, which may be empty.
fn value(tokens: &mut Tokens<'_>) -> Result<String, &'static str> {
    let Token::Word(value) = tokens.peek() else { return Ok(String::new()) };
    tokens.next();
    if is_word(value) { Ok(value.to_owned()) } else { Err("a value is not valid") }
}

/// Parses a list of values in parentheses: at least one, each of which may be empty.
fn values(tokens: &mut Tokens<'_>) -> Result<BTreeSet<String>, &'static str> {
    if !tokens.take(Token::Mark("(")) {
        return Err("expected values in parentheses");
    }
    let mut values = BTreeSet::new();
    loop {
        values.insert(value(tokens)?);
        match tokens.next() {
            Token::Mark(",") => {}
            Token::Mark(")") => return Ok(values),
            _ => return Err("expected a comma or a closing parenthesis behind a value"),
        }
    }
}

/// A token of the selector syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'t> {
    Word(&'t str),
    Mark(&'static str),
    End,
}

struct Tokens<'t> {
    rest: &'t str,
}

impl<'t> Tokens<'t> {
    /// All operators. If one is a prefix of another, the longer one comes first.
    const MARKS: [&'static str; 9] = ["==", "!=", "=", "!", "<", ">", "(", ")", ","];

    fn next(&mut self) -> Token<'t> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        if self.rest.is_empty() {
            return Token::End;
        }
        if let Some(mark) = Self::MARKS.into_iter().find(|mark| self.rest.starts_with(mark)) {
            self.rest = &self.rest[mark.len()..];
            return Token::Mark(mark);
        }
        let end = self.rest.find([' ', '\t', '\r', '\n', '=', '!', '<', '>', '(', ')', ',']);
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        Token::Word(word)
    }

    fn peek(&self) -> Token<'t> {
        Self { rest: self.rest }.next()
    }

    /// Takes the next token if it is this one, and returns whether it was.
    fn take(&mut self, token: Token<'_>) -> bool {
        let comes = self.peek() == token;
        if comes {
            self.next();
        }
        comes
    }
}

fn checked_key(key: &str) -> Result<String, &'static str> {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    if is_word(name) && prefix.is_none_or(is_domain) { Ok(key.to_owned()) } else { Err("a key is not valid") }
}

/// Returns true for a DNS subdomain: words of small letters, digits and `-`, joined by dots.
fn is_domain(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_label =
        |label: &str| !label.is_empty() && label.bytes().all(inner) && !label.starts_with('-') && !label.ends_with('-');
    text.len() <= 253 && text.split('.').all(is_label)
}

/// Returns true for up to 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends.
fn is_word(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let outer = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63 && bytes.iter().copied().all(inner) && outer(bytes.first()) && outer(bytes.last())
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |values: &BTreeSet<String>| values.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        for (at, (key, requirement)) in self.requirements.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            match requirement {
                Requirement::In(values) if values.len() == 1 => write!(f, "{key}={}", joined(values))?,
                Requirement::In(values) => write!(f, "{key} in ({})", joined(values))?,
                Requirement::NotIn(values) if values.len() == 1 => write!(f, "{key}!={}", joined(values))?,
                Requirement::NotIn(values) => write!(f, "{key} notin ({})", joined(values))?,
                Requirement::Exists => f.write_str(key)?,
                Requirement::Absent => write!(f, "!{key}")?,
                Requirement::Above(bound) => write!(f, "{key}>{bound}")?,
                Requirement::Below(bound) => write!(f, "{key}<{bound}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Id, KeyRef};

    struct Labelled(&'static [(&'static str, &'static str)]);

    impl Object for Labelled {
        fn id(&self) -> Id<'_> {
            Id { key: KeyRef::new("", "x"), uid: "", version: "" }
        }

        fn label(&self, key: &str) -> Option<&str> {
            self.0.iter().find(|label| label.0 == key).map(|label| label.1)
        }
    }

    fn check(selector: &str, expected: [bool; 3]) {
        let parsed: Selector = selector.parse().unwrap_or_else(|error| panic!("{error}"));
        let objects =
            [Labelled(&[]), Labelled(&[("a", "1"), ("b", "x")]), Labelled(&[("a", "2"), ("example.com/c", "")])];
        assert_eq!(objects.map(|object| parsed.matches(&object)), expected, "{selector}");
        assert_eq!(parsed.to_string().parse::<Selector>(), Ok(parsed), "{selector} survives a round trip");
    }

    #[test]
    fn selectors_match_as_on_the_api_server() {
        check("", [true, true, true]);
        check(" a ", [false, true, true]);
        check("!b", [true, false, true]);
        check("a=1", [false, true, false]);
        check("a == 1", [false, true, false]);
        check("a!=1", [true, false, true]);
        check("a in (1, 2),b", [false, true, false]);
        check("a notin (1,3)", [true, false, true]);
        check("a>1", [false, false, true]);
        check("a < 2", [false, true, false]);
        check("b>0", [false, false, false]);
        check("example.com/c=", [false, false, true]);
        check("example.com/c in ()", [false, false, true]);
    }

    #[test]
    fn invalid_selectors_are_refused_with_a_reason() {
        for text in [
            "a b", "a in b", "=1", "a=b=c", ",", "a,", "a in (b", "-a", "a=$", "a>x", "/a", "a/", "A/b", "a./b",
            "a/b/c", "!a=b", "a=b c",
        ] {
            let error = text.parse::<Selector>().expect_err(text);
            assert!(error.to_string().contains("is not a label selector"), "{error}");
        }
    }
}
