//! Why an object could not be decoded. The errors contain no value of an object.

use serde_json::error::Category;

use super::field_path::field_path;

/// Why an object could not be decoded from its JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes are not UTF-8.
    #[error("object is not valid UTF-8")]
    NotUtf8,
    /// The JSON is not valid or does not fit the type. The error names the field, and does not repeat its value, which may
    /// be a secret.
    #[error("object does not fit its type: {0}")]
    Shape(String),
    /// The object has no name.
    #[error("object has no metadata.name")]
    NoName,
    /// The object is not of the kind of its collection.
    #[error("expected an object of kind {expected}, got {got}")]
    WrongKind {
        /// The kind of the collection.
        expected: String,
        /// The received kind.
        got: String,
    },
    /// The object is larger than [`InformerOptions::object_limit`](crate::InformerOptions::object_limit).
    #[error("object is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The caller's transform refused the object.
    #[error("transform failed: {0}")]
    Transform(String),
}

impl From<serde_json::Error> for DecodeError {
    fn from(error: serde_json::Error) -> Self {
        Self::Shape(without_values(&error))
    }
}

impl DecodeError {
    /// Returns the error of decoding this JSON, with the path of the field. `root` is the path of the JSON itself.
    pub(super) fn of(error: &serde_json::Error, root: &str, json: &str) -> Self {
        if error.classify() != Category::Data {
            return Self::Shape(without_values(error));
        }
        Self::Shape(match field_path(root, json, error) {
            path if path.is_empty() => problem(error),
            path => format!("{path}: {}", problem(error)),
        })
    }
}

/// Returns the message of a serde error with its position, and without the values that it quotes from the input.
pub(crate) fn without_values(error: &serde_json::Error) -> String {
    format!("{} {}", problem(error), position(error))
}

fn position(error: &serde_json::Error) -> String {
    format!("at line {} column {}", error.line(), error.column())
}

/// Returns the message of a serde error without its position, and without the values that it quotes from the input.
fn problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.strip_suffix(&format!(" {}", position(error))).unwrap_or(&text);
    // These messages name fields of the type, which are not secret.
    let names_a_field = ["missing field `", "duplicate field `"].iter().any(|start| text.starts_with(start));
    let quotes = ["invalid type: ", "invalid value: ", "invalid length ", "unknown variant `"];
    let expected = || quotes.iter().any(|start| text.starts_with(start)).then(|| text.rsplit_once(", expected "));
    match error.classify() {
        _ if names_a_field => text.to_owned(),
        Category::Data => match expected().flatten() {
            Some((_, expected)) => format!("expected {expected}"),
            None => "a value does not fit".to_owned(),
        },
        Category::Eof => "it ends early".to_owned(),
        _ => "it is no JSON".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    #[allow(dead_code, reason = "only errors are of interest")]
    struct Lists {
        lists: Vec<Vec<Shape>>,
        by_name: std::collections::BTreeMap<String, Vec<u8>>,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only errors are of interest")]
    struct Shape {
        number: Option<u8>,
        name: Option<String>,
        choice: Option<Choice>,
        needed: bool,
    }

    #[derive(Debug, Deserialize)]
    enum Choice {
        A,
        B,
    }

    fn check(json: &str, expected: &str) {
        let error = serde_json::from_str::<Shape>(json).expect_err(json);
        assert_eq!(DecodeError::of(&error, "", json), DecodeError::Shape(expected.to_owned()), "{error}");
    }

    #[test]
    fn an_error_names_the_field_and_the_expected_type_and_no_value() {
        check(r#"{"number":"hunter2"}"#, "number: expected u8");
        check(r#"{"number":"hunter2, expected x"}"#, "number: expected u8");
        check(r#"{"number":4711}"#, "number: expected u8");
        check(r#"{"name":["hunter2"]}"#, "name: expected a string");
        check(r#"{"choice":"hunter2"}"#, "choice: expected `A` or `B`");
        check(r#"{"name":"hunter2"}"#, "missing field `needed`");
        check(r#"{"needed":true,"needed":true}"#, "needed: duplicate field `needed`");
        check(r#"{"name":"hunter2"#, "it ends early at line 1 column 16");
        check(r#"{"name":hunter2}"#, "it is no JSON at line 1 column 9");
    }

    #[test]
    fn the_path_leads_through_objects_and_arrays() {
        for (json, expected) in [
            (
                r#"{"lists":[[],[{"needed":true},{"name":"a,]}\"{","needed":1}]]}"#,
                "lists[1][1].needed: expected a boolean",
            ),
            ("{\n \"lists\": [\n  [ 7 ] ]}", "lists[0][0]: expected struct Shape"),
            (r#"{"lists":[[{"name":"a"}]]}"#, "lists[0][0]: missing field `needed`"),
            (r#"{"by_name":{"a":[1],"b\"c":[2,"hunter2"]}}"#, r#"by_name["b\"c"][1]: expected u8"#),
            (r#"{"by_name":{"ä.b":[-1]}}"#, r#"by_name["ä.b"][0]: expected u8"#),
            (r#"["hunter2"]"#, "[0]: expected a sequence"),
        ] {
            let error = serde_json::from_str::<Lists>(json).expect_err(json);
            assert_eq!(DecodeError::of(&error, "", json), DecodeError::Shape(expected.to_owned()), "{json}: {error}");
        }
        let long = format!(r#"{{"by_name":{{"{}":7}}}}"#, "ä".repeat(10_000));
        let error = serde_json::from_str::<Lists>(&long).expect_err("7 is no list");
        let DecodeError::Shape(message) = DecodeError::of(&error, "", &long) else { panic!("it is valid JSON") };
        assert!(message.ends_with("ä…: expected a sequence") && message.chars().count() < 250, "{message}");
    }
}
