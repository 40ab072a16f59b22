//! Reading members of an object that may lack any of them.

use serde_json::{Map, Value};

/// Short ways to a member: what is missing, null or of another type reads as nothing.
pub(super) trait Read {
    /// The member at the path of names separated by dots; `null` counts as missing.
    fn at(&self, path: &str) -> Option<&Value>;

    /// The text there, which may be empty.
    fn text(&self, path: &str) -> &str {
        self.optional_text(path).unwrap_or("")
    }

    /// The text there, or nothing where there is none or it is empty.
    fn filled(&self, path: &str) -> Option<&str> {
        self.optional_text(path).filter(|text| !text.is_empty())
    }

    /// The text there, or nothing where there is none.
    fn optional_text(&self, path: &str) -> Option<&str> {
        self.at(path).and_then(Value::as_str)
    }

    /// The number there.
    fn number(&self, path: &str) -> Option<i64> {
        self.at(path).and_then(Value::as_i64)
    }

    /// The number there, or zero.
    fn count(&self, path: &str) -> i64 {
        self.number(path).unwrap_or(0)
    }

    /// Yes or no, as it is there.
    fn flag(&self, path: &str) -> Option<bool> {
        self.at(path).and_then(Value::as_bool)
    }

    /// The elements of the list there.
    fn list(&self, path: &str) -> &[Value] {
        self.at(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The members of the map there.
    fn map(&self, path: &str) -> Option<&Map<String, Value>> {
        self.at(path).and_then(Value::as_object)
    }

    /// How many members the map there has.
    fn members(&self, path: &str) -> usize {
        self.map(path).map_or(0, Map::len)
    }

    /// The text that belongs to that key in the map at the path. Keys may hold dots, steps of a path may not.
    fn entry(&self, path: &str, key: &str) -> Option<&str> {
        self.map(path).and_then(|map| map.get(key)).and_then(Value::as_str)
    }

    /// The texts in the list there, with that separator between them.
    fn joined(&self, path: &str, separator: &str) -> String {
        let texts: Vec<&str> = self.list(path).iter().map(|text| text.as_str().unwrap_or("")).collect();
        texts.join(separator)
    }

    /// What the condition of that type says: `True`, `False` or `Unknown`. The first of the type counts.
    fn condition(&self, kind: &str) -> Option<&str> {
        self.list("status.conditions")
            .iter()
            .find(|condition| condition.text("type") == kind)
            .map(|condition| condition.text("status"))
    }

    /// Whether deletion of the object has begun.
    fn is_terminating(&self) -> bool {
        self.at("metadata.deletionTimestamp").is_some()
    }

    /// The object's name.
    fn name(&self) -> &str {
        self.text("metadata.name")
    }
}

impl Read for Value {
    fn at(&self, path: &str) -> Option<&Value> {
        path.split('.').try_fold(self, |value, step| value.get(step)).filter(|value| !value.is_null())
    }
}

/// The text, or the other one in place of an empty text.
pub(super) fn or<'a>(text: &'a str, other: &'a str) -> &'a str {
    if text.is_empty() { other } else { text }
}

/// The list as the server shortens it: the first few, then how many more there are.
pub(super) fn shortened(shown: &[String], separator: &str, hidden: usize) -> String {
    let text = shown.join(separator);
    if hidden == 0 { text } else { format!("{text} + {hidden} more...") }
}
