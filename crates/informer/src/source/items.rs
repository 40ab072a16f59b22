//! Splits the body of a list into its items as it arrives, so that the body is never held as a whole.

use bytes::{Buf as _, Bytes, BytesMut};
use serde::de::{DeserializeOwned, IgnoredAny};

use super::lines::{LinePiece, beginning, most_passed_over, whole};
use super::{ListEnd, SourceError};
use crate::object::ResourceVersion;
use crate::representation::{Passing, is_blank, without_values};

/// Collects bytes and returns the items of a list, and at its end the metadata of the list.
///
/// The state lasts across chunks, so each byte is scanned once however the body is split. An item inside one chunk is a
/// slice of it; only an item that spans chunks is copied. The splitter holds at most one unfinished item of at most the
/// limit. It keeps only the beginning of a larger item, and skips the rest.
pub(crate) struct ItemSplitter {
    limit: usize,
    /// The beginning of a value whose end has not arrived yet.
    partial: BytesMut,
    /// How many bytes of that value were skipped because it is too large.
    passed_over: usize,
    /// Bytes that arrived and are not scanned yet.
    chunk: Bytes,
    place: ItemPlace,
    /// The key of the current value, if the position is inside the list object.
    key: String,
    envelope: Envelope,
}

/// The expected kind of a list.
#[derive(Debug, Clone)]
pub(crate) struct ExpectedKind {
    pub(crate) list: String,
    /// True if any other kind is an error. False for custom resources, whose lists may have any kind.
    pub(crate) strict: bool,
}

impl ExpectedKind {
    fn fits(&self, kind: &str) -> bool {
        kind.is_empty() || kind == self.list || (!self.strict && kind != "PartialObjectMetadataList")
    }
}

/// The position of the scanner in the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemPlace {
    /// Before the opening brace.
    Start,
    /// After the opening brace.
    FirstKey,
    /// After a comma between fields.
    Key,
    AfterKey,
    /// After the colon.
    Field,
    AfterField,
    /// After the opening bracket of the items.
    FirstItem,
    /// After a comma between items.
    Item,
    AfterItem,
    /// In a value that is kept until its end.
    Value {
        of: ItemRole,
        passing: Passing,
    },
    /// After the closing brace.
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemRole {
    Key,
    Field,
    Item,
}

/// The metadata of a list.
#[derive(Debug, Default)]
struct Envelope {
    kind: String,
    metadata: Option<ListMetadata>,
    has_items: bool,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListMetadata {
    resource_version: Option<String>,
    #[serde(rename = "continue")]
    continue_token: Option<String>,
    remaining_item_count: Option<i64>,
}

impl ItemSplitter {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            partial: BytesMut::new(),
            passed_over: 0,
            chunk: Bytes::new(),
            place: ItemPlace::Start,
            key: String::new(),
            envelope: Envelope::default(),
        }
    }

    /// Takes the next chunk of the body. All items of the chunk before must have been taken out.
    pub(crate) fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty(), "items are taken out before more bytes come");
        self.chunk = chunk;
    }

    /// Returns the next item, or `None` until more bytes arrive.
    ///
    /// # Errors
    ///
    /// [`SourceError::NotAList`] if the body is not a list, [`SourceError::TooLarge`] if an item does not end.
    pub(crate) fn next(&mut self) -> Result<Option<LinePiece>, SourceError> {
        loop {
            if let ItemPlace::Value { of, passing } = self.place {
                let Some(value) = self.rest_of_value(of, passing)? else { return Ok(None) };
                match of {
                    ItemRole::Item => {
                        self.place = ItemPlace::AfterItem;
                        return Ok(Some(value));
                    }
                    ItemRole::Key => {
                        self.key = serde_json::from_slice(value.bytes()).map_err(|error| not_a_list(&error))?;
                        self.place = ItemPlace::AfterKey;
                    }
                    ItemRole::Field => {
                        self.store_field(value.bytes())?;
                        self.place = ItemPlace::AfterField;
                    }
                }
                continue;
            }
            let blank = self.chunk.iter().take_while(|byte| is_blank(**byte)).count();
            self.chunk.advance(blank);
            let Some(&byte) = self.chunk.first() else { return Ok(None) };
            self.step(byte)?;
        }
    }

    /// Returns the metadata of the list, once the whole body has arrived.
    ///
    /// # Errors
    ///
    /// [`SourceError::CutOff`] if the body ended early; [`SourceError::Table`], [`SourceError::WrongKind`] or
    /// [`SourceError::NotAList`] if it is not the expected list.
    pub(crate) fn finish(self, expected: &ExpectedKind) -> Result<ListEnd, SourceError> {
        if self.place != ItemPlace::Done {
            return Err(SourceError::CutOff);
        }
        if self.envelope.kind == "Table" {
            return Err(SourceError::Table);
        }
        if !expected.fits(&self.envelope.kind) {
            return Err(SourceError::WrongKind { expected: expected.list.clone(), got: self.envelope.kind });
        }
        if !self.envelope.has_items {
            return Err(SourceError::NotAList(format!("it is of kind {:?} and has no items", self.envelope.kind)));
        }
        let metadata = self.envelope.metadata.unwrap_or_default();
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        Ok(ListEnd {
            version: filled(metadata.resource_version).map(ResourceVersion::from),
            continue_token: filled(metadata.continue_token),
            remaining: metadata.remaining_item_count.and_then(|count| u64::try_from(count).ok()),
        })
    }

    /// Scans one byte between values.
    fn step(&mut self, byte: u8) -> Result<(), SourceError> {
        let value = |of| ItemPlace::Value { of, passing: Passing::from(byte) };
        let (place, consumed) = match (self.place, byte) {
            (ItemPlace::Start, b'{') => (ItemPlace::FirstKey, true),
            (ItemPlace::FirstKey | ItemPlace::Key, b'"') => (value(ItemRole::Key), false),
            (ItemPlace::FirstKey | ItemPlace::AfterField, b'}') => (ItemPlace::Done, true),
            (ItemPlace::AfterField, b',') => (ItemPlace::Key, true),
            (ItemPlace::AfterKey, b':') => (ItemPlace::Field, true),
            (ItemPlace::Field, b'[') if self.key == "items" => {
                self.mark_items_found()?;
                (ItemPlace::FirstItem, true)
            }
            (ItemPlace::Field, _) => (value(ItemRole::Field), false),
            (ItemPlace::FirstItem | ItemPlace::Item, b'{') => (value(ItemRole::Item), false),
            (ItemPlace::FirstItem | ItemPlace::AfterItem, b']') => (ItemPlace::AfterField, true),
            (ItemPlace::AfterItem, b',') => (ItemPlace::Item, true),
            _ => return Err(SourceError::NotAList(format!("unexpected {:?}", char::from(byte)))),
        };
        self.place = place;
        if consumed {
            self.chunk.advance(1);
        }
        Ok(())
    }

    /// Returns the current value, once its end has arrived.
    fn rest_of_value(&mut self, of: ItemRole, mut passing: Passing) -> Result<Option<LinePiece>, SourceError> {
        let end = passing.end_in(&self.chunk);
        let rest = self.chunk.split_to(end.unwrap_or(self.chunk.len()));
        if self.partial.len() + rest.len() > self.limit || self.passed_over > 0 {
            if of != ItemRole::Item || self.passed_over.saturating_add(rest.len()) > most_passed_over(self.limit) {
                return Err(SourceError::TooLarge { limit: self.limit });
            }
            let room = beginning(self.limit).saturating_sub(self.partial.len()).min(rest.len());
            self.partial.extend_from_slice(&rest[..room]);
            self.passed_over += rest.len();
            self.place = ItemPlace::Value { of, passing };
            return Ok(end.map(|_| {
                self.passed_over = 0;
                LinePiece::TooLarge { beginning: std::mem::take(&mut self.partial).freeze() }
            }));
        }
        if end.is_none() {
            self.partial.extend_from_slice(&rest);
            self.place = ItemPlace::Value { of, passing };
            return Ok(None);
        }
        if self.partial.is_empty() {
            return Ok(Some(LinePiece::Whole(rest)));
        }
        self.partial.extend_from_slice(&rest);
        Ok(Some(LinePiece::Whole(whole(&mut self.partial))))
    }

    /// Stores the current field of the list object. Unknown fields are only checked for valid JSON.
    fn store_field(&mut self, value: &[u8]) -> Result<(), SourceError> {
        match self.key.as_str() {
            "kind" => self.envelope.kind = read::<Option<String>>(value)?.unwrap_or_default(),
            "metadata" => self.envelope.metadata = read(value)?,
            // An empty list may have `null` as its items.
            "items" if value == b"null" => self.mark_items_found()?,
            "items" => return Err(SourceError::NotAList("its items are not an array".to_owned())),
            _ => {
                let _: IgnoredAny = serde_json::from_slice(value).map_err(|error| not_a_list(&error))?;
            }
        }
        Ok(())
    }

    /// Records that the list has `items`. Fails if it had them before.
    fn mark_items_found(&mut self) -> Result<(), SourceError> {
        if std::mem::replace(&mut self.envelope.has_items, true) {
            return Err(SourceError::NotAList("it has items twice".to_owned()));
        }
        Ok(())
    }
}

/// Parses a value. If a key occurs twice, the last one counts, as in all JSON that this crate reads.
fn read<T: DeserializeOwned>(value: &[u8]) -> Result<T, SourceError> {
    let properly = |_| serde_json::from_value(serde_json::from_slice(value)?);
    serde_json::from_slice(value).or_else(properly).map_err(|error| not_a_list(&error))
}

fn not_a_list(error: &serde_json::Error) -> SourceError {
    SourceError::NotAList(without_values(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn split(body: &[u8], chunk: usize) -> Result<(Vec<Value>, ListEnd), SourceError> {
        let (mut splitter, mut items) = (ItemSplitter::new(1000), Vec::new());
        for chunk in body.chunks(chunk.max(1)) {
            splitter.push(Bytes::copy_from_slice(chunk));
            while let Some(item) = splitter.next()? {
                items.push(match item {
                    LinePiece::Whole(item) => serde_json::from_slice(&item).unwrap_or(Value::Null),
                    LinePiece::TooLarge { beginning } => json!({"beginning of": beginning.len()}),
                });
            }
        }
        Ok((items, splitter.finish(&ExpectedKind { list: "PodList".to_owned(), strict: false })?))
    }

    #[test]
    fn a_list_of_a_known_kind_refuses_another_kind() {
        let finish = |kind: &str, strict| {
            let mut splitter = ItemSplitter::new(1000);
            splitter.push(Bytes::from(format!(r#"{{"kind":"{kind}","items":[]}}"#)));
            assert!(splitter.next().unwrap().is_none());
            splitter.finish(&ExpectedKind { list: "PodList".to_owned(), strict })
        };
        assert!(finish("PodList", true).is_ok());
        assert!(matches!(finish("SecretList", true), Err(SourceError::WrongKind { .. })));
        assert!(finish("Pods", false).is_ok());
        assert!(matches!(finish("PartialObjectMetadataList", false), Err(SourceError::WrongKind { .. })));
    }

    #[test]
    fn the_last_duplicate_key_counts_and_a_kind_may_be_null() {
        let body = br#"{"kind":null,"metadata":{"resourceVersion":"1","resourceVersion":"2"},"items":[]}"#;
        assert_eq!(split(body, 10).unwrap(), (Vec::new(), end("2")));
    }

    fn end(version: &str) -> ListEnd {
        ListEnd { version: Some(version.into()), ..ListEnd::default() }
    }

    #[test]
    fn metadata_may_stand_before_or_after_the_items() {
        let item = json!({"metadata": {"name": "a"}});
        let before = br#"{"kind":"PodList","metadata":{"resourceVersion":"7","remainingItemCount":3},"items":[{"metadata":{"name":"a"}}]}"#;
        assert_eq!(split(before, 7).unwrap(), (vec![item.clone()], ListEnd { remaining: Some(3), ..end("7") }));
        let behind = br#" { "apiVersion" : "v1", "items" : [ {"metadata":{"name":"a"}} ] , "kind":"WidgetList", "metadata":{"continue":"abc","resourceVersion":"7"} } "#;
        assert_eq!(split(behind, 3).unwrap(), (vec![item], ListEnd { continue_token: Some("abc".into()), ..end("7") }));
    }

    #[test]
    fn a_body_that_is_not_a_list_is_an_error_that_says_why() {
        let error = |body: &str| split(body.as_bytes(), 5).unwrap_err();
        assert!(matches!(error(r#"{"kind":"Table","rows":[{}],"metadata":{}}"#), SourceError::Table));
        assert!(matches!(error("<html></html>"), SourceError::NotAList(_)));
        for no_json in [
            r#"{"items":[]"kind":""}"#,
            r#"{"items":[{}{}]}"#,
            r#"{"items":[{},]}"#,
            r#"{"items"::[]}"#,
            r#"{"a":x,"items":[]}"#,
        ] {
            assert!(matches!(error(no_json), SourceError::NotAList(_)), "{no_json}");
        }
        assert!(matches!(error(r#"{"items":[],"items":[]}"#), SourceError::NotAList(_)));
        assert!(matches!(error(r#"{"kind":"Pod","metadata":{}}"#), SourceError::NotAList(_)));
        assert!(matches!(error(r#"{"items":{}}"#), SourceError::NotAList(_)));
        assert!(matches!(error(r#"{"items":[3]}"#), SourceError::NotAList(_)));
        assert!(matches!(error(r#"{"items":[{"a":1}"#), SourceError::CutOff));
        assert!(matches!(error(""), SourceError::CutOff));
        assert!(matches!(
            error(&format!(r#"{{"kind":"{}","items":[]}}"#, "x".repeat(1000))),
            SourceError::TooLarge { .. }
        ));
        assert_eq!(split(br#"{"items":null,"metadata":{"resourceVersion":"7"}}"#, 5).unwrap(), (vec![], end("7")));
    }

    #[test]
    fn an_item_above_the_limit_is_skipped_and_the_others_are_returned() {
        let huge = format!(r#"{{"a":"{}"}}"#, "x".repeat(5000));
        let body = format!(r#"{{"items":[{{"b":1}},{huge},{{"c":2}}],"metadata":{{"resourceVersion":"7"}}}}"#);
        for chunk in [1, 7, 64, 999, 1000, 1001, 4000, 10_000] {
            let (items, ended) = split(body.as_bytes(), chunk).unwrap();
            assert_eq!(items[0], json!({"b": 1}), "{chunk}");
            assert_eq!(items[1], json!({"beginning of": 1000}), "{chunk}");
            assert_eq!((&items[2], ended), (&json!({"c": 2}), end("7")), "{chunk}");
        }
    }

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            r#"[a-z"\\{}\[\],: \n]{0,12}"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(r#"[a-z"\\{}]{0,6}"#, inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn items_do_not_depend_on_how_the_body_is_split_into_chunks(values in prop::collection::vec(tree(), 0..6), other in tree(), chunk in 1usize..64, pretty: bool) {
            let items: Vec<Value> = values.into_iter().map(|value| json!({"v": value})).collect();
            let body = json!({"aaa": other, "items": items, "metadata": {"resourceVersion": "7"}, "zzz": other});
            let body = if pretty { serde_json::to_vec_pretty(&body) } else { serde_json::to_vec(&body) }.unwrap();
            prop_assume!(body.len() < 1000);
            prop_assert_eq!(split(&body, chunk).unwrap(), (items, end("7")));
        }

        #[test]
        fn garbage_is_an_error_or_a_list_and_never_a_panic(body in prop::collection::vec(prop::sample::select(&br#"{}[]",:\ items1n"#[..]), 0..60), chunk in 1usize..9) {
            let _ = split(&body, chunk);
        }
    }
}
