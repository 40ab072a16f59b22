//! The selectable fields of an object.

use serde_json::Value;

/// One selectable field: its label in selectors, and the path of its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SelectableField {
    pub(crate) label: String,
    /// The paths in order; the first with a value counts.
    paths: Vec<String>,
    /// The value of a missing field.
    missing: &'static str,
}

/// How an unknown field selector is refused; kube-apiserver has three messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum UnknownField {
    /// `"spec.foo" is not a known field selector: only "metadata.name", "metadata.namespace"`
    #[default]
    Known,
    /// `field label not supported: spec.foo`
    Label,
    /// `field label "spec.foo" not supported for Job`
    ForKind,
}

impl SelectableField {
    /// Returns the field at the dotted path, with the path as its label.
    pub(crate) fn at(path: &str) -> Self {
        Self { label: path.to_owned(), paths: vec![path.to_owned()], missing: "" }
    }

    /// Parses a row of the table of kinds: `label`, `label=path|path` or `label:missing`.
    pub(crate) fn parse(row: &'static str) -> Self {
        let (row, missing) = row.split_once(':').unwrap_or((row, ""));
        let (label, paths) = row.split_once('=').unwrap_or((row, row));
        Self { label: label.to_owned(), paths: paths.split('|').map(str::to_owned).collect(), missing }
    }

    /// Returns the value that a selector compares with.
    pub(crate) fn read(&self, object: &Value) -> Box<str> {
        self.paths
            .iter()
            .filter_map(|path| path.split('.').try_fold(object, |value, step| value.get(step)))
            .find_map(|value| match value {
                Value::String(text) if text.is_empty() => None,
                Value::String(text) => Some(text.as_str().into()),
                Value::Bool(_) | Value::Number(_) => Some(value.to_string().into()),
                _ => None,
            })
            .unwrap_or_else(|| self.missing.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn field_reads_strings_numbers_and_missing_values() {
        let pod = json!({"spec": {"nodeName": "n1", "size": 3}});
        assert_eq!(&*SelectableField::at("spec.nodeName").read(&pod), "n1");
        assert_eq!(&*SelectableField::at("spec.size").read(&pod), "3");
        assert_eq!(&*SelectableField::parse("spec.hostNetwork:false").read(&pod), "false");
        assert_eq!(&*SelectableField::parse("spec.host=spec.nodeName").read(&pod), "n1");
        assert_eq!(&*SelectableField::parse("source=source.component|reportingComponent").read(&pod), "");
    }
}
