//! Label selectors, as the server reads them.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::object::Object;

/// Chooses objects by their labels: every requirement must hold.
///
/// ```
/// use kube_informer::Selector;
///
/// let selector: Selector = "app=web, tier in (front, back), !canary".parse()?;
/// assert_eq!(selector.to_string(), "app=web,tier in (back,front),!canary");
/// assert!("app in web".parse::<Selector>().is_err());
/// # Ok::<(), kube_informer::lister::SelectorError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector {
    requirements: Vec<(String, Requirement)>,
}

/// What must be true of one label.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Requirement {
    In(BTreeSet<String>),
    /// Also true of objects without the label.
    NotIn(BTreeSet<String>),
    Exists,
    Absent,
    Above(i64),
    Below(i64),
}

/// Why a text is no selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a label selector: {problem}")]
pub struct SelectorError {
    text: String,
    problem: &'static str,
}

impl Selector {
    /// Chooses everything.
    pub fn everything() -> Self {
        Self::default()
    }

    /// One more requirement: the label has this value.
    #[must_use]
    pub fn equal(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.and(key, Requirement::In(BTreeSet::from([value.into()])))
    }

    /// One more requirement: there is such a label.
    #[must_use]
    pub fn exists(self, key: impl Into<String>) -> Self {
        self.and(key, Requirement::Exists)
    }

    fn and(mut self, key: impl Into<String>, requirement: Requirement) -> Self {
        self.requirements.push((key.into(), requirement));
        self
    }

    /// True if every object matches.
    pub fn matches_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// True if the object has the labels.
    pub fn matches(&self, object: &impl Object) -> bool {
        self.requirements.iter().all(|(key, requirement)| requirement.holds(object.label(key)))
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
        let mut selector = Self::default();
        for term in terms(text) {
            let (key, requirement) =
                requirement(term.trim()).map_err(|problem| SelectorError { text: text.to_owned(), problem })?;
            selector.requirements.push((key.to_owned(), requirement));
        }
        Ok(selector)
    }
}

/// The parts between commas that are not inside parentheses.
fn terms(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0usize;
    let split = move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    text.split(split).filter(move |_| !text.trim().is_empty())
}

fn requirement(term: &str) -> Result<(&str, Requirement), &'static str> {
    if let Some(key) = term.strip_prefix('!') {
        return Ok((checked_key(key.trim())?, Requirement::Absent));
    }
    let end = term.find(|c: char| c.is_whitespace() || "=!<>(".contains(c)).unwrap_or(term.len());
    let (key, rest) = (checked_key(&term[..end])?, term[end..].trim());
    let one = |value: &str| checked_value(value.trim()).map(|value| BTreeSet::from([value]));
    let number = |value: &str| value.trim().parse().map_err(|_| "only whole numbers compare");
    let requirement = if rest.is_empty() {
        Requirement::Exists
    } else if let Some(value) = rest.strip_prefix("==").or_else(|| rest.strip_prefix('=')) {
        Requirement::In(one(value)?)
    } else if let Some(value) = rest.strip_prefix("!=") {
        Requirement::NotIn(one(value)?)
    } else if let Some(value) = rest.strip_prefix('>') {
        Requirement::Above(number(value)?)
    } else if let Some(value) = rest.strip_prefix('<') {
        Requirement::Below(number(value)?)
    } else if let Some(values) = rest.strip_prefix("notin") {
        Requirement::NotIn(set(values)?)
    } else if let Some(values) = rest.strip_prefix("in") {
        Requirement::In(set(values)?)
    } else {
        return Err("expected one of =, ==, !=, in, notin, <, > behind the key");
    };
    Ok((key, requirement))
}

fn set(text: &str) -> Result<BTreeSet<String>, &'static str> {
    let inside = text.trim().strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    inside.ok_or("expected values in parentheses")?.split(',').map(|value| checked_value(value.trim())).collect()
}

fn checked_key(key: &str) -> Result<&str, &'static str> {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let good_prefix = prefix.is_none_or(|prefix| !prefix.is_empty() && prefix.len() <= 253 && !prefix.contains('/'));
    if name.is_empty() || !is_word(name) || !good_prefix { Err("a key is not valid") } else { Ok(key) }
}

fn checked_value(value: &str) -> Result<String, &'static str> {
    if value.is_empty() || is_word(value) { Ok(value.to_owned()) } else { Err("a value is not valid") }
}

/// Up to 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends.
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
    use crate::object::{DecodeError, Id, KeyRef, Raw};

    struct Labelled(&'static [(&'static str, &'static str)]);

    impl Object for Labelled {
        fn decode(_: Raw<'_>) -> Result<Self, DecodeError> {
            Err(DecodeError::NoName)
        }

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
    fn selectors_choose_as_the_server_does() {
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
    fn broken_selectors_say_what_is_wrong() {
        for text in ["a b", "a in b", "=1", "a=b=c", ",", "a,", "a in (b", "-a", "a=$", "a>x", "/a", "a/"] {
            let error = text.parse::<Selector>().expect_err(text);
            assert!(error.to_string().contains("is not a label selector"), "{error}");
        }
    }
}
