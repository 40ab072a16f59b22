//! Compares two values of a type: the fields that were added, modified and removed.

use serde_json::{Map, Value};

use super::atom::{self, Atom, atom, items, members};
use super::filter::FieldFilter;
use super::item;
use super::order;
use super::path::PathElement;
use super::schema::FieldSchema;
use super::set::{Branch, FieldSet, SetNode};

/// The differences between two values. No field is in more than one of the sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FieldComparison {
    /// Fields that are only on the right.
    pub(super) added: FieldSet,
    /// Fields with different values on both sides.
    pub(super) modified: FieldSet,
    /// Fields that are only on the left.
    pub(super) removed: FieldSet,
}

impl FieldComparison {
    /// Returns the differences in fields that the request can change.
    pub(super) fn filtered(self, filter: &FieldFilter) -> Self {
        Self {
            added: filter.apply(self.added),
            modified: filter.apply(self.modified),
            removed: filter.apply(self.removed),
        }
    }

    /// Returns the fields that are set on the right, and the removed fields.
    pub(super) fn into_set_and_removed(self) -> (FieldSet, FieldSet) {
        (self.modified.union(self.added), self.removed)
    }
}

/// Compares two objects that fit their type.
pub(super) fn compare<'s, S: FieldSchema<'s>>(schema: S, left: &Value, right: &Value) -> FieldComparison {
    let change = place(schema, Some(left), Some(right));
    FieldComparison { added: change.added.below, modified: change.modified.below, removed: change.removed.below }
}

/// The differences at a place and below it.
#[derive(Default)]
struct SetChange {
    added: Branch,
    modified: Branch,
    removed: Branch,
}

impl SetChange {
    fn union(self, other: Self) -> Self {
        Self {
            added: self.added.union(other.added),
            modified: self.modified.union(other.modified),
            removed: self.removed.union(other.removed),
        }
    }
}

fn place<'s, S: FieldSchema<'s>>(schema: S, left: Option<&Value>, right: Option<&Value>) -> SetChange {
    let (old, new) = (left.map(|left| atom(schema, left)), right.map(|right| atom(schema, right)));
    match (old, new) {
        (None, None) => SetChange::default(),
        (Some(atom), None) | (None, Some(atom)) => handle(atom, schema, left, right),
        (Some(old), Some(new)) if old == new => handle(new, schema, left, right),
        // A value of any type got another type: everything below is removed and added.
        (Some(old), Some(new)) => handle(old, schema, left, right).union(handle(new, schema, left, right)),
    }
}

fn handle<'s, S: FieldSchema<'s>>(atom: Atom, schema: S, left: Option<&Value>, right: Option<&Value>) -> SetChange {
    match atom {
        Atom::Scalar(_) | Atom::AtomicList | Atom::AtomicMap => leaf(left, right),
        Atom::OpenList => match (items(left), items(right)) {
            ([], []) => leaf(left, right),
            (old, new) => one_sided(list(schema, old, new), left, right),
        },
        Atom::OpenMap => match (members(left), members(right)) {
            (None, None) => leaf(left, right),
            (old, new) => one_sided(map(schema, old, new), left, right),
        },
    }
}

fn leaf(left: Option<&Value>, right: Option<&Value>) -> SetChange {
    let modified = match (left, right) {
        (Some(left), Some(right)) if !order::equal(left, right) => Branch::leaf(),
        _ => Branch::default(),
    };
    one_sided(SetChange { modified, ..SetChange::default() }, left, right)
}

/// Adds a value that exists on one side only to the added or removed fields.
fn one_sided(mut change: SetChange, left: Option<&Value>, right: Option<&Value>) -> SetChange {
    change.added.member |= left.is_none();
    change.removed.member |= right.is_none();
    change
}

/// The differences below a place, collected step by step.
#[derive(Default)]
struct Gathered {
    added: Vec<SetNode>,
    modified: Vec<SetNode>,
    removed: Vec<SetNode>,
}

impl Gathered {
    fn push(&mut self, element: impl Fn() -> PathElement, change: SetChange) {
        let sides = [
            (&mut self.added, change.added),
            (&mut self.modified, change.modified),
            (&mut self.removed, change.removed),
        ];
        for (nodes, branch) in sides {
            if !branch.is_empty() {
                nodes.push(SetNode { element: element(), branch });
            }
        }
    }

    fn finish(self) -> SetChange {
        let branch = |nodes| Branch { member: false, below: FieldSet::from_nodes(nodes) };
        SetChange { added: branch(self.added), modified: branch(self.modified), removed: branch(self.removed) }
    }
}

fn map<'s, S: FieldSchema<'s>>(
    schema: S,
    left: Option<&Map<String, Value>>,
    right: Option<&Map<String, Value>>,
) -> SetChange {
    let mut gathered = Gathered::default();
    for (name, left, right) in zip(left, right) {
        let Some(member) = atom::member(schema, name) else { continue };
        gathered.push(|| PathElement::field(name), place(member.schema(), left, right));
    }
    gathered.finish()
}

/// Returns the members of two maps side by side, by name.
pub(super) fn zip<'v>(
    left: Option<&'v Map<String, Value>>,
    right: Option<&'v Map<String, Value>>,
) -> impl Iterator<Item = (&'v str, Option<&'v Value>, Option<&'v Value>)> {
    let mut left = left.into_iter().flatten().peekable();
    let mut right = right.into_iter().flatten().peekable();
    std::iter::from_fn(move || {
        let name = match (left.peek(), right.peek()) {
            (Some((left, _)), Some((right, _))) => left.as_str().min(right.as_str()),
            (Some((name, _)), None) | (None, Some((name, _))) => name.as_str(),
            (None, None) => return None,
        };
        let old = left.next_if(|(left, _)| *left == name).map(|(_, value)| value);
        let new = right.next_if(|(right, _)| *right == name).map(|(_, value)| value);
        Some((name, old, new))
    })
}

fn list<'s, S: FieldSchema<'s>>(schema: S, left: &[Value], right: &[Value]) -> SetChange {
    if left.len() == right.len() && left.iter().zip(right).all(|(left, right)| order::equal(left, right)) {
        return SetChange::default();
    }
    let mut gathered = Gathered::default();
    let (old, new) = (sorted(schema, left), sorted(schema, right));
    let (mut old, mut new) = (old.as_slice(), new.as_slice());
    while let Some(element) = first_of(old, new) {
        let (olds, rest) = old.split_at(old.iter().take_while(|(other, _)| other == element).count());
        old = rest;
        let (news, rest) = new.split_at(new.iter().take_while(|(other, _)| other == element).count());
        new = rest;
        gathered.push(|| element.clone(), same_items(schema, olds, news));
    }
    gathered.finish()
}

/// Returns the items with their path elements, sorted. Equal items stay in list order.
fn sorted<'s, 'v, S: FieldSchema<'s>>(schema: S, items: &'v [Value]) -> Vec<(PathElement, &'v Value)> {
    let known = items.iter().filter_map(|value| Some((item::element(schema, value).ok()?, value)));
    let mut known: Vec<_> = known.collect();
    known.sort_by(|(element, _), (other, _)| element.cmp(other));
    known
}

fn first_of<'a>(left: &'a [(PathElement, &Value)], right: &'a [(PathElement, &Value)]) -> Option<&'a PathElement> {
    let (left, right) = (left.first().map(|(element, _)| element), right.first().map(|(element, _)| element));
    match (left, right) {
        (Some(left), Some(right)) => Some(left.min(right)),
        (left, right) => left.or(right),
    }
}

/// Compares items with the same path element. Duplicates on one side count as one value.
fn same_items<'s, 'v, S: FieldSchema<'s>>(
    schema: S,
    left: &[(PathElement, &'v Value)],
    right: &[(PathElement, &'v Value)],
) -> SetChange {
    let one = |items: &[(PathElement, &'v Value)]| items.first().map(|(_, value)| *value);
    match (left, right) {
        ([] | [_], [] | [_]) => place(schema.items(), one(left), one(right)),
        ([_, _, ..], [_, _, ..]) => {
            let same = left.len() == right.len()
                && left.iter().zip(right).all(|((_, left), (_, right))| order::equal(left, right));
            SetChange { modified: Branch { member: !same, below: FieldSet::default() }, ..SetChange::default() }
        }
        ([_, _, ..], _) => {
            let mut change = place(schema.items(), None, one(right));
            change.removed.member = true;
            change
        }
        (_, [_, _, ..]) => {
            let mut change = place(schema.items(), one(left), None);
            change.added.member = true;
            change
        }
    }
}
