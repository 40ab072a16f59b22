//! The paths of printer columns, such as `.status.conditions[?(@.type=="Ready")].status`.
//!
//! Fields, keys in quotes, indexes, wildcards and filters by equality are supported: what columns of CRDs use.

use serde_json::Value;

use super::limits;

/// The steps of a path from the object to a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PathStep {
    Field(String),
    /// An element of a list; negative numbers count from its end.
    Index(i64),
    /// All members or elements.
    All,
    /// The elements whose value at a path equals, or differs from, a constant. Without a constant, the elements that have
    /// the path.
    Filter(Vec<PathStep>, Option<(bool, Value)>),
}

/// Parses a path, or returns `None` if it is not valid or not supported.
pub(crate) fn parse(text: &str) -> Option<Vec<PathStep>> {
    if text.len() > limits::EXPRESSION_BYTES {
        return None;
    }
    let mut steps = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (step, after) = match rest.strip_prefix("[?(") {
            Some(filter) => filter_step(filter)?,
            None => match rest.strip_prefix('[') {
                Some(inside) => bracket(inside)?,
                None => field(rest.strip_prefix('.')?)?,
            },
        };
        steps.push(step);
        rest = after;
    }
    Some(steps)
}

/// Reads a field name. A backslash escapes the next character.
fn field(text: &str) -> Option<(PathStep, &str)> {
    let mut is_escaped = false;
    let ends = |char: char| {
        let ends = !is_escaped && " .[]=!".contains(char);
        is_escaped = char == '\\' && !is_escaped;
        ends
    };
    let (name, after) = text.split_at(text.find(ends).unwrap_or(text.len()));
    let step = if name == "*" { PathStep::All } else { PathStep::Field(name.replace('\\', "")) };
    (!name.is_empty()).then_some((step, after))
}

/// Reads a key in quotes, an index or a wildcard in brackets.
fn bracket(text: &str) -> Option<(PathStep, &str)> {
    let quote = text.chars().next().filter(|char| matches!(char, '\'' | '"'));
    if let Some(quote) = quote {
        let (key, after) = text[1..].split_once(quote)?;
        return Some((PathStep::Field(key.replace('\\', "")), after.strip_prefix(']')?));
    }
    let (inside, after) = text.split_once(']')?;
    let step = if inside == "*" { PathStep::All } else { PathStep::Index(inside.parse().ok()?) };
    Some((step, after))
}

/// Reads a filter such as `@.type=="Ready")]`.
fn filter_step(text: &str) -> Option<(PathStep, &str)> {
    let (inside, after) = text.split_once(")]")?;
    let inside = inside.trim().strip_prefix('@')?;
    let (path, wanted) = match (inside.split_once("=="), inside.split_once("!=")) {
        (Some((path, value)), _) => (path, Some((true, constant(value.trim())?))),
        (None, Some((path, value))) => (path, Some((false, constant(value.trim())?))),
        (None, None) => (inside, None),
    };
    Some((PathStep::Filter(parse(path)?, wanted), after))
}

fn constant(text: &str) -> Option<Value> {
    let quote = text.chars().next().filter(|char| matches!(char, '\'' | '"'));
    match quote {
        Some(quote) => text[1..].strip_suffix(quote).map(Value::from),
        None => serde_json::from_str(text).ok(),
    }
}

/// Returns the values at the end of a path, or `None` if an index is not in its list.
pub(crate) fn find<'v>(steps: &[PathStep], object: &'v Value) -> Option<Vec<&'v Value>> {
    let mut values = vec![object];
    for step in steps {
        values = match step {
            PathStep::Field(name) => values.into_iter().filter_map(|value| value.get(name)).collect(),
            PathStep::All => values.into_iter().flat_map(inner).collect(),
            PathStep::Index(index) => {
                let at = |value: &'v Value| {
                    let items = value.as_array()?;
                    let index = if *index < 0 {
                        items.len().checked_add_signed(isize::try_from(*index).ok()?)?
                    } else {
                        usize::try_from(*index).ok()?
                    };
                    items.get(index)
                };
                values.into_iter().map(at).collect::<Option<_>>()?
            }
            PathStep::Filter(path, wanted) => {
                let passes = |item: &&Value| {
                    let found = find(path, item).unwrap_or_default();
                    match wanted {
                        Some((equal, wanted)) => found.first().is_some_and(|found| (*found == wanted) == *equal),
                        None => !found.is_empty(),
                    }
                };
                values.into_iter().flat_map(inner).filter(passes).collect()
            }
        };
    }
    Some(values)
}

fn inner(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    }
}
