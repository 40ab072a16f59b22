//! The differences of an update, as readable lines.

use std::collections::BTreeSet;

use kube_informer::ResourceType;
use serde_json::{Map, Value};

use super::Paint;

/// The longest value that is shown in full, in letters.
const LONGEST: usize = 120;

/// Fields that identify the elements of a list, in the order of preference.
const NAMES: [&str; 6] = ["name", "type", "uid", "key", "ip", "containerPort"];

/// Returns each change as a line: `~ status.phase: Pending → Running`. Fields that change with every write are left
/// out.
pub(crate) fn changes(resource: &ResourceType, old: &Value, new: &Value, paint: Paint) -> Vec<String> {
    let mut differ = Differ { secret: resource.is_secret(), paint, lines: Vec::new() };
    differ.compare(&[], old, new);
    differ.lines
}

struct Differ {
    /// True if the object is a Secret.
    secret: bool,
    paint: Paint,
    lines: Vec<String>,
}

impl Differ {
    fn compare(&mut self, path: &[String], old: &Value, new: &Value) {
        if old == new || is_noise(path) {
            return;
        }
        match (old, new) {
            (Value::Object(old), Value::Object(new)) => self.members(path, old, new),
            (Value::Array(old), Value::Array(new)) => match (named(old), named(new)) {
                (Some(old), Some(new)) => self.members(path, &old, &new),
                _ => self.elements(path, old, new),
            },
            _ => self.changed(path, old, new),
        }
    }

    fn members(&mut self, path: &[String], old: &Map<String, Value>, new: &Map<String, Value>) {
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let path = &[path, std::slice::from_ref(name)].concat();
            match (old.get(name), new.get(name)) {
                (Some(old), Some(new)) => self.compare(path, old, new),
                (Some(old), None) => self.gone(path, old),
                (None, Some(new)) => self.came(path, new),
                (None, None) => {}
            }
        }
    }

    fn elements(&mut self, path: &[String], old: &[Value], new: &[Value]) {
        for at in 0..old.len().max(new.len()) {
            let path = &[path, &[format!("[{at}]")]].concat();
            match (old.get(at), new.get(at)) {
                (Some(old), Some(new)) => self.compare(path, old, new),
                (Some(old), None) => self.gone(path, old),
                (None, Some(new)) => self.came(path, new),
                (None, None) => {}
            }
        }
    }

    fn came(&mut self, path: &[String], value: &Value) {
        match value {
            // One line for each value is easier to read than a line of JSON.
            Value::Object(members) if !members.is_empty() => self.members(path, &Map::new(), members),
            _ if is_noise(path) => {}
            _ => {
                let value = self.shown(path, value);
                self.lines.push(format!("{} {}: {}", self.paint.green("+"), join_path(path), self.paint.green(&value)));
            }
        }
    }

    fn gone(&mut self, path: &[String], value: &Value) {
        match value {
            Value::Object(members) if !members.is_empty() => self.members(path, members, &Map::new()),
            _ if is_noise(path) => {}
            _ => {
                let value = self.shown(path, value);
                self.lines.push(format!("{} {}: {}", self.paint.red("-"), join_path(path), self.paint.red(&value)));
            }
        }
    }

    fn changed(&mut self, path: &[String], old: &Value, new: &Value) {
        let (old, new) = (self.shown(path, old), self.shown(path, new));
        let (mark, path) = (self.paint.yellow("~"), join_path(path));
        self.lines.push(format!("{mark} {path}: {} → {}", self.paint.red(&old), self.paint.green(&new)));
    }

    fn shown(&self, path: &[String], value: &Value) -> String {
        if self.secret && is_secret(path) {
            return "(not shown)".to_owned();
        }
        let text = match value {
            Value::String(text) if is_plain(text) => text.clone(),
            other => other.to_string(),
        };
        let mut letters = text.chars();
        let mut short: String = letters.by_ref().take(LONGEST).collect();
        if letters.next().is_some() {
            short.push('…');
        }
        short
    }
}

/// Returns true if a string needs no quotes: it is not a number, boolean or null, and has no control characters.
fn is_plain(text: &str) -> bool {
    let printable = !text.chars().any(char::is_control) && text.trim() == text && !text.is_empty();
    printable && text.parse::<f64>().is_err() && !["true", "false", "null"].contains(&text)
}

/// Returns true for metadata that changes with every write.
fn is_noise(path: &[String]) -> bool {
    matches!(path, [metadata, member] if metadata == "metadata" && (member == "resourceVersion" || member == "managedFields"))
}

/// Returns true for the secret fields of a Secret: its data, and kubectl's last-applied annotation, which has a copy of
/// the data.
fn is_secret(path: &[String]) -> bool {
    match path {
        [metadata, ..] if metadata == "metadata" => {
            path.iter().any(|name| name.ends_with("last-applied-configuration"))
        }
        [data, ..] => data == "data" || data == "stringData",
        [] => true,
    }
}

/// Returns the elements of a list by name, if each has a different name.
fn named(elements: &[Value]) -> Option<Map<String, Value>> {
    let member = NAMES.into_iter().find(|name| elements.iter().all(|element| element.get(name).is_some()))?;
    let name = |element: &Value| match &element[member] {
        Value::String(text) => format!("[{text}]"),
        other => format!("[{other}]"),
    };
    let named: Map<String, Value> = elements.iter().map(|element| (name(element), element.clone())).collect();
    (named.len() == elements.len()).then_some(named)
}

/// Joins the steps of a path, as in `spec.containers[web].image`. Control characters are removed. A name with a dot is written in brackets.
fn join_path(path: &[String]) -> String {
    let mut joined = String::new();
    for name in path {
        if name.starts_with('[') {
            joined.push_str(name);
        } else if name.contains('.') {
            joined.push_str(&format!("[{name}]"));
        } else {
            if !joined.is_empty() {
                joined.push('.');
            }
            joined.push_str(name);
        }
    }
    joined.chars().filter(|letter| !letter.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resource(plural: &str) -> ResourceType {
        ResourceType {
            group: String::new(),
            version: "v1".into(),
            kind: "Any".into(),
            plural: plural.into(),
            namespaced: true,
        }
    }

    fn check(old: Value, new: Value, expected: &[&str]) {
        assert_eq!(changes(&resource("pods"), &old, &new, Paint::off()), expected);
    }

    #[test]
    fn each_changed_value_is_a_line() {
        check(
            json!({"metadata": {"resourceVersion": "1", "labels": {"a.b/c": "1"}}, "spec": {"node": "a", "gone": {"x": 1}}}),
            json!({"metadata": {"resourceVersion": "2", "labels": {"a.b/c": "2"}}, "spec": {"node": "b", "new": {"y": [1]}}}),
            &[r#"~ metadata.labels[a.b/c]: "1" → "2""#, "- spec.gone.x: 1", "+ spec.new.y: [1]", "~ spec.node: a → b"],
        );
    }

    #[test]
    fn list_elements_with_unique_names_are_compared_by_name() {
        let container = |name: &str, image: &str| json!({"name": name, "image": image});
        check(
            json!({"containers": [container("a", "1.0.0"), container("b", "1.0.0")], "ports": [1, 2]}),
            json!({"containers": [container("b", "2.0.0"), container("a", "1.0.0")], "ports": [1]}),
            &["~ containers[b].image: 1.0.0 → 2.0.0", "- ports[1]: 2"],
        );
        // Two elements of one name are compared by their position.
        check(
            json!([{"name": "a", "x": 1}, {"name": "a", "x": 2}]),
            json!([{"name": "a", "x": 1}, {"name": "a", "x": 3}]),
            &["~ [1].x: 2 → 3"],
        );
    }

    #[test]
    fn values_of_secrets_are_not_shown() {
        let secret = |value: &str| {
            json!({"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": value}},
                "data": {"password": value}, "type": "Opaque"})
        };
        let lines = changes(&resource("secrets"), &secret("b2xk"), &secret("bmV3"), Paint::off());
        assert_eq!(
            lines,
            [
                "~ data.password: (not shown) → (not shown)",
                "~ metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]: (not shown) → (not shown)",
            ]
        );
        let lines = changes(&resource("secrets"), &json!({}), &secret("bmV3"), Paint::off());
        assert!(lines.iter().all(|line| !line.contains("bmV3")), "{lines:?}");
    }

    #[test]
    fn long_values_are_cut_and_control_characters_are_escaped() {
        let lines =
            changes(&resource("pods"), &json!({"a": "\u{1b}[31m"}), &json!({"a": "x".repeat(500)}), Paint::off());
        assert_eq!(lines, [format!("~ a: \"\\u001b[31m\" → {}…", "x".repeat(120))]);
    }
}
