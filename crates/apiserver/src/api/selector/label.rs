//! Label selectors: `app=web,tier in (a,b),!legacy`.

use kube_structural_schema::identifier::{is_dns_subdomain, is_label_name};
use serde_json::Value;

use crate::status::Status;
use crate::storage::object::StoredObject;

/// Requirements that must all hold. An empty list matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<LabelRequirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct LabelRequirement {
    key: String,
    operator: Operator,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operator {
    Exists,
    Missing,
    In(Vec<String>),
    NotIn(Vec<String>),
    Above(i64),
    Below(i64),
}

impl LabelSelector {
    /// Parses a `labelSelector` parameter.
    pub(crate) fn parse(text: &str) -> Result<Self, Status> {
        let mut tokens = LabelTokens { rest: text };
        let mut requirements = Vec::new();
        if tokens.peek() == LabelToken::End {
            return Ok(Self::default());
        }
        loop {
            requirements.push(requirement(&mut tokens)?);
            match tokens.next() {
                LabelToken::End => return Ok(Self(requirements)),
                LabelToken::Comma => {}
                found => return Err(unexpected(&found, "',' or 'end of string'")),
            }
        }
    }

    /// Reads a selector from an object. A missing selector selects nothing.
    pub(crate) fn of(selector: &Value) -> Option<Self> {
        let selector = selector.as_object()?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
        let mut requirements: Vec<LabelRequirement> = labels
            .map(|(key, value)| LabelRequirement { key: key.clone(), operator: Operator::In(vec![text(value)]) })
            .collect();
        for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let values = || expression["values"].as_array().into_iter().flatten().map(text).collect();
            let operator = match expression["operator"].as_str()? {
                "In" => Operator::In(values()),
                "NotIn" => Operator::NotIn(values()),
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::Missing,
                _ => return None,
            };
            requirements.push(LabelRequirement { key: text(&expression["key"]), operator });
        }
        Some(Self(requirements))
    }

    /// Returns whether the selector matches everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn matches(&self, object: &StoredObject) -> bool {
        self.0.iter().all(|requirement| requirement.operator.accepts(object.label(&requirement.key)))
    }

    /// Returns whether an object with these labels matches.
    pub(crate) fn matches_labels(&self, labels: &Value) -> bool {
        self.0.iter().all(|requirement| requirement.operator.accepts(labels[requirement.key.as_str()].as_str()))
    }
}

impl Operator {
    fn accepts(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::Exists => value.is_some(),
            Self::Missing => value.is_none(),
            Self::In(allowed) => value.is_some_and(|value| allowed.iter().any(|candidate| candidate == value)),
            Self::NotIn(refused) => value.is_none_or(|value| refused.iter().all(|candidate| candidate != value)),
            Self::Above(bound) => number().is_some_and(|number| number > *bound),
            Self::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

fn requirement(tokens: &mut LabelTokens<'_>) -> Result<LabelRequirement, Status> {
    let negated = tokens.peek() == LabelToken::Not;
    if negated {
        tokens.next();
    }
    let key = match tokens.next() {
        LabelToken::Word(word) => word.to_owned(),
        found => return Err(unexpected(&found, "!, identifier, or ',' or 'end of string'")),
    };
    check_key(&key)?;
    if negated {
        return Ok(LabelRequirement { key, operator: Operator::Missing });
    }
    let operator = match tokens.peek() {
        LabelToken::End | LabelToken::Comma => Operator::Exists,
        LabelToken::Equal => {
            tokens.next();
            Operator::In(vec![value(tokens)?])
        }
        LabelToken::NotEqual => {
            tokens.next();
            Operator::NotIn(vec![value(tokens)?])
        }
        LabelToken::Above | LabelToken::Below => {
            let above = tokens.next() == LabelToken::Above;
            let text = value(tokens)?;
            let bound = text.parse().map_err(|_| {
                Status::bad_request(format!(
                    "values: Invalid value: \"{text}\": for 'Gt', 'Lt' operators, the value must be an integer"
                ))
            })?;
            if above { Operator::Above(bound) } else { Operator::Below(bound) }
        }
        LabelToken::Word("in") => {
            tokens.next();
            Operator::In(values(tokens)?)
        }
        LabelToken::Word("notin") => {
            tokens.next();
            Operator::NotIn(values(tokens)?)
        }
        found => return Err(unexpected(&found, "in, notin, =, ==, !=, gt, lt")),
    };
    Ok(LabelRequirement { key, operator })
}

/// Parses the value after `=`, which may be empty.
fn value(tokens: &mut LabelTokens<'_>) -> Result<String, Status> {
    match tokens.peek() {
        LabelToken::End | LabelToken::Comma => Ok(String::new()),
        LabelToken::Word(word) => {
            tokens.next();
            check_value(word)
        }
        found => Err(unexpected(&found, "identifier")),
    }
}

/// Parses values in parentheses. A gap between commas is an empty value.
fn values(tokens: &mut LabelTokens<'_>) -> Result<Vec<String>, Status> {
    match tokens.next() {
        LabelToken::Open => {}
        found => return Err(unexpected(&found, "'('")),
    }
    let mut values = Vec::new();
    let mut open = true;
    loop {
        match tokens.next() {
            LabelToken::Word(word) if open => {
                values.push(check_value(word)?);
                open = false;
            }
            LabelToken::Comma => {
                if open {
                    values.push(String::new());
                }
                open = true;
            }
            LabelToken::Close => {
                if open {
                    values.push(String::new());
                }
                return Ok(values);
            }
            found => return Err(unexpected(&found, "',', or ')'")),
        }
    }
}

fn unexpected(found: &LabelToken<'_>, expected: &str) -> Status {
    Status::bad_request(format!("unable to parse requirement: found '{}', expected: {expected}", found.text()))
}

/// Returns whether `text` is a valid name part of a key, or a valid value: 1 to 63 characters, alphanumeric at both
/// ends.
fn is_name(text: &str) -> bool {
    text.len() <= 63 && is_label_name(text)
}

fn is_domain(text: &str) -> bool {
    text.len() <= 253 && is_dns_subdomain(text)
}

/// Returns whether `key` is a valid label key: a name with an optional domain prefix and slash.
pub(crate) fn is_label_key(key: &str) -> bool {
    let (prefix, name) = key.rsplit_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    is_name(name) && prefix.is_none_or(is_domain)
}

/// Returns whether `value` is a valid label value.
pub(crate) fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_name(value)
}

fn check_key(key: &str) -> Result<(), Status> {
    if is_label_key(key) {
        return Ok(());
    }
    Err(Status::bad_request(format!(
        "unable to parse requirement: <nil>: Invalid value: \"{key}\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    )))
}

fn check_value(value: &str) -> Result<String, Status> {
    if is_label_value(value) {
        return Ok(value.to_owned());
    }
    Err(Status::bad_request(format!(
        "unable to parse requirement: values: Invalid value: \"{value}\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    )))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LabelToken<'a> {
    Word(&'a str),
    Equal,
    NotEqual,
    Not,
    Above,
    Below,
    Open,
    Close,
    Comma,
    End,
}

impl LabelToken<'_> {
    fn text(&self) -> &str {
        match self {
            Self::Word(word) => word,
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Not => "!",
            Self::Above => ">",
            Self::Below => "<",
            Self::Open => "(",
            Self::Close => ")",
            Self::Comma => ",",
            Self::End => "",
        }
    }
}

struct LabelTokens<'a> {
    rest: &'a str,
}

impl<'a> LabelTokens<'a> {
    fn peek(&self) -> LabelToken<'a> {
        Self { rest: self.rest }.next()
    }

    fn next(&mut self) -> LabelToken<'a> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        for (text, token) in [
            ("!=", LabelToken::NotEqual),
            ("==", LabelToken::Equal),
            ("=", LabelToken::Equal),
            ("!", LabelToken::Not),
            (">", LabelToken::Above),
            ("<", LabelToken::Below),
            ("(", LabelToken::Open),
            (")", LabelToken::Close),
            (",", LabelToken::Comma),
        ] {
            if let Some(rest) = self.rest.strip_prefix(text) {
                self.rest = rest;
                return token;
            }
        }
        let ends = |character: char| " \t\r\n!=<>(),".contains(character);
        let (word, rest) = self.rest.split_at(self.rest.find(ends).unwrap_or(self.rest.len()));
        self.rest = rest;
        if word.is_empty() { LabelToken::End } else { LabelToken::Word(word) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Catalog;
    use crate::storage::key::StoreKey;
    use crate::storage::object::{Draft, WriteKind};
    use serde_json::json;

    fn check(selector: &str, labels: serde_json::Value, expected: bool) {
        let catalog = Catalog::built_in();
        let object = json!({"metadata": {"name": "x", "labels": labels}});
        let resource = catalog.named("configmaps").unwrap();
        let stored =
            Draft::encode(resource, StoreKey::new(None, "x"), &object, WriteKind::Added, 1).at(1, WriteKind::Added);
        let parsed = LabelSelector::parse(selector).unwrap();
        assert_eq!(parsed.matches(&stored), expected, "{selector}");
    }

    #[test]
    fn selectors_parse_and_match() {
        check("", json!({}), true);
        check("a", json!({"a": ""}), true);
        check("!a", json!({"a": ""}), false);
        check("a=1", json!({"a": "1"}), true);
        check("a==1,b!=2", json!({"a": "1"}), true);
        check("a=", json!({"a": ""}), true);
        check("a=", json!({}), false);
        check("x in (a,b),!y,z!=1", json!({"x": "b"}), true);
        check("x in (a,b),!y,z!=1", json!({"x": "b", "y": "1"}), false);
        check("x notin (a , b)", json!({}), true);
        check("x in ()", json!({"x": ""}), true);
        check("x in (,a)", json!({"x": ""}), true);
        check("n>3", json!({"n": "4"}), true);
        check("n < 3", json!({"n": "4"}), false);
        check("n>3", json!({"n": "many"}), false);
        check("in in (in)", json!({"in": "in"}), true);
        check("example.com/app = web", json!({"example.com/app": "web"}), true);
    }

    #[test]
    fn invalid_selectors_are_refused() {
        for text in ["a b", "a in b", "a in (b", "=1", "a=b=c", "n>x", "-a", "a=_b", ",", "a,,b", "!", "x/y/"] {
            assert_eq!(LabelSelector::parse(text).map_err(|status| status.code), Err(400), "{text}");
        }
        let status = LabelSelector::parse("a b").unwrap_err();
        assert_eq!(status.message, "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
    }
}
