//! Why an object could not be decoded. The errors contain no value of an object.

/// Why an object could not be decoded from its JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes are not UTF-8.
    #[error("object is not valid UTF-8")]
    NotUtf8,
    /// The JSON is not valid or does not fit the type. The error does not repeat the value, which may be a secret.
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

/// Returns the message of a serde error without the values that it quotes from the input.
pub(crate) fn without_values(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!("at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&format!(" {place}")).unwrap_or(&text);
    // These messages name fields of the type, which are not secret.
    let names_a_field = ["missing field `", "duplicate field `"].iter().any(|start| text.starts_with(start));
    let quotes = ["invalid type: ", "invalid value: ", "invalid length ", "unknown variant `"];
    let expected = || quotes.iter().any(|start| text.starts_with(start)).then(|| text.rsplit_once(", expected "));
    match error.classify() {
        _ if names_a_field => format!("{text} {place}"),
        serde_json::error::Category::Data => match expected().flatten() {
            Some((_, expected)) => format!("expected {expected} {place}"),
            None => format!("a value does not fit {place}"),
        },
        serde_json::error::Category::Eof => format!("it ends early {place}"),
        _ => format!("it is no JSON {place}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

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
        assert_eq!(without_values(&error), expected, "{error}");
    }

    #[test]
    fn an_error_tells_the_expected_type_and_the_position_and_no_value() {
        check(r#"{"number":"hunter2"}"#, "expected u8 at line 1 column 19");
        check(r#"{"number":"hunter2, expected x"}"#, "expected u8 at line 1 column 31");
        check(r#"{"number":4711}"#, "expected u8 at line 1 column 14");
        check(r#"{"name":["hunter2"]}"#, "expected a string at line 1 column 8");
        check(r#"{"choice":"hunter2"}"#, "expected `A` or `B` at line 1 column 19");
        check(r#"{"name":"hunter2"}"#, "missing field `needed` at line 1 column 18");
        check(r#"{"needed":true,"needed":true}"#, "duplicate field `needed` at line 1 column 23");
        check(r#"{"name":"hunter2"#, "it ends early at line 1 column 16");
        check(r#"{"name":hunter2}"#, "it is no JSON at line 1 column 9");
    }
}
