//! The differences between two states of an object.

use serde_json::Value;

use crate::model::FieldChange;

/// Returns up to `most` differences, sorted by the fields' names, and the number of further ones. The resource version
/// is left out, because it changes with every write.
pub(crate) fn differences(old: &Value, new: &Value, most: usize) -> (Vec<FieldChange>, u64) {
    let mut found = Found { changes: Vec::new(), more: 0, most };
    found.compare(&mut String::new(), Some(old), Some(new));
    (found.changes, found.more)
}

struct Found {
    changes: Vec<FieldChange>,
    more: u64,
    most: usize,
}

impl Found {
    fn compare(&mut self, path: &mut String, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (Some(Value::Object(old)), Some(Value::Object(new))) => {
                let added = new.keys().filter(|name| !old.contains_key(*name));
                let mut names: Vec<&String> = old.keys().chain(added).collect();
                names.sort_unstable();
                for name in names {
                    let length = path.len();
                    push_name(path, name);
                    self.compare(path, old.get(name), new.get(name));
                    path.truncate(length);
                }
            }
            (Some(Value::Array(old)), Some(Value::Array(new))) => {
                for at in 0..old.len().max(new.len()) {
                    let length = path.len();
                    path.push_str(&format!("[{at}]"));
                    self.compare(path, old.get(at), new.get(at));
                    path.truncate(length);
                }
            }
            (old, new) if old != new && path != "metadata.resourceVersion" => {
                if self.changes.len() < self.most {
                    self.changes.push(FieldChange { path: path.clone(), old: old.cloned(), new: new.cloned() });
                } else {
                    self.more += 1;
                }
            }
            _ => {}
        }
    }
}

/// Appends a name to a path. A name with special characters is quoted.
fn push_name(path: &mut String, name: &str) {
    let simple =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if simple {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
    } else {
        path.push_str(&format!("[{name:?}]"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(old: &Value, new: &Value) -> Vec<String> {
        differences(old, new, 100).0.into_iter().map(|change| change.path).collect()
    }

    #[test]
    fn differences_are_reported_for_the_innermost_fields() {
        let old = json!({"metadata": {"resourceVersion": "1", "labels": {"a.b/c": "x"}}, "spec": {"of": [{"image": "1"}, {}]}});
        let new = json!({"metadata": {"resourceVersion": "2", "labels": {"a.b/c": "y"}}, "spec": {"of": [{"image": "2"}], "n": 1}});
        let expected = ["metadata.labels[\"a.b/c\"]", "spec.n", "spec.of[0].image", "spec.of[1]"];
        assert_eq!(paths(&old, &new), expected);
        assert!(paths(&old, &old).is_empty());
    }

    #[test]
    fn added_and_removed_fields_have_one_value() {
        let (changes, _) = differences(&json!({"a": 1}), &json!({"b": null}), 10);
        assert_eq!((changes[0].old.clone(), changes[0].new.clone()), (Some(json!(1)), None));
        assert_eq!((changes[1].old.clone(), changes[1].new.clone()), (None, Some(Value::Null)));
    }

    #[test]
    fn differences_beyond_the_limit_are_counted() {
        let (changes, more) = differences(&json!([1, 2, 3]), &json!([4, 5, 6]), 2);
        assert_eq!((changes.len(), more), (2, 1));
    }
}
