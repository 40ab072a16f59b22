//! The order of merged lists: the order in the patch first, then the order of the live list.

use std::collections::HashMap;

use serde_json::Value;

use super::super::atom::type_name;
use super::super::schema::{FieldSchema, PatchStrategy};
use super::list::{ItemKind, keyed_members, lookup, merge_with_order, partition};
use super::{
    DIRECTIVE, ELEMENT_ORDER, JsonMembers, StrategicMergeError, list_member, malformed, unfit, without_directives,
    wrong_type,
};

/// Returns the type of the items of two lists: all of one type, and not lists.
pub(super) fn kind_of_items(left: &[Value], right: &[Value]) -> Result<ItemKind, StrategicMergeError> {
    let mut types = left.iter().chain(right);
    let first = types.next().ok_or_else(|| unfit("no elements in any of the given slices"))?;
    if first.is_array() {
        return Err(StrategicMergeError::Unprocessable("lists of lists are not supported".into()));
    }
    if first.is_null() || types.any(|item| type_name(item) != type_name(first)) {
        return Err(unfit("the elements of the lists are not of one type"));
    }
    Ok(if first.is_object() { ItemKind::Map } else { ItemKind::Scalar })
}

/// Merges the lists for which the patch sets an order, and removes them from the patch.
pub(super) fn merge_ordered_lists<'s, S: FieldSchema<'s>>(
    original: &mut JsonMembers,
    patch: &mut JsonMembers,
    schema: S,
) -> Result<(), StrategicMergeError> {
    let directives: Vec<String> = patch.keys().filter(|name| name.starts_with(ELEMENT_ORDER)).cloned().collect();
    for directive in directives {
        let Some(order) = patch.remove(&directive) else { continue };
        let Value::Array(order) = order else { return Err(wrong_type("[]interface {}", &order)) };
        let name = directive.strip_prefix(ELEMENT_ORDER).and_then(|rest| rest.strip_prefix('/'));
        let name = name.ok_or_else(|| malformed("invalid patch format of setElementOrder list"))?;
        merge_ordered_list(original, patch, name, &order, schema)?;
    }
    Ok(())
}

fn merge_ordered_list<'s, S: FieldSchema<'s>>(
    original: &mut JsonMembers,
    patch: &mut JsonMembers,
    name: &str,
    order: &[Value],
    schema: S,
) -> Result<(), StrategicMergeError> {
    let live = list_in(original, name)?;
    let sent = list_in(patch, name)?;
    let (items, rule) = list_member(schema, name)?;
    check_order(sent.unwrap_or_default(), order, rule.merge_key)?;
    if live.is_none() && sent.is_none() {
        return Ok(());
    }
    let kind = kind_of_items(live.unwrap_or_default(), sent.unwrap_or_default());
    let (live, sent) = (live.map(<[Value]>::to_vec), sent.map(<[Value]>::to_vec));
    let (merged, server_order) = match (live, sent) {
        (Some(live), Some(sent)) if rule.strategy == PatchStrategy::Merge => merge_with_order(live, sent, items, rule)?,
        (Some(live), Some(sent)) => (sent, live),
        (Some(live), None) => (live.clone(), live),
        (None, sent) => {
            let sent = sent.unwrap_or_default();
            (sent.into_iter().filter_map(without_directives).collect(), Vec::new())
        }
    };
    let (of_patch, of_server) = partition(merged, order, rule.merge_key)?;
    let key = match kind? {
        ItemKind::Map => Some(rule.merge_key.unwrap_or_default()),
        ItemKind::Scalar => None,
    };
    let ordered = normalize(of_patch, of_server, order, &server_order, key)?;
    original.insert(name.to_owned(), Value::Array(ordered));
    patch.remove(name);
    Ok(())
}

fn list_in<'v>(members: &'v JsonMembers, name: &str) -> Result<Option<&'v [Value]>, StrategicMergeError> {
    match members.get(name) {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(wrong_type("[]interface {}", other)),
    }
}

/// Checks that the items of the patch are in its order list, in the same order.
fn check_order(sent: &[Value], order: &[Value], merge_key: Option<&str>) -> Result<(), StrategicMergeError> {
    if sent.is_empty() || order.is_empty() {
        return Ok(());
    }
    let is_deleted = |item: &Value| merge_key.is_some() && item.get(DIRECTIVE).is_some_and(|value| value == "delete");
    if let Some(stranger) = sent.iter().find(|item| merge_key.is_some() && !item.is_object()) {
        return Err(wrong_type("map[string]interface {}", stranger));
    }
    let waiting: Vec<_> = sent.iter().filter(|item| !is_deleted(item)).collect();
    let (mut at, mut place) = (0, 0);
    while let (Some(item), Some(due)) = (waiting.get(at), order.get(place)) {
        if item.get(DIRECTIVE).is_some() {
            at += 1;
            continue;
        }
        at += usize::from(is_same(item, due, merge_key)?);
        place += 1;
    }
    if at == waiting.len() {
        return Ok(());
    }
    Err(unfit(format!(
        "the order of the list in the patch, {}, does not match {ELEMENT_ORDER}, {}",
        Value::from(sent),
        Value::from(order)
    )))
}

fn is_same(item: &Value, due: &Value, merge_key: Option<&str>) -> Result<bool, StrategicMergeError> {
    match merge_key {
        Some(key) => Ok(keyed_members(item, key)?.get(key) == keyed_members(due, key)?.get(key)),
        None => Ok(item == due),
    }
}

/// Returns the position of each item in a list, by its merge key or by its value.
pub(super) fn index_of(list: &[Value], merge_key: Option<&str>) -> HashMap<String, usize> {
    let mut index = HashMap::with_capacity(list.len());
    for (place, item) in list.iter().enumerate() {
        if let Some(text) = lookup_item(item, merge_key) {
            index.entry(text).or_insert(place);
        }
    }
    index
}

fn lookup_item(item: &Value, merge_key: Option<&str>) -> Option<String> {
    match merge_key {
        Some(key) => item.get(key).map(lookup),
        None => Some(lookup(item)),
    }
}

/// Orders the items of the patch by its order list and the others by the live list, and interleaves them.
pub(super) fn normalize(
    of_patch: Vec<Value>,
    of_server: Vec<Value>,
    patch_order: &[Value],
    server_order: &[Value],
    merge_key: Option<&str>,
) -> Result<Vec<Value>, StrategicMergeError> {
    let of_patch = sorted(of_patch, patch_order, merge_key)?;
    let of_server = sorted(of_server, server_order, merge_key)?;
    let index = index_of(server_order, merge_key);
    let place = |item: &Value| lookup_item(item, merge_key).and_then(|text| index.get(&text).copied());
    let mut woven = Vec::with_capacity(of_patch.len() + of_server.len());
    let mut servers = of_server.into_iter().peekable();
    for item in of_patch {
        let before = place(&item);
        while let Some(server) = servers.next_if(|server| place(server).zip(before).is_some_and(|(l, r)| l < r)) {
            woven.push(server);
        }
        woven.push(item);
    }
    woven.extend(servers);
    Ok(woven)
}

fn sorted(items: Vec<Value>, order: &[Value], merge_key: Option<&str>) -> Result<Vec<Value>, StrategicMergeError> {
    if let Some(key) = merge_key {
        for item in items.iter().chain(order) {
            keyed_members(item, key)?;
        }
    }
    let is_deleted = |item: &Value| merge_key.is_some() && item.get(DIRECTIVE).is_some_and(|value| value == "delete");
    let (deleted, kept): (Vec<_>, Vec<_>) = items.into_iter().partition(is_deleted);
    let index = index_of(order, merge_key);
    let place = |item: Value| (lookup_item(&item, merge_key).and_then(|text| index.get(&text).copied()), item);
    let mut placed: Vec<_> = kept.into_iter().map(place).collect();
    match placed.iter().all(|(place, _)| place.is_some()) {
        true => placed.sort_by_key(|(place, _)| *place),
        false => sort_with_strangers(&mut placed),
    }
    Ok(placed.into_iter().map(|(_, item)| item).chain(deleted).collect())
}

/// The maximum number of items for insertion sort, as in Go's sort.
const FEW: usize = 20;

/// Sorts items of which some have no position. Such an item goes before any item that it is compared with.
fn sort_with_strangers(items: &mut [(Option<usize>, Value)]) {
    let is_less = |left: &Option<usize>, right: &Option<usize>| left.zip(*right).is_none_or(|(l, r)| l < r);
    if items.len() > FEW {
        return items.sort_by_key(|(place, _)| *place);
    }
    for end in 1..items.len() {
        for at in (1..=end).rev() {
            let (Some((before, _)), Some((this, _))) = (items.get(at - 1), items.get(at)) else { break };
            if !is_less(this, before) {
                break;
            }
            items.swap(at - 1, at);
        }
    }
}
