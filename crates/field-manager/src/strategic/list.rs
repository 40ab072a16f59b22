//! Merges the lists of a strategic merge patch.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::Value;

use super::super::schema::{FieldSchema, PatchRule};
use super::order::{index_of, kind_of_items, normalize};
use super::{
    DIRECTIVE, JsonMembers, StrategicMergeError, merge_map, no_merge_key, unfit, unknown_directive, wrong_type,
};

/// The type of the items of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    Map,
    Scalar,
}

/// Returns the lookup key of a value: its JSON text, in which `1`, `1.0` and `"1"` differ.
pub(super) fn lookup(value: &Value) -> String {
    value.to_string()
}

/// Merges the items of a patch into a list.
pub(super) fn merge<'s, S: FieldSchema<'s>>(
    original: Vec<Value>,
    patch: Vec<Value>,
    items: S,
    rule: PatchRule<'_>,
) -> Result<Vec<Value>, StrategicMergeError> {
    merge_with_order(original, patch, items, rule).map(|(merged, _)| merged)
}

/// Returns the merged list, and the resulting order of the live list.
pub(super) fn merge_with_order<'s, S: FieldSchema<'s>>(
    original: Vec<Value>,
    patch: Vec<Value>,
    items: S,
    rule: PatchRule<'_>,
) -> Result<(Vec<Value>, Vec<Value>), StrategicMergeError> {
    if original.is_empty() && patch.is_empty() {
        return Ok((original, Vec::new()));
    }
    match kind_of_items(&original, &patch)? {
        ItemKind::Scalar => merge_scalars(original, patch, rule.merge_key),
        ItemKind::Map => merge_maps(original, patch, items, rule.merge_key),
    }
}

/// Removes items from a list of scalars.
pub(super) fn delete<'s, S: FieldSchema<'s>>(
    original: Vec<Value>,
    deleted: Vec<Value>,
    items: S,
    rule: PatchRule<'_>,
) -> Result<Vec<Value>, StrategicMergeError> {
    if original.is_empty() && deleted.is_empty() {
        return Ok(original);
    }
    if kind_of_items(&original, &deleted)? == ItemKind::Map {
        return merge(original, deleted, items, rule);
    }
    let deleted: HashSet<String> = deleted.iter().map(lookup).collect();
    Ok(original.into_iter().filter(|item| !deleted.contains(&lookup(item))).collect())
}

fn merge_scalars(
    original: Vec<Value>,
    patch: Vec<Value>,
    merge_key: Option<&str>,
) -> Result<(Vec<Value>, Vec<Value>), StrategicMergeError> {
    let merged = unique(original.iter().chain(&patch).cloned().collect());
    if let (Some(_), Some(item)) = (merge_key, merged.first()) {
        return Err(wrong_type("map[string]interface {}", item));
    }
    let (of_patch, of_server) = partition(merged, &patch, None)?;
    let merged = normalize(of_patch, of_server, &patch, &original, None)?;
    Ok((merged, original))
}

/// Returns the items without duplicates. The last item replaces a removed one, as in kube-apiserver.
fn unique(items: Vec<Value>) -> Vec<Value> {
    let texts: Vec<String> = items.iter().map(lookup).collect();
    let mut places: HashMap<&str, BTreeSet<usize>> = HashMap::new();
    for (place, text) in texts.iter().enumerate() {
        places.entry(text).or_default().insert(place);
    }
    let mut current: Vec<usize> = (0..items.len()).collect();
    let mut at = 0;
    while at < current.len() {
        let Some(text) = current.get(at).and_then(|item| texts.get(*item)) else { break };
        while let Some(place) = places.get(text.as_str()).and_then(|places| places.range(at + 1..).next().copied()) {
            drop_place(&mut current, &mut places, &texts, place);
        }
        at += 1;
    }
    current.into_iter().filter_map(|item| items.get(item).cloned()).collect()
}

fn drop_place<'t>(
    current: &mut Vec<usize>,
    places: &mut HashMap<&'t str, BTreeSet<usize>>,
    texts: &'t [String],
    place: usize,
) {
    let text_at = |current: &[usize], place: usize| current.get(place).and_then(|item| texts.get(*item));
    let last = current.len().saturating_sub(1);
    for gone in [place, last] {
        if let Some(places) = text_at(current, gone).and_then(|text| places.get_mut(text.as_str())) {
            places.remove(&gone);
        }
    }
    current.swap_remove(place);
    if let Some(text) = text_at(current, place) {
        places.entry(text).or_default().insert(place);
    }
}

fn merge_maps<'s, S: FieldSchema<'s>>(
    original: Vec<Value>,
    patch: Vec<Value>,
    items: S,
    merge_key: Option<&str>,
) -> Result<(Vec<Value>, Vec<Value>), StrategicMergeError> {
    let Some(key) = merge_key else {
        return Err(unfit("cannot merge lists without merge key for struct"));
    };
    let length = original.len();
    let directed = follow_directives(original, patch, key)?;
    let keys = |list: &[Value]| list.iter().map(|item| key_only(item, key)).collect::<Vec<_>>();
    let known = keys(&directed.original);
    let merged = merge_items(directed.original, &directed.patch, key, items)?;
    // Added items replace deleted ones.
    let server_order = keys(merged.get(..length.min(merged.len())).unwrap_or_default());
    let (of_patch, of_server) = partition(merged, &directed.patch, Some(key))?;
    let merged = normalize(of_patch, of_server, &directed.patch, &known, Some(key))?;
    Ok((merged, server_order))
}

/// Returns an item with only its merge key, which is enough for the order.
fn key_only(item: &Value, key: &str) -> Value {
    let value = item.get(key).cloned();
    Value::Object(value.into_iter().map(|value| (key.to_owned(), value)).collect())
}

struct Directed {
    original: Vec<Value>,
    patch: Vec<Value>,
}

/// Applies the items with a directive, and removes them from the patch.
fn follow_directives(original: Vec<Value>, patch: Vec<Value>, key: &str) -> Result<Directed, StrategicMergeError> {
    let mut rest = Vec::with_capacity(patch.len());
    let mut deleted = HashSet::new();
    let mut replace = false;
    for item in patch {
        let Some((directive, members)) = item.get(DIRECTIVE).zip(item.as_object()) else {
            rest.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let value = members.get(key).ok_or_else(|| no_merge_key(key))?;
                deleted.insert(lookup(value));
            }
            Some("replace") => replace = true,
            Some("merge") => return Err(unfit("merging lists cannot yet be specified in the patch")),
            _ => return Err(unknown_directive(directive)),
        }
    }
    if replace {
        return Ok(Directed { original: rest, patch: Vec::new() });
    }
    let is_deleted = |item: &Value| item.get(key).is_some_and(|value| deleted.contains(&lookup(value)));
    let original = original.into_iter().filter(|item| !is_deleted(item)).collect();
    Ok(Directed { original, patch: rest })
}

fn merge_items<'s, S: FieldSchema<'s>>(
    mut original: Vec<Value>,
    patch: &[Value],
    key: &str,
    schema: S,
) -> Result<Vec<Value>, StrategicMergeError> {
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for (place, item) in original.iter().enumerate() {
        if let Some(value) = item.get(key) {
            known.entry(lookup(value)).or_insert(place);
        }
    }
    for item in patch {
        let Value::Object(members) = item else { return Err(wrong_type("map[string]interface {}", item)) };
        let value = members.get(key).ok_or_else(|| no_merge_key(key))?;
        let place = *known.entry(lookup(value)).or_insert(original.len());
        match original.get_mut(place) {
            Some(old) => {
                let old_members = old.as_object_mut().map(std::mem::take).unwrap_or_default();
                *old = Value::Object(merge_map(old_members, members.clone(), schema)?);
            }
            None => original.push(item.clone()),
        }
    }
    Ok(original)
}

/// Splits the items into those that are in another list and those that are not.
pub(super) fn partition(
    items: Vec<Value>,
    by: &[Value],
    merge_key: Option<&str>,
) -> Result<(Vec<Value>, Vec<Value>), StrategicMergeError> {
    let Some(key) = merge_key else {
        let by: HashSet<String> = by.iter().map(lookup).collect();
        return Ok(items.into_iter().partition(|item| by.contains(&lookup(item))));
    };
    let known = index_of(by, Some(key));
    let stranger = by.iter().position(|item| !item.is_object());
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for item in items {
        let members = item.as_object().ok_or_else(|| wrong_type("map[string]interface {}", &item))?;
        let value = members.get(key).ok_or_else(|| no_merge_key(key))?;
        match (known.get(&lookup(value)), stranger) {
            (place, Some(stranger)) if place.is_none_or(|place| stranger < *place) => {
                return Err(unfit(format!("value for key {stranger} is not a map")));
            }
            (Some(_), _) => inside.push(item),
            (None, _) => outside.push(item),
        }
    }
    Ok((inside, outside))
}

/// Returns the members of an item, which must be a map with the merge key.
pub(super) fn keyed_members<'v>(item: &'v Value, key: &str) -> Result<&'v JsonMembers, StrategicMergeError> {
    let members = item.as_object().ok_or_else(|| wrong_type("map[string]interface {}", item))?;
    if members.contains_key(key) { Ok(members) } else { Err(no_merge_key(key)) }
}
