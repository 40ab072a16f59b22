//! Finds the parts of an object in its bytes, and leaves managed fields out, without reading the rest.

use std::borrow::Cow;
use std::ops::Range;

use super::super::{DecodeError, Raw};

/// As deep as serde reads: what is deeper nobody could decode.
const DEEPEST: usize = 127;

/// An object cut into its parts.
pub(super) struct Cut<'a> {
    json: Cow<'a, [u8]>,
    /// The metadata, without managed fields; nothing if there is none.
    pub(super) metadata: Cow<'a, [u8]>,
    /// Managed fields, with the comma beside them.
    left_out: Range<usize>,
}

impl Cut<'_> {
    /// The object without managed fields, in two parts.
    pub(super) fn parts(&self) -> [&[u8]; 2] {
        [&self.json[..self.left_out.start], &self.json[self.left_out.end..]]
    }

    pub(super) fn len(&self) -> usize {
        self.json.len() - self.left_out.len()
    }
}

/// Cuts an object, and checks that it is JSON and of which kind. What its values mean is left to who reads them.
///
/// # Errors
///
/// [`DecodeError`] if it is no object, or of another kind.
pub(super) fn cut(raw: Raw<'_>) -> Result<Cut<'_>, DecodeError> {
    std::str::from_utf8(raw.json()).map_err(|_| DecodeError::NotUtf8)?;
    let json = raw.json();
    let Some(Found { kind, metadata, left_out }) = Scanner::new(json).object(raw.keeps_managed_fields()) else {
        return read_whole(raw);
    };
    let kind = kind.map(|kind| serde_json::from_slice::<Option<Cow<'_, str>>>(&json[kind])).transpose()?;
    raw.check_kind(kind.flatten().as_deref())?;
    let metadata = match left_out.is_empty() {
        true => Cow::Borrowed(&json[metadata]),
        false => Cow::Owned([&json[metadata.start..left_out.start], &json[left_out.end..metadata.end]].concat()),
    };
    Ok(Cut { json: Cow::Borrowed(json), metadata, left_out })
}

/// Something unusual: keys twice or with escapes, or no object at all. It is read properly, and written again.
fn read_whole(raw: Raw<'_>) -> Result<Cut<'_>, DecodeError> {
    let value: serde_json::Map<String, serde_json::Value> = raw.deserialize()?;
    let metadata = value.get("metadata").filter(|metadata| metadata.is_object());
    let metadata = metadata.map(serde_json::to_vec).transpose()?.unwrap_or_default();
    Ok(Cut { json: Cow::Owned(serde_json::to_vec(&value)?), metadata: Cow::Owned(metadata), left_out: 0..0 })
}

/// Where the parts are.
struct Found {
    kind: Option<Range<usize>>,
    metadata: Range<usize>,
    left_out: Range<usize>,
}

/// Reads from left to right, once. Whatever it does not understand ends it.
struct Scanner<'a> {
    json: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn new(json: &'a [u8]) -> Self {
        Self { json, at: 0 }
    }

    /// The parts of an object that is all there is.
    fn object(mut self, keep: bool) -> Option<Found> {
        let (mut kind, mut metadata, mut left_out) = (None, None, 0..0);
        self.blank();
        let json = self.json;
        self.members(|scanner, key, _| {
            let start = scanner.at;
            match &json[key] {
                b"metadata" if metadata.is_some() => return None,
                b"metadata" if scanner.peek() == Some(b'{') => {
                    left_out = scanner.metadata(keep)?;
                    metadata = Some(start..scanner.at);
                }
                b"kind" if kind.is_some() => return None,
                b"kind" => {
                    scanner.value()?;
                    kind = Some(start..scanner.at);
                }
                _ => scanner.value()?,
            }
            Some(())
        })?;
        self.blank();
        let metadata = metadata.unwrap_or(0..0);
        (self.at == self.json.len()).then_some(Found { kind, metadata, left_out })
    }

    /// Goes through metadata; gives where managed fields are, unless they are to be kept.
    fn metadata(&mut self, keep: bool) -> Option<Range<usize>> {
        let (json, mut found, mut last) = (self.json, None, None);
        self.members(|scanner, key, start| {
            let managed = &json[key] == b"managedFields";
            if managed && found.is_some() {
                return None;
            }
            scanner.value()?;
            if managed {
                found = Some((last, start, scanner.at));
            }
            last = Some(scanner.at);
            Some(())
        })?;
        let Some((before, start, end)) = found.filter(|_| !keep) else { return Some(0..0) };
        // The comma behind goes with it; if it is the last, the one before.
        let rest = &json[end..];
        let comma = rest.iter().position(|byte| !byte.is_ascii_whitespace()).filter(|at| rest[*at] == b',');
        Some(match (comma, before) {
            (Some(comma), _) => start..end + comma + 1,
            (None, Some(before)) => before..end,
            (None, None) => start..end,
        })
    }

    /// Goes through an object: calls `member` behind each colon, with the range of the key, without its quotes, and where the
    /// member begins.
    fn members(&mut self, mut member: impl FnMut(&mut Self, Range<usize>, usize) -> Option<()>) -> Option<()> {
        self.expect(b'{')?;
        self.blank();
        if self.peek()? == b'}' {
            return self.expect(b'}');
        }
        loop {
            self.blank();
            let start = self.at;
            let key = self.key()?;
            self.blank();
            self.expect(b':')?;
            self.blank();
            member(self, key, start)?;
            self.blank();
            match self.peek()? {
                b',' => self.at += 1,
                _ => return self.expect(b'}'),
            }
        }
    }

    /// A key without escapes.
    fn key(&mut self) -> Option<Range<usize>> {
        self.expect(b'"')?;
        let start = self.at;
        let end = start + memchr::memchr2(b'"', b'\\', &self.json[start..])?;
        self.at = end;
        self.expect(b'"')?;
        self.json[start..end].iter().all(|byte| *byte >= b' ').then_some(start..end)
    }

    /// Passes over one value of any kind, if it is one.
    fn value(&mut self) -> Option<()> {
        // Which brackets are open, the innermost lowest: an object is a one.
        let (mut open, mut depth) = (0_u128, 0);
        loop {
            self.blank();
            match self.peek()? {
                b'"' => self.string()?,
                bracket @ (b'{' | b'[') => {
                    self.at += 1;
                    self.blank();
                    let object = bracket == b'{';
                    if self.peek()? == if object { b'}' } else { b']' } {
                        self.at += 1;
                    } else {
                        if depth == DEEPEST {
                            return None;
                        }
                        (open, depth) = (open << 1 | u128::from(object), depth + 1);
                        if object {
                            self.any_key()?;
                        }
                        continue;
                    }
                }
                b't' => self.word(b"true")?,
                b'f' => self.word(b"false")?,
                b'n' => self.word(b"null")?,
                _ => self.number()?,
            }
            // Behind a value: what ends with it, and what comes next.
            loop {
                if depth == 0 {
                    return Some(());
                }
                self.blank();
                let object = open & 1 == 1;
                match self.peek()? {
                    b',' => {
                        self.at += 1;
                        if object {
                            self.any_key()?;
                        }
                        break;
                    }
                    b'}' if object => {}
                    b']' if !object => {}
                    _ => return None,
                }
                self.at += 1;
                (open, depth) = (open >> 1, depth - 1);
            }
        }
    }

    /// A key of whatever form, and the colon behind it.
    fn any_key(&mut self) -> Option<()> {
        self.blank();
        self.string()?;
        self.blank();
        self.expect(b':')
    }

    /// Passes over a string.
    fn string(&mut self) -> Option<()> {
        self.expect(b'"')?;
        loop {
            let rest = &self.json[self.at..];
            let length = memchr::memchr2(b'"', b'\\', rest)?;
            if rest[..length].iter().any(|byte| *byte < b' ') {
                return None;
            }
            self.at += length + 1;
            if rest[length] == b'"' {
                return Some(());
            }
            let escape = self.peek()?;
            self.at += 1;
            match escape {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                b'u' => {
                    let digits = self.json.get(self.at..self.at + 4)?;
                    // Half of a pair is for who reads properly to judge.
                    if !digits.iter().all(u8::is_ascii_hexdigit) || matches!(digits[0], b'd' | b'D') {
                        return None;
                    }
                    self.at += 4;
                }
                _ => return None,
            }
        }
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.json[self.at..].starts_with(word).then(|| self.at += word.len())
    }

    /// Passes over a number.
    fn number(&mut self) -> Option<()> {
        if self.peek()? == b'-' {
            self.at += 1;
        }
        match self.peek()? {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    /// Passes over one digit or more.
    fn digits(&mut self) -> Option<()> {
        let count = self.json[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        (count > 0).then(|| self.at += count)
    }

    fn blank(&mut self) {
        self.at += self.json[self.at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
    }

    fn peek(&self) -> Option<u8> {
        self.json.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::representation::ManagedFields;

    fn body(cut: &Cut<'_>) -> Vec<u8> {
        cut.parts().concat()
    }

    fn check(json: &str) {
        let raw = Raw::new(json.as_bytes());
        match (cut(raw), raw.deserialize::<Value>()) {
            (Ok(cut), Ok(value)) => {
                assert_eq!(serde_json::from_slice::<Value>(&body(&cut)).unwrap(), value, "{json}");
                let metadata: Value = serde_json::from_slice(&cut.metadata).unwrap_or(Value::Null);
                let expected = if value["metadata"].is_object() { value["metadata"].clone() } else { Value::Null };
                assert_eq!(metadata, expected, "{json}");
                assert_eq!(cut.len(), body(&cut).len());
            }
            // A number may be too large for anybody; it is a number all the same.
            (Ok(_), Err(error)) => {
                let number = serde_json::from_str::<serde::de::IgnoredAny>(json).is_ok();
                assert!(number, "{json} was taken for JSON: {error}");
            }
            (Err(error), Ok(value)) => assert!(!value.is_object(), "{json} was refused: {error}"),
            (Err(_), Err(_)) => {}
        }
    }

    #[test]
    fn managed_fields_are_left_out_wherever_they_stand() {
        for metadata in [
            r#"{"managedFields":[{"a":1}]}"#,
            r#"{ "managedFields" : [ ] }"#,
            r#"{"name":"a","managedFields":[{"a":"]}\"{"}]}"#,
            r#"{"managedFields":[{"a":1}] , "name":"a"}"#,
            r#"{"name":"a", "managedFields":null , "uid":"u"}"#,
            r#"{"name":"a","managedFields":[],"managedFields":[]}"#,
            r#"{"name":"a","\u006danagedFields":[1]}"#,
            r#"{"name":"a"}"#,
            "{}",
            "null",
        ] {
            check(&format!(r#"{{"metadata":{metadata},"spec":{{"x":[1,2.5,true,null,"q"]}}}}"#));
            check(&format!(r#" {{ "spec" : {{}} , "metadata" : {metadata} }} "#));
            check(&format!(r#"{{"metadata":{metadata},"metadata":{metadata}}}"#));
        }
    }

    #[test]
    fn they_are_kept_if_that_is_asked_for() {
        let json = br#"{"metadata":{"name":"a","managedFields":[1]}}"#;
        let cut = cut(Raw::new(json).managed_fields(ManagedFields::Keep)).unwrap();
        assert_eq!(body(&cut), json);
    }

    #[test]
    fn another_kind_is_refused_and_none_is_fine() {
        let kind = |json: &'static str| cut(Raw::new(json.as_bytes()).of_kind("v1", "Pod")).map(|cut| body(&cut));
        assert!(kind(r#"{"kind":"Pod","metadata":{}}"#).is_ok() && kind(r#"{"metadata":{}}"#).is_ok());
        assert!(
            matches!(kind(r#"{"metadata":{},"kind":"Secret"}"#), Err(DecodeError::WrongKind { got, .. }) if got == "Secret")
        );
        assert!(kind(r#"{"kind":5}"#).is_err());
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        for json in
            ["", "[]", "3", "{", "{}}", r#"{"a"}"#, r#"{"a":}"#, r#"{"a":[}"#, r#"{"a":"x}"#, r#"{"a":1,}"#, "{} x"]
        {
            assert!(cut(Raw::new(json.as_bytes())).is_err(), "{json}");
        }
        assert!(matches!(cut(Raw::new(b"{\"a\":\"\xff\"}")), Err(DecodeError::NotUtf8)));
        let deep = |depth: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
        assert!(cut(Raw::new(deep(126).as_bytes())).is_ok() && cut(Raw::new(deep(100_000).as_bytes())).is_err());
    }

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            r#"[a-z"\\{}\[\],: \n]{0,12}"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            let key = prop_oneof![Just("managedFields".to_owned()), Just("metadata".to_owned()), r#"[a-z"\\{}]{0,6}"#];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(key, inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn an_object_is_the_same_without_its_managed_fields(metadata in tree(), rest in tree(), managed in tree(), pretty: bool) {
            let mut object = json!({"aaa": rest, "metadata": metadata, "zzz": rest});
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.insert("managedFields".to_owned(), managed);
            }
            let text = if pretty { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) };
            check(&text.unwrap());
        }

        #[test]
        fn garbage_is_an_error_or_an_object_and_never_a_panic(bytes in prop::collection::vec(prop::sample::select(&br#"{}[]",:\ metadata1n"#[..]), 0..60)) {
            check(std::str::from_utf8(&bytes).unwrap());
        }

        #[test]
        fn a_byte_that_is_another_one_is_noticed_where_it_makes_a_difference(rest in tree(), at: prop::sample::Index, byte in 0_u8..128) {
            let object = json!({"kind": "K", "metadata": {"name": "a", "managedFields": [1]}, "rest": rest});
            let mut bytes = serde_json::to_vec(&object).unwrap();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            check(std::str::from_utf8(&bytes).unwrap());
        }
    }
}
