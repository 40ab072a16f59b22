//! One element of a field path, and its two string forms: `.spec` in messages, `f:spec` inside `fieldsV1`.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

use super::order;

/// One element of a field path.
#[derive(Debug, Clone)]
pub enum PathElement {
    /// A member of a map or struct.
    Field(String),
    /// The item of a list with these key values, sorted by the names of the keys.
    Key(Vec<(String, Value)>),
    /// The item of a list with this scalar value.
    Value(Value),
    /// The item of a list at this index.
    Index(i64),
}

impl PathElement {
    /// Returns a member of a map or struct.
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    /// Returns the item with these key values, in any order.
    pub(super) fn key(mut keys: Vec<(String, Value)>) -> Self {
        keys.sort_by(|(name, _), (other, _)| name.cmp(other));
        Self::Key(keys)
    }

    /// Parses one key of `fieldsV1`. `Ok(None)` is an unknown kind of element, which the caller omits.
    ///
    /// # Errors
    ///
    /// The string is not a path element.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, BadPathElement> {
        let bad = || BadPathElement(text.to_owned());
        let mut bytes = text.bytes();
        let (Some(kind), Some(b':')) = (bytes.next(), bytes.next()) else { return Err(bad()) };
        let rest = text.get(2..).ok_or_else(bad)?;
        match kind {
            b'f' => Ok(Some(Self::Field(rest.to_owned()))),
            b'k' => match serde_json::from_str(rest) {
                Ok(Value::Object(keys)) => Ok(Some(Self::Key(keys.into_iter().collect()))),
                _ => Err(bad()),
            },
            b'v' => serde_json::from_str(rest).map(|value| Some(Self::Value(value))).map_err(|_| bad()),
            b'i' => rest.parse().map(|index| Some(Self::Index(index))).map_err(|_| bad()),
            _ => Ok(None),
        }
    }

    /// Returns the element as a key of `fieldsV1`.
    pub(crate) fn encode(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(keys) => encode_keys(keys),
            Self::Value(value) => format!("v:{value}"),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

fn encode_keys(keys: &[(String, Value)]) -> String {
    let keys: Vec<String> =
        keys.iter().map(|(name, value)| format!("{}:{value}", Value::from(name.as_str()))).collect();
    format!("k:{{{}}}", keys.join(","))
}

/// The error of an invalid key in `fieldsV1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadPathElement(pub String);

impl fmt::Display for BadPathElement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?} is not a path element", self.0)
    }
}

impl std::error::Error for BadPathElement {}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(name), Self::Field(other)) => name.cmp(other),
            (Self::Key(keys), Self::Key(others)) => compare_keys(keys, others),
            (Self::Value(value), Self::Value(other)) => order::compare(value, other),
            (Self::Index(index), Self::Index(other)) => index.cmp(other),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

fn compare_keys(left: &[(String, Value)], right: &[(String, Value)]) -> Ordering {
    for ((name, value), (other_name, other_value)) in left.iter().zip(right) {
        let order = name.cmp(other_name).then_with(|| order::compare(value, other_value));
        if order.is_ne() {
            return order;
        }
    }
    left.len().cmp(&right.len())
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

/// Writes the element as in messages: `.spec`, `[name="a"]`, `[="v"]` or `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(out, ".{name}"),
            Self::Key(keys) => {
                let keys: Vec<_> = keys.iter().map(|(name, value)| format!("{name}={}", shown(value))).collect();
                write!(out, "[{}]", keys.join(","))
            }
            Self::Value(value) => write!(out, "[={}]", shown(value)),
            Self::Index(index) => write!(out, "[{index}]"),
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::String(text) => format!("{text:?}"),
        Value::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(",")),
        Value::Object(members) => members.iter().map(|(name, value)| format!("{name}={}", shown(value))).collect(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}
