//! Reads a JSON or YAML document as a value, and reports its duplicate members.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

use crate::kinds::Flaws;

/// A document as a value. The last of several duplicate members counts, as in Go.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BodyDocument {
    pub(crate) value: Value,
    /// The duplicate members, for strict validation: `duplicate field "spec.size"`.
    pub(crate) duplicates: Vec<String>,
}

impl From<Value> for BodyDocument {
    fn from(value: Value) -> Self {
        Self { value, duplicates: Vec::new() }
    }
}

/// Reads a JSON document. A nesting of more than 128 levels is refused.
pub(crate) fn read(bytes: &[u8]) -> Result<BodyDocument, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let (mut path, mut duplicates) = (String::new(), Flaws::default());
    let value = DocumentPlace { path: &mut path, duplicates: &mut duplicates }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(BodyDocument { value, duplicates: duplicates.into_vec() })
}

/// Reads a document in YAML or JSON, with the same nesting limit. Errors do not quote the document, because it may
/// contain a secret.
pub(crate) fn read_yaml(bytes: &[u8]) -> Result<BodyDocument, String> {
    if bytes.trim_ascii_start().first() == Some(&b'{')
        && let Ok(document) = read(bytes)
    {
        return Ok(document);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "yaml: it is no text in UTF-8".to_owned())?;
    let options = serde_saphyr::options! {
        // A name may be `y` or `no`: only `true` and `false` are booleans.
        strict_booleans: true,
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins,
        with_snippet: false,
    };
    let (mut path, mut duplicates) = (String::new(), Flaws::default());
    let place = DocumentPlace { path: &mut path, duplicates: &mut duplicates };
    let value =
        serde_saphyr::with_deserializer_from_str_with_options(text, options, |reader| place.deserialize(reader));
    match value {
        Ok(value) => Ok(BodyDocument { value, duplicates: duplicates.into_vec() }),
        Err(error) => Err(match error.location() {
            Some(at) => format!("yaml: line {}: it cannot be read", at.line()),
            None => "yaml: it cannot be read".to_owned(),
        }),
    }
}

/// A position in the document.
struct DocumentPlace<'a> {
    path: &'a mut String,
    duplicates: &'a mut Flaws,
}

impl DocumentPlace<'_> {
    /// Reads one level deeper.
    fn inside<T>(&mut self, step: fmt::Arguments<'_>, read: impl FnOnce(DocumentPlace<'_>) -> T) -> T {
        let length = self.path.len();
        // Writing into a string does not fail.
        let _ = fmt::Write::write_fmt(self.path, step);
        let read = read(DocumentPlace { path: self.path, duplicates: self.duplicates });
        self.path.truncate(length);
        read
    }
}

impl<'de> DeserializeSeed<'de> for DocumentPlace<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for DocumentPlace<'_> {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("any JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = self.inside(format_args!("[{}]", list.len()), |place| items.next_element_seed(place))? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let dot = if self.path.is_empty() { "" } else { "." };
            if map.contains_key(&name) {
                let (path, length) = (&self.path, self.path.len() + name.len());
                self.duplicates.add(length, || format!("duplicate field \"{path}{dot}{name}\""));
            }
            let value = self.inside(format_args!("{dot}{name}"), |place| members.next_value_seed(place))?;
            map.insert(name, value);
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn duplicates_are_reported_with_their_path() {
        let document = read(br#"{"a":1,"b":[{"c":1},{"c":1,"c":{"d":1,"d":2.5}}],"a":null}"#).unwrap();
        assert_eq!(document.value, json!({"a": null, "b": [{"c": 1}, {"c": {"d": 2.5}}]}));
        let expected = [r#"duplicate field "b[1].c""#, r#"duplicate field "b[1].c.d""#, r#"duplicate field "a""#];
        assert_eq!(document.duplicates, expected);
    }

    #[test]
    fn each_duplicate_is_reported_once_up_to_a_limit() {
        let members = |name: &dyn Fn(usize) -> String| -> String {
            (0..1_000).map(|number| format!(",\"{0}\":1,\"{0}\":1", name(number))).collect()
        };
        let same = format!("{{\"{}\":{{\"b\":1{}}}}}", "x".repeat(100_000), members(&|_| "a".into()));
        assert_eq!(read(same.as_bytes()).unwrap().duplicates.len(), 1);
        let many = format!("{{\"b\":1{}}}", members(&|number| format!("a{number}")));
        assert_eq!(read(many.as_bytes()).unwrap().duplicates.len(), 100);
        let long = format!("{{\"{}\":{{\"b\":1{}}}}}", "x".repeat(1 << 20), members(&|number| format!("a{number}")));
        let told: usize = read(long.as_bytes()).unwrap().duplicates.iter().map(String::len).sum();
        assert!(told < 8 << 20, "{told} bytes");
    }

    #[test]
    fn yaml_errors_name_duplicates_and_never_quote_the_document() {
        let document = read_yaml(b"a: 1\nb: {c: yes, c: 'x'}\na: 2.5\n").unwrap();
        assert_eq!(document.value, json!({"a": 2.5, "b": {"c": "x"}}));
        assert_eq!(document.duplicates, [r#"duplicate field "b.c""#, r#"duplicate field "a""#]);
        let error = read_yaml(b"data:\n  password: [hunter2\n").unwrap_err();
        assert!(error.contains("line") && !error.contains("hunter2"), "{error}");
        let deep = format!("{}1{}", "{\"a\":".repeat(90), "}".repeat(90));
        assert!(read_yaml(deep.as_bytes()).is_ok());
    }

    #[test]
    fn invalid_documents_are_refused() {
        for text in ["", "{", "{}{}", "nul", r#"{"a":}"#, &"[".repeat(200)] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
