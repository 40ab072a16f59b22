//! Paths to values in an object: `spec.nodeName`, `spec.containers.image`, `/metadata/labels/app`.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

/// A path to values of an object. A list on the way stands for all its elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path(Vec<String>);

/// Why a string is not a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathError {
    /// The path is empty.
    Empty,
    /// A name between two dots is missing at this letter, counted from 1.
    NoName(usize),
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the path is empty"),
            Self::NoName(at) => write!(f, "a name is missing at letter {at} of the path"),
        }
    }
}

impl std::error::Error for PathError {}

impl FromStr for Path {
    type Err = PathError;

    /// Parses a JSON pointer, which begins with a slash, or names with dots between them. `\.` is a dot within a name.
    fn from_str(text: &str) -> Result<Self, PathError> {
        if let Some(pointer) = text.strip_prefix('/') {
            let name = |part: &str| part.replace("~1", "/").replace("~0", "~");
            return if pointer.is_empty() {
                Err(PathError::Empty)
            } else {
                Ok(Self(pointer.split('/').map(name).collect()))
            };
        }
        let dotted = text.strip_prefix('.').unwrap_or(text);
        let (mut names, mut name) = (Vec::new(), String::new());
        let mut letters = dotted.chars().enumerate().peekable();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\\' if letters.peek().is_some_and(|(_, next)| *next == '.') => {
                    name.push('.');
                    letters.next();
                }
                '.' if name.is_empty() => return Err(PathError::NoName(at + 1)),
                '.' => names.push(std::mem::take(&mut name)),
                other => name.push(other),
            }
        }
        match (name.is_empty(), names.is_empty()) {
            (true, true) => Err(PathError::Empty),
            (true, false) => Err(PathError::NoName(dotted.chars().count())),
            (false, _) => {
                names.push(name);
                Ok(Self(names))
            }
        }
    }
}

impl Path {
    /// Returns the strings, numbers and booleans at the end of this path, as strings.
    pub(crate) fn values(&self, object: &Value) -> Vec<String> {
        let mut found = Vec::new();
        collect(object, &self.0, &mut found);
        found
    }
}

fn collect(value: &Value, path: &[String], found: &mut Vec<String>) {
    match (value, path) {
        (Value::String(text), []) => found.push(text.clone()),
        (Value::Bool(_) | Value::Number(_), []) => found.push(value.to_string()),
        (Value::Object(members), [name, rest @ ..]) => {
            if let Some(member) = members.get(name) {
                collect(member, rest, found);
            }
        }
        (Value::Array(elements), path) => {
            let at = path.first().and_then(|name| name.parse::<usize>().ok());
            match at {
                Some(at) => elements.get(at).into_iter().for_each(|element| collect(element, &path[1..], found)),
                None => elements.iter().for_each(|element| collect(element, path, found)),
            }
        }
        _ => {}
    }
}

/// A path and a value that is searched for: `spec.nodeName=worker-7`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lookup {
    pub(crate) path: Path,
    pub(crate) value: String,
}

impl FromStr for Lookup {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "write it as PATH=VALUE, such as spec.nodeName=worker-7";
        let (path, value) = text.split_once('=').ok_or_else(|| format!("there is no `=` in it; {form}"))?;
        let path = path.parse().map_err(|error: PathError| format!("{error}; {form}"))?;
        Ok(Self { path, value: value.to_owned() })
    }
}

impl Lookup {
    /// Returns true if the object has this value at the path.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.path.values(object).contains(&self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(path: &str, expected: &[&str]) {
        let pod = json!({
            "metadata": {"labels": {"app.kubernetes.io/name": "shop"}},
            "spec": {"nodeName": "worker-7", "hostNetwork": true, "containers": [{"image": "a", "ports": [{"containerPort": 80}]}, {"image": "b"}],
                "finalizers": ["x", "y"]},
        });
        assert_eq!(path.parse::<Path>().unwrap().values(&pod), expected, "{path}");
    }

    #[test]
    fn dotted_path_and_json_pointer_find_the_same_values() {
        for path in ["spec.nodeName", ".spec.nodeName", "/spec/nodeName"] {
            check(path, &["worker-7"]);
        }
        for path in [r"metadata.labels.app\.kubernetes\.io/name", "/metadata/labels/app.kubernetes.io~1name"] {
            check(path, &["shop"]);
        }
    }

    #[test]
    fn a_list_stands_for_all_its_elements_unless_an_index_is_given() {
        check("spec.containers.image", &["a", "b"]);
        check("spec.containers.1.image", &["b"]);
        check("spec.containers.ports.containerPort", &["80"]);
        check("spec.finalizers", &["x", "y"]);
    }

    #[test]
    fn missing_fields_and_objects_give_no_values() {
        check("spec.hostNetwork", &["true"]);
        for path in ["spec", "spec.containers.9.image", "spec.nodeName.more", "status.phase"] {
            check(path, &[]);
        }
    }

    #[test]
    fn an_invalid_path_is_refused_with_its_reason() {
        for (text, expected) in [
            ("", PathError::Empty),
            ("/", PathError::Empty),
            ("a..b", PathError::NoName(3)),
            ("a.", PathError::NoName(2)),
        ] {
            assert_eq!(text.parse::<Path>(), Err(expected), "{text:?}");
        }
        assert!("spec.nodeName".parse::<Lookup>().unwrap_err().starts_with("there is no `=` in it"));
        let lookup: Lookup = "spec.x=a=b".parse().unwrap();
        assert_eq!(lookup.value, "a=b");
    }
}
