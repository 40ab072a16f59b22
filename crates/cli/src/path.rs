//! Where a value is within an object: `spec.nodeName`, `spec.containers.image`, `/metadata/labels/app`.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

/// The way to some values of an object. Where a list stands in the way, all its elements are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path(Vec<String>);

/// Why a text is no path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathError {
    /// There is nothing in it.
    Empty,
    /// A name between two dots is missing; where, counted in letters from 1.
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

    /// Reads a JSON pointer, which begins with a slash, or names with dots between them. `\.` is a dot within a name.
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
    /// The texts, numbers and switches at the end of this path, as texts.
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

/// A path and the value that is looked for at its end: `spec.nodeName=worker-7`.
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
    /// Whether an object has this value there.
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
    fn both_ways_of_writing_find_the_same() {
        for path in ["spec.nodeName", ".spec.nodeName", "/spec/nodeName"] {
            check(path, &["worker-7"]);
        }
        for path in [r"metadata.labels.app\.kubernetes\.io/name", "/metadata/labels/app.kubernetes.io~1name"] {
            check(path, &["shop"]);
        }
    }

    #[test]
    fn lists_mean_all_their_elements_or_the_one_that_is_named() {
        check("spec.containers.image", &["a", "b"]);
        check("spec.containers.1.image", &["b"]);
        check("spec.containers.ports.containerPort", &["80"]);
        check("spec.finalizers", &["x", "y"]);
    }

    #[test]
    fn what_is_not_there_or_no_single_value_is_nothing() {
        check("spec.hostNetwork", &["true"]);
        for path in ["spec", "spec.containers.9.image", "spec.nodeName.more", "status.phase"] {
            check(path, &[]);
        }
    }

    #[test]
    fn what_is_no_path_is_told_why() {
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
