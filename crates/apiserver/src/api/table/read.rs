//! Reads members of an object that may be missing.

use serde_json::{Map, Value};

/// Short accessors: a member that is missing, null or of another type reads as absent.
pub(super) trait ReadMember {
    /// Returns the member at the path of names separated by dots; `null` counts as missing.
    fn at(&self, path: &str) -> Option<&Value>;

    /// Returns the string at the path, or an empty string.
    fn text(&self, path: &str) -> &str {
        self.optional_text(path).unwrap_or("")
    }

    /// Returns the string at the path, or `None` if it is missing or empty.
    fn filled(&self, path: &str) -> Option<&str> {
        self.optional_text(path).filter(|text| !text.is_empty())
    }

    /// Returns the string at the path, or `None` if it is missing.
    fn optional_text(&self, path: &str) -> Option<&str> {
        self.at(path).and_then(Value::as_str)
    }

    /// Returns the number at the path.
    fn number(&self, path: &str) -> Option<i64> {
        self.at(path).and_then(Value::as_i64)
    }

    /// Returns the number at the path, or zero.
    fn count(&self, path: &str) -> i64 {
        self.number(path).unwrap_or(0)
    }

    /// Returns the boolean at the path.
    fn flag(&self, path: &str) -> Option<bool> {
        self.at(path).and_then(Value::as_bool)
    }

    /// Returns the elements of the list at the path.
    fn list(&self, path: &str) -> &[Value] {
        self.at(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Returns the members of the map at the path.
    fn map(&self, path: &str) -> Option<&Map<String, Value>> {
        self.at(path).and_then(Value::as_object)
    }

    /// Returns how many members the map at the path has.
    fn members(&self, path: &str) -> usize {
        self.map(path).map_or(0, Map::len)
    }

    /// Returns the string under that key in the map at the path. Keys may contain dots, steps of a path may not.
    fn entry(&self, path: &str, key: &str) -> Option<&str> {
        self.map(path).and_then(|map| map.get(key)).and_then(Value::as_str)
    }

    /// Returns the strings in the list at the path, joined with that separator.
    fn joined(&self, path: &str, separator: &str) -> String {
        let texts: Vec<&str> = self.list(path).iter().map(|text| text.as_str().unwrap_or("")).collect();
        texts.join(separator)
    }

    /// Returns the status of the first condition of that type: `True`, `False` or `Unknown`.
    fn condition(&self, kind: &str) -> Option<&str> {
        self.list("status.conditions")
            .iter()
            .find(|condition| condition.text("type") == kind)
            .map(|condition| condition.text("status"))
    }

    /// Returns whether the object is being deleted.
    fn is_terminating(&self) -> bool {
        self.at("metadata.deletionTimestamp").is_some()
    }

    /// Returns the name of the object.
    fn name(&self) -> &str {
        self.text("metadata.name")
    }
}

impl ReadMember for Value {
    fn at(&self, path: &str) -> Option<&Value> {
        path.split('.').try_fold(self, |value, step| value.get(step)).filter(|value| !value.is_null())
    }
}

/// Returns the string, or `other` if it is empty.
pub(super) fn or<'a>(text: &'a str, other: &'a str) -> &'a str {
    if text.is_empty() { other } else { text }
}

/// Shortens a list as kube-apiserver does: the first entries, then the number of the others.
pub(super) fn shortened(shown: &[String], separator: &str, hidden: usize) -> String {
    let text = shown.join(separator);
    if hidden == 0 { text } else { format!("{text} + {hidden} more...") }
}
