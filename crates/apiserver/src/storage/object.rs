//! A stored object: encoded once, shared as bytes.

use bytes::{BufMut, Bytes, BytesMut};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::kinds::Resource;
use crate::storage::key::StoreKey;

/// The type of a watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteKind {
    Added,
    Modified,
    Deleted,
}

impl WriteKind {
    /// Returns the start of a watch line of this change.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Added => r#"{"type":"ADDED","object":"#,
            Self::Modified => r#"{"type":"MODIFIED","object":"#,
            Self::Deleted => r#"{"type":"DELETED","object":"#,
        }
    }
}

/// The end of a watch line.
pub(crate) const LINE_END: &str = "}\n";

/// The requested part of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Form {
    #[default]
    Full,
    /// `PartialObjectMetadata`: only the metadata.
    Metadata,
}

const METADATA_PREFIX: &str = r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":"#;

/// An object in several versions, by version. A version is missing if its conversion failed when the object was written.
pub(crate) type Variants = Mutex<BTreeMap<String, Arc<Value>>>;

/// An object of a collection. Its bytes are the watch line of its write; everything else is a slice of them.
#[derive(Debug)]
pub(crate) struct StoredObject {
    pub(crate) key: StoreKey,
    /// The revision of its last write.
    pub(crate) revision: u64,
    uid: Box<str>,
    /// Whether it is being deleted.
    marked: bool,
    /// Whether its deletion has a grace period.
    in_grace: bool,
    /// The uids of its owners.
    owners: Box<[Box<str>]>,
    /// Labels in order of their keys.
    labels: Box<[(Box<str>, Box<str>)]>,
    /// Values of the resource's selectable fields, in the order the resource lists them.
    pub(crate) fields: Box<[Box<str>]>,
    /// The whole watch line: `{"type":"ADDED","object":{…}}` and a newline.
    line: Bytes,
    /// The object in other versions, if a webhook converted it. Only their labels and annotations may differ in metadata.
    variants: Option<Arc<Variants>>,
    object: Range<usize>,
    metadata: Range<usize>,
    /// The digits of `metadata.resourceVersion`.
    version: Range<usize>,
}

impl StoredObject {
    /// Returns the object in the version of another resource.
    pub(crate) fn shown_by(self: &Arc<Self>, resource: &Resource) -> Arc<Self> {
        if resource.rules.view.is_none() {
            return self.clone();
        }
        let shown = self.value_as(resource);
        let draft = Draft::lay_out(resource, self.key.clone(), &shown, WriteKind::Modified, self.revision);
        Arc::new(draft.at(self.revision, WriteKind::Modified))
    }

    /// Returns a draft of this object with other metadata. The rest is copied, not decoded.
    pub(crate) fn with_metadata(&self, metadata: &Value) -> Draft {
        let nothing = Map::new();
        let members = metadata.as_object().unwrap_or(&nothing);
        let prefix = WriteKind::Modified.prefix();
        let mut line = Vec::with_capacity(self.line.len() + 1024);
        line.extend_from_slice(prefix.as_bytes());
        line.extend_from_slice(&self.line[self.object.start..self.metadata.start]);
        let (metadata, version) = write_metadata(&mut line, members, self.revision);
        line.extend_from_slice(&self.line[self.metadata.end..]);
        let object = prefix.len()..line.len() - LINE_END.len();
        let ranges = [object, metadata, version];
        let draft = Draft::new(self.key.clone(), members, self.fields.clone(), line, ranges, WriteKind::Modified);
        draft.with_variants(self.variants.clone())
    }

    /// Returns the watch line of the last write: `ADDED` if it created the object, otherwise `MODIFIED`.
    pub(crate) fn line(&self) -> Bytes {
        self.line.clone()
    }

    /// Returns the encoded size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.line.len()
    }

    /// Returns the object as a value, in the version of `resource`. Metadata includes its `resourceVersion`.
    pub(crate) fn value_as(&self, resource: &Resource) -> Value {
        match self.variants.as_ref().and_then(|variants| variants.lock().get(&resource.version).cloned()) {
            Some(variant) => {
                let mut shown = Value::clone(&variant);
                shown["metadata"] = with_labels_of(&self.metadata(), &variant["metadata"]);
                shown
            }
            None => resource.shown(self.value()),
        }
    }

    /// Returns the versions that a webhook converted, unless it has converted the version of `resource`.
    pub(crate) fn unconverted(&self, resource: &Resource) -> Option<&Variants> {
        resource.rules.view.as_ref()?;
        self.variants.as_deref().filter(|variants| !variants.lock().contains_key(&resource.version))
    }

    /// Returns the object as a value, as stored. Metadata includes its `resourceVersion`.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_slice(&self.line[self.object.clone()]).unwrap_or(Value::Null)
    }

    /// Returns the metadata as a value, without decoding the rest.
    pub(crate) fn metadata(&self) -> Value {
        serde_json::from_slice(&self.line[self.metadata.clone()]).unwrap_or(Value::Null)
    }

    /// Returns an object with only the metadata.
    pub(crate) fn identity(&self) -> Value {
        json!({"metadata": self.metadata()})
    }

    pub(crate) fn uid(&self) -> &str {
        &self.uid
    }

    /// Returns whether it is being deleted.
    pub(crate) fn is_marked(&self) -> bool {
        self.marked
    }

    /// Returns whether only its finalizers keep it.
    pub(crate) fn is_going(&self) -> bool {
        self.marked && !self.in_grace
    }

    /// Returns the uids of its owners.
    pub(crate) fn owners(&self) -> impl Iterator<Item = &str> {
        self.owners.iter().map(|owner| &**owner)
    }

    /// Returns the value of a label.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(candidate, _)| (**candidate).cmp(key)).ok()?;
        Some(&self.labels[at].1)
    }

    /// Appends the object in this form.
    pub(crate) fn write(&self, form: Form, out: &mut BytesMut) {
        let (prefix, shown, suffix) = self.parts(form);
        out.put_slice(prefix.as_bytes());
        out.put_slice(&self.line[shown]);
        out.put_slice(suffix.as_bytes());
    }

    /// Returns the prefix of a form, the slice of the line, and the suffix.
    fn parts(&self, form: Form) -> (&'static str, Range<usize>, &'static str) {
        match form {
            Form::Full => ("", self.object.clone(), ""),
            Form::Metadata => (METADATA_PREFIX, self.metadata.clone(), "}"),
        }
    }

    /// Appends the object as an item of a typed list, without kind and apiVersion.
    pub(crate) fn write_untyped_item(&self, out: &mut BytesMut) {
        const MEMBER: usize = r#""metadata":"#.len();
        out.put_u8(b'{');
        out.put_slice(&self.line[self.metadata.start - MEMBER..self.object.end]);
    }

    /// Appends a watch line of this state with another change, form and version.
    pub(crate) fn write_line(&self, change: WriteKind, form: Form, revision: u64, out: &mut BytesMut) {
        out.put_slice(change.prefix().as_bytes());
        let (prefix, shown, suffix) = self.parts(form);
        out.put_slice(prefix.as_bytes());
        out.put_slice(&self.line[shown.start..self.version.start]);
        out.put_slice(revision.to_string().as_bytes());
        out.put_slice(&self.line[self.version.end..shown.end]);
        out.put_slice(suffix.as_bytes());
        out.put_slice(LINE_END.as_bytes());
    }
}

/// Returns `metadata` with the labels and annotations of `labelled`.
pub(crate) fn with_labels_of(metadata: &Value, labelled: &Value) -> Value {
    let mut metadata = metadata.clone();
    let Some(members) = metadata.as_object_mut() else { return metadata };
    for member in ["labels", "annotations"] {
        match labelled.get(member).filter(|value| value.is_object()) {
            Some(value) => members.insert(member.to_owned(), value.clone()),
            None => members.remove(member),
        };
    }
    metadata
}

/// An encoded object without a revision.
///
/// Encoding a large object takes long, so it is done before the state is locked. The revision is filled in under the
/// lock.
#[derive(Debug)]
pub(crate) struct Draft {
    /// The object. Its line is still empty.
    stored: StoredObject,
    line: Vec<u8>,
    change: WriteKind,
}

impl Draft {
    /// Encodes an object. `expected` is close to its future revision: if both have the same number of digits, no bytes
    /// move.
    pub(crate) fn encode(resource: &Resource, key: StoreKey, object: &Value, change: WriteKind, expected: u64) -> Self {
        Self::lay_out(resource, key, &resource.stored(object), change, expected)
    }

    fn lay_out(resource: &Resource, key: StoreKey, object: &Value, change: WriteKind, expected: u64) -> Self {
        let mut line = Vec::with_capacity(1024);
        line.extend_from_slice(change.prefix().as_bytes());
        let start = line.len();
        let nothing = Map::new();
        let members = object.as_object().unwrap_or(&nothing);
        let metadata_members = members.get("metadata").and_then(Value::as_object).unwrap_or(&nothing);
        line.push(b'{');
        let first = if resource.rules.custom { ["apiVersion", "kind"] } else { ["kind", "apiVersion"] };
        for name in first {
            write_member(&mut line, name, members.get(name).unwrap_or(&Value::Null));
            line.push(b',');
        }
        line.extend_from_slice(br#""metadata":"#);
        let (metadata, version) = write_metadata(&mut line, metadata_members, expected);
        for (name, value) in members {
            if !matches!(name.as_str(), "kind" | "apiVersion" | "metadata") {
                line.push(b',');
                write_member(&mut line, name, value);
            }
        }
        line.push(b'}');
        let end = line.len();
        line.extend_from_slice(LINE_END.as_bytes());
        let fields = resource.rules.fields.iter().map(|field| field.read(object)).collect();
        Self::new(key, metadata_members, fields, line, [start..end, metadata, version], change)
    }

    fn new(
        key: StoreKey,
        metadata_members: &Map<String, Value>,
        fields: Box<[Box<str>]>,
        mut line: Vec<u8>,
        [object, metadata, version]: [Range<usize>; 3],
        change: WriteKind,
    ) -> Self {
        line.shrink_to_fit();
        let stored = StoredObject {
            key,
            revision: 0,
            uid: metadata_members.get("uid").and_then(Value::as_str).unwrap_or_default().into(),
            marked: metadata_members.contains_key("deletionTimestamp"),
            in_grace: metadata_members.get("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0) != 0,
            owners: owners_of(metadata_members),
            labels: labels_of(metadata_members),
            fields,
            line: Bytes::new(),
            variants: None,
            object,
            metadata,
            version,
        };
        Self { stored, line, change }
    }

    /// Adds the object in other versions.
    pub(crate) fn with_variants(mut self, variants: Option<Arc<Variants>>) -> Self {
        self.stored.variants = variants;
        self
    }

    pub(crate) fn key(&self) -> &StoreKey {
        &self.stored.key
    }

    /// Returns the object as the state after the write with this revision.
    pub(crate) fn at(self, revision: u64, change: WriteKind) -> StoredObject {
        let Self { mut stored, mut line, change: drafted } = self;
        let digits = revision.to_string();
        let (end, grown) = (stored.version.end, stored.version.start + digits.len());
        if grown == end {
            line[stored.version.clone()].copy_from_slice(digits.as_bytes());
        } else {
            line.splice(stored.version.clone(), digits.bytes());
            for range in [&mut stored.object, &mut stored.metadata, &mut stored.version] {
                range.end = range.end + grown - end;
            }
        }
        if change != drafted {
            let (new, old) = (change.prefix(), drafted.prefix().len());
            line.splice(..old, new.bytes());
            for range in [&mut stored.object, &mut stored.metadata, &mut stored.version] {
                *range = range.start + new.len() - old..range.end + new.len() - old;
            }
        }
        StoredObject { revision, line: line.into(), ..stored }
    }
}

/// Members of metadata that come first, in the order of kube-apiserver.
const LEADING: [&str; 4] = ["name", "generateName", "namespace", "uid"];

/// Writes metadata with its version. Returns the ranges of the metadata and of the version's digits.
fn write_metadata(line: &mut Vec<u8>, members: &Map<String, Value>, revision: u64) -> (Range<usize>, Range<usize>) {
    let start = line.len();
    line.push(b'{');
    for name in LEADING {
        if let Some(value) = members.get(name) {
            write_member(line, name, value);
            line.push(b',');
        }
    }
    line.extend_from_slice(br#""resourceVersion":""#);
    let digits = line.len();
    line.extend_from_slice(revision.to_string().as_bytes());
    let version = digits..line.len();
    line.push(b'"');
    for (name, value) in members {
        if !LEADING.contains(&name.as_str()) && name != "resourceVersion" {
            line.push(b',');
            write_member(line, name, value);
        }
    }
    line.push(b'}');
    (start..line.len(), version)
}

fn write_member(line: &mut Vec<u8>, name: &str, value: &impl Serialize) {
    // Writing a `Value` into a `Vec` cannot fail: all keys are strings, and the writer does not fail.
    let _ = serde_json::to_writer(&mut *line, name);
    line.push(b':');
    let _ = serde_json::to_writer(line, value);
}

fn owners_of(metadata: &Map<String, Value>) -> Box<[Box<str>]> {
    let Some(Value::Array(owners)) = metadata.get("ownerReferences") else { return Box::default() };
    owners.iter().filter_map(|owner| owner["uid"].as_str()).map(Into::into).collect()
}

fn labels_of(metadata: &Map<String, Value>) -> Box<[(Box<str>, Box<str>)]> {
    let Some(Value::Object(labels)) = metadata.get("labels") else { return Box::default() };
    let mut labels: Vec<(Box<str>, Box<str>)> =
        labels.iter().map(|(key, value)| (key.as_str().into(), value.as_str().unwrap_or_default().into())).collect();
    labels.sort();
    labels.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Catalog;
    use serde_json::json;

    fn stored() -> StoredObject {
        let catalog = Catalog::built_in();
        let pods = catalog.named("pods").unwrap();
        let object = json!({
            "kind": "Pod", "apiVersion": "v1", "spec": {"nodeName": "n1"},
            "metadata": {"name": "a", "namespace": "web", "labels": {"b": "2", "a": "1"}, "resourceVersion": "3"},
        });
        Draft::encode(pods, StoreKey::new(Some("web"), "a"), &object, WriteKind::Added, 41).at(41, WriteKind::Added)
    }

    #[test]
    fn line_contains_object_and_version() {
        let object = stored();
        let expected = concat!(
            r#"{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"web","#,
            r#""resourceVersion":"41","labels":{"a":"1","b":"2"}},"spec":{"nodeName":"n1"}}}"#,
            "\n"
        );
        assert_eq!(object.line(), expected);
        assert_eq!(object.value()["metadata"]["resourceVersion"], "41");
        assert_eq!(object.metadata()["name"], "a");
        assert_eq!((object.label("b"), object.label("c")), (Some("2"), None));
        assert_eq!(&*object.fields[0], "n1");
    }

    #[test]
    fn draft_accepts_any_revision_and_change() {
        let pods = Catalog::built_in().named("pods").unwrap().clone();
        let object =
            json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a", "labels": {"a": "1"}}, "spec": {}});
        let draft = |change, expected| Draft::encode(&pods, StoreKey::new(None, "a"), &object, change, expected);
        for change in [WriteKind::Added, WriteKind::Modified] {
            for revision in [7, 10, 1000] {
                let direct = draft(change, revision).at(revision, change);
                for (drafted, expected) in
                    [(WriteKind::Added, 9), (WriteKind::Modified, 9), (WriteKind::Added, 123_456)]
                {
                    let stored = draft(drafted, expected).at(revision, change);
                    assert_eq!(stored.line(), direct.line());
                    assert_eq!((stored.value(), stored.metadata()), (direct.value(), direct.metadata()));
                    let (mut one, mut other) = (BytesMut::new(), BytesMut::new());
                    stored.write_line(WriteKind::Deleted, Form::Full, 5, &mut one);
                    direct.write_line(WriteKind::Deleted, Form::Full, 5, &mut other);
                    assert_eq!(one, other);
                }
            }
        }
    }

    #[test]
    fn new_metadata_keeps_the_rest_of_the_object() {
        let metadata = json!({"name": "a", "namespace": "web", "labels": {"c": "3"}, "deletionTimestamp": "now"});
        let changed = stored().with_metadata(&metadata).at(1000, WriteKind::Modified);
        let mut expected = stored().value();
        expected["metadata"] = metadata;
        expected["metadata"]["resourceVersion"] = "1000".into();
        assert_eq!(changed.value(), expected);
        assert_eq!((changed.label("b"), changed.label("c"), changed.is_marked()), (None, Some("3"), true));
        assert!(changed.line().starts_with(br#"{"type":"MODIFIED","object":{"kind":"Pod","#));
    }

    #[test]
    fn deleted_line_shows_version_of_the_delete() {
        let mut out = BytesMut::new();
        stored().write_line(WriteKind::Deleted, Form::Full, 1000, &mut out);
        let line: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(line["type"], "DELETED");
        assert_eq!(line["object"]["metadata"]["resourceVersion"], "1000");
        assert_eq!(line["object"]["spec"]["nodeName"], "n1");
    }

    #[test]
    fn typed_list_item_omits_the_kind() {
        let mut out = BytesMut::new();
        stored().write_untyped_item(&mut out);
        let item: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(item.get("kind"), None);
        assert_eq!(item["metadata"]["name"], "a");
    }

    #[test]
    fn metadata_form_is_a_partial_object() {
        let mut out = BytesMut::new();
        stored().write(Form::Metadata, &mut out);
        let partial: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(partial["kind"], "PartialObjectMetadata");
        assert_eq!(partial["metadata"]["resourceVersion"], "41");
        assert_eq!(partial.get("spec"), None);
    }
}
