//! The accepted names of a CRD: each name is used once within a group.

use serde_json::{Value, json};
use std::collections::BTreeSet;

use super::DEFINITIONS;
use crate::storage::state::LockedState;

/// The outcome for the requested names of a CRD.
pub(super) struct Names {
    /// The accepted names.
    pub(super) accepted: Value,
    /// Why some requested names are not accepted: a reason and a message.
    pub(super) conflict: Option<(&'static str, String)>,
}

/// Assigns to a CRD those of its names that no other CRD of its group has.
pub(super) fn settle(state: &LockedState, object: &Value) -> Names {
    let (wanted, had) = (&object["spec"]["names"], &object["status"]["acceptedNames"]);
    let mut accepted = had.clone();
    if !accepted.is_object() {
        accepted = json!({"plural": "", "kind": ""});
    }
    if *wanted == accepted {
        return Names { accepted, conflict: None };
    }
    let taken = taken(state, object);
    let mut conflict = None;
    for (member, reason, among) in [
        ("plural", "PluralConflict", &taken.resources),
        ("singular", "SingularConflict", &taken.resources),
        ("shortNames", "ShortNamesConflict", &taken.resources),
        ("kind", "KindConflict", &taken.kinds),
        ("listKind", "ListKindConflict", &taken.kinds),
    ] {
        let held: BTreeSet<&str> = words(&had[member]).collect();
        let lost: Vec<String> = words(&wanted[member])
            .filter(|name| !held.contains(name) && among.contains(*name))
            .map(|name| format!("{name:?} is already in use"))
            .collect();
        match lost.as_slice() {
            [] => put(&mut accepted, member, &wanted[member]),
            [one] => conflict = Some((reason, one.clone())),
            several => conflict = Some((reason, format!("[{}]", several.join(", ")))),
        }
    }
    put(&mut accepted, "categories", &wanted["categories"]);
    Names { accepted, conflict }
}

fn put(accepted: &mut Value, member: &str, name: &Value) {
    match (name, accepted.as_object_mut()) {
        (Value::Null, Some(members)) => drop(members.remove(member)),
        (name, Some(members)) => drop(members.insert(member.to_owned(), name.clone())),
        (_, None) => {}
    }
}

/// Returns one name or several.
fn words(value: &Value) -> impl Iterator<Item = &str> {
    let several = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    value.as_str().into_iter().chain(several).filter(|word| !word.is_empty())
}

#[derive(Default)]
struct TakenNames {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

/// Returns the names of the other CRDs in the group.
fn taken(state: &LockedState, object: &Value) -> TakenNames {
    let (group, own) = (&object["spec"]["group"], &object["metadata"]["name"]);
    let mut taken = TakenNames::default();
    for name in others(state, group.as_str().unwrap_or_default(), own.as_str().unwrap_or_default()) {
        // The catalog has the names of CRDs that are served. The others are few.
        if let Some(served) = state.catalog.of_definition(&name) {
            taken.resources.extend([served.plural.clone(), served.singular.clone()]);
            taken.resources.extend(served.short_names.iter().cloned());
            taken.kinds.extend([served.kind.clone(), served.list_kind.clone()]);
        } else if let Some(other) = super::look(state, &name).map(|stored| stored.value()) {
            let names = &other["status"]["acceptedNames"];
            let resources = ["plural", "singular", "shortNames"].into_iter().flat_map(|member| words(&names[member]));
            taken.resources.extend(resources.map(str::to_owned));
            let kinds = ["kind", "listKind"].into_iter().flat_map(|member| words(&names[member]));
            taken.kinds.extend(kinds.map(str::to_owned));
        }
    }
    taken
}

/// Returns the names of the other CRDs of a group.
pub(super) fn others(state: &LockedState, group: &str, own: &str) -> Vec<String> {
    let Some(definitions) = state.catalog.named(DEFINITIONS) else { return Vec::new() };
    let keys = state.keys(definitions).map(|key| key.name());
    let other = |name: &&str| *name != own && name.split_once('.').is_some_and(|(_, of)| of == group);
    keys.filter(other).map(str::to_owned).collect()
}
