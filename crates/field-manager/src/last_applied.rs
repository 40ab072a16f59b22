//! Migration from kubectl's client-side apply: the server may take over the fields in the last-applied annotation.

use serde_json::{Map, Value};

use super::check::{Duplicates, check};
use super::compare::compare;
use super::extract::fields;
use super::schema::FieldSchema;
use super::set::FieldSet;

/// The manager whose annotation is read and renewed.
pub(super) const KUBECTL: &str = "kubectl";

/// kubectl's last-applied annotation.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The maximum size of all annotations of an object, in bytes.
const MOST_ANNOTATIONS: usize = 256 * 1024;

/// Returns the fields that kubectl applied and that are unchanged, or `None` if the annotation cannot be used.
pub(super) fn fields_of<'s, S: FieldSchema<'s>>(schema: S, api_version: &str, live: &Value) -> Option<FieldSet> {
    let text = annotations(live)?.get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())?;
    check(schema, live, Duplicates::Refused).ok()?;
    let applied: Value = serde_json::from_str(text).ok()?;
    applied.get("kind").and_then(Value::as_str).filter(|kind| !kind.is_empty())?;
    applied.get("apiVersion").filter(|version| *version == api_version)?;
    check(schema, &applied, Duplicates::Refused).ok()?;
    let different = compare(schema, &applied, live);
    let kept = fields(schema, &applied).difference(&different.modified);
    Some(kept.difference(&different.added).difference(&different.removed))
}

/// Updates the annotation, if the object has it.
pub(super) fn renew(object: &mut Value, patch: &Value) {
    let has_text = |text: &Value| text.as_str().is_some_and(|text| !text.is_empty());
    if !annotations(object).and_then(|annotations| annotations.get(ANNOTATION)).is_some_and(has_text) {
        return;
    }
    let text = format!("{}\n", without_annotation(patch));
    let annotations = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
    let Some(annotations) = annotations.and_then(Value::as_object_mut) else { return };
    annotations.insert(ANNOTATION.into(), Value::from(text));
    nulls_to_texts(annotations);
    if size(annotations) > MOST_ANNOTATIONS {
        annotations.remove(ANNOTATION);
    }
}

/// Replaces null annotations with empty strings, as kube-apiserver does.
fn nulls_to_texts(annotations: &mut Map<String, Value>) {
    annotations.values_mut().filter(|value| value.is_null()).for_each(|value| *value = Value::from(""));
}

fn size(annotations: &Map<String, Value>) -> usize {
    annotations.iter().map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum()
}

/// Returns the annotations of an object, or `None` if one of them is not a string.
fn annotations(object: &Value) -> Option<&Map<String, Value>> {
    let annotations = object.get("metadata")?.get("annotations")?.as_object()?;
    annotations.values().all(|value| value.is_string() || value.is_null()).then_some(annotations)
}

fn without_annotation(patch: &Value) -> Value {
    let mut patch = patch.clone();
    if let Some(metadata) = patch.get_mut("metadata").and_then(Value::as_object_mut) {
        match metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            Some(annotations) => {
                annotations.remove(ANNOTATION);
                nulls_to_texts(annotations);
            }
            None => {
                metadata.remove("annotations");
            }
        }
    }
    patch
}
