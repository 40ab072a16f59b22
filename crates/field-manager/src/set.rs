//! A set of field paths, as a tree of path elements. Every operation takes linear time in the size of its trees.

use std::cmp::Ordering;
use std::iter::Peekable;
use std::slice::Iter;

use super::atom;
use super::path::PathElement;
use super::schema::{FieldSchema, Member, Shape};

/// A set of field paths.
///
/// A path may be in the set without its parents, and without its children.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Sorted by element, without duplicates. Every node has a path of the set at it or below it.
    nodes: Vec<SetNode>,
}

/// A node of a [`FieldSet`]: whether the path that ends here is in the set, and the longer paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SetNode {
    pub(super) element: PathElement,
    pub(super) branch: Branch,
}

/// The part of a set at a place: the place itself or not, and the paths below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Branch {
    pub(super) member: bool,
    pub(super) below: FieldSet,
}

impl Branch {
    pub(super) fn leaf() -> Self {
        Self { member: true, below: FieldSet::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self { member: self.member || other.member, below: self.below.union(other.below) }
    }
}

impl FieldSet {
    /// Returns the set of these paths, each given by its field names.
    pub fn of_fields<'p>(paths: impl IntoIterator<Item = &'p [&'p str]>) -> Self {
        let path = |names: &[&str]| names.iter().map(|name| PathElement::field(*name)).collect::<Vec<_>>();
        Self::union_all(paths.into_iter().map(|names| Self::single(&path(names))).collect())
    }

    /// Returns the set of one path. The empty path names the whole object, which is in no set.
    pub(super) fn single(path: &[PathElement]) -> Self {
        let Some((last, before)) = path.split_last() else { return Self::default() };
        let mut set = Self { nodes: vec![SetNode { element: last.clone(), branch: Branch::leaf() }] };
        for element in before.iter().rev() {
            let branch = Branch { member: false, below: set };
            set = Self { nodes: vec![SetNode { element: element.clone(), branch }] };
        }
        set
    }

    /// Returns the set with these nodes, in any order. Duplicates are united.
    pub(super) fn from_nodes(mut nodes: Vec<SetNode>) -> Self {
        nodes.retain(|node| !node.branch.is_empty());
        if !nodes.is_sorted_by(|node, next| node.element < next.element) {
            nodes.sort_by(|node, next| node.element.cmp(&next.element));
            nodes = unite_neighbours(nodes);
        }
        Self { nodes }
    }

    pub(super) fn nodes(&self) -> &[SetNode] {
        &self.nodes
    }

    pub(super) fn into_nodes(self) -> Vec<SetNode> {
        self.nodes
    }

    /// Returns whether no path is in the set.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns whether the path is in the set.
    #[cfg(test)]
    pub(crate) fn has(&self, path: &[PathElement]) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        let Some(branch) = self.at(first) else { return false };
        if rest.is_empty() { branch.member } else { branch.below.has(rest) }
    }

    /// Returns the part of the set at and below a first element.
    pub(super) fn at(&self, element: &PathElement) -> Option<&Branch> {
        let place = self.nodes.binary_search_by(|node| node.element.cmp(element)).ok()?;
        self.nodes.get(place).map(|node| &node.branch)
    }

    /// Returns the part of the set at and below a first element that is a field.
    pub(super) fn at_field(&self, name: &str) -> Option<&Branch> {
        // Fields come before all other elements.
        let order = |node: &SetNode| match &node.element {
            PathElement::Field(field) => field.as_str().cmp(name),
            _ => Ordering::Greater,
        };
        let place = self.nodes.binary_search_by(order).ok()?;
        self.nodes.get(place).map(|node| &node.branch)
    }

    /// Returns the paths in either set.
    pub(crate) fn union(self, other: Self) -> Self {
        if self.is_empty() {
            return other;
        }
        let mut nodes = Vec::with_capacity(self.nodes.len() + other.nodes.len());
        let mut others = other.nodes.into_iter().peekable();
        for node in self.nodes {
            while let Some(earlier) = others.next_if(|other| other.element < node.element) {
                nodes.push(earlier);
            }
            match others.next_if(|other| other.element == node.element) {
                Some(same) => nodes.push(SetNode { element: node.element, branch: node.branch.union(same.branch) }),
                None => nodes.push(node),
            }
        }
        nodes.extend(others);
        Self { nodes }
    }

    /// Returns the paths in any of the sets, united in pairs so that no set is copied often.
    pub(super) fn union_all(mut sets: Vec<Self>) -> Self {
        while sets.len() > 1 {
            let mut rest = sets.into_iter();
            let mut united = Vec::with_capacity(rest.len() / 2 + 1);
            while let Some(set) = rest.next() {
                united.push(set.union(rest.next().unwrap_or_default()));
            }
            sets = united;
        }
        sets.pop().unwrap_or_default()
    }

    /// Returns the paths in both sets.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let both = |node: &SetNode, same: &Branch| Branch {
            member: node.branch.member && same.member,
            below: node.branch.below.intersection(&same.below),
        };
        let mut others = Others::of(other, self.nodes.len());
        let mut nodes = Vec::new();
        for node in &self.nodes {
            let branch = others.at(&node.element).map(|same| both(node, same)).filter(|branch| !branch.is_empty());
            nodes.extend(branch.map(|branch| SetNode { element: node.element.clone(), branch }));
        }
        Self { nodes }
    }

    /// Returns the paths of this set that are not in the other.
    pub(crate) fn difference(self, other: &Self) -> Self {
        self.without(other, |branch, same| Branch {
            member: branch.member && !same.member,
            below: branch.below.difference(&same.below),
        })
    }

    /// Returns the paths of this set that are neither in the other nor below one that is.
    pub(crate) fn recursive_difference(self, other: &Self) -> Self {
        self.without(other, |branch, same| match same.member {
            true => Branch::default(),
            false => Branch { member: branch.member, below: branch.below.recursive_difference(&same.below) },
        })
    }

    fn without(self, other: &Self, reduce: impl Fn(Branch, &Branch) -> Branch) -> Self {
        if other.is_empty() {
            return self;
        }
        let mut others = Others::of(other, self.nodes.len());
        let reduced = self.nodes.into_iter().filter_map(|node| {
            let Some(same) = others.at(&node.element) else { return Some(node) };
            let branch = reduce(node.branch, same);
            (!branch.is_empty()).then_some(SetNode { element: node.element, branch })
        });
        Self { nodes: reduced.collect() }
    }

    /// Returns the set without the paths that have other paths below them.
    #[cfg(test)]
    pub(crate) fn leaves(self) -> Self {
        let leaf = |node: SetNode| {
            let member = node.branch.member && node.branch.below.is_empty();
            SetNode { element: node.element, branch: Branch { member, below: node.branch.below.leaves() } }
        };
        Self { nodes: self.nodes.into_iter().map(leaf).collect() }
    }

    /// Returns the set with every declared field that has a path below it: the owner of a part of a struct also owns
    /// the struct.
    pub(super) fn with_named_fields<'s, S: FieldSchema<'s>>(self, schema: Option<S>) -> Self {
        let name = |node: SetNode| {
            let (named, schema) = schema.map_or((false, None), |schema| step(schema, &node.element));
            let member = node.branch.member || (named && !node.branch.below.is_empty());
            let below = node.branch.below.with_named_fields(schema);
            SetNode { element: node.element, branch: Branch { member, below } }
        };
        Self { nodes: self.nodes.into_iter().map(name).collect() }
    }

    /// Returns every path in the set as shown in messages. At each level, paths that end there come first.
    pub(super) fn texts(&self) -> Vec<String> {
        let mut texts = Vec::new();
        self.push_texts("", &mut texts);
        texts
    }

    fn push_texts(&self, prefix: &str, texts: &mut Vec<String>) {
        let members = self.nodes.iter().filter(|node| node.branch.member);
        texts.extend(members.map(|node| format!("{prefix}{}", node.element)));
        for node in self.nodes.iter().filter(|node| !node.branch.below.is_empty()) {
            node.branch.below.push_texts(&format!("{prefix}{}", node.element), texts);
        }
    }
}

/// Returns whether an element is a declared field, and its type.
fn step<'s, S: FieldSchema<'s>>(schema: S, element: &PathElement) -> (bool, Option<S>) {
    match (element, schema.shape()) {
        (PathElement::Field(name), Shape::Map | Shape::AtomicMap | Shape::Deduced | Shape::Opaque) => {
            match atom::member(schema, name) {
                Some(Member::Field(schema)) => (true, Some(schema)),
                Some(Member::Entry(schema)) => (false, Some(schema)),
                None => (false, None),
            }
        }
        (PathElement::Key(_), Shape::MapList | Shape::SetList | Shape::AtomicList) => (false, Some(schema.items())),
        _ => (false, None),
    }
}

fn unite_neighbours(nodes: Vec<SetNode>) -> Vec<SetNode> {
    let mut united: Vec<SetNode> = Vec::with_capacity(nodes.len());
    for node in nodes {
        match united.last_mut() {
            Some(last) if last.element == node.element => {
                last.branch = std::mem::take(&mut last.branch).union(node.branch);
            }
            _ => united.push(node),
        }
    }
    united
}

/// Walks through a second set in parallel, in order.
enum Others<'a> {
    /// Element by element.
    Beside(Peekable<Iter<'a, SetNode>>),
    /// By binary search, if this set is much smaller: many small sets may be compared with one large one.
    Searched(&'a FieldSet),
}

impl<'a> Others<'a> {
    fn of(set: &'a FieldSet, steps: usize) -> Self {
        match set.nodes.len() / 16 > steps {
            true => Self::Searched(set),
            false => Self::Beside(set.nodes.iter().peekable()),
        }
    }

    /// Returns the part of the set at an element that comes after all earlier requested ones.
    fn at(&mut self, element: &PathElement) -> Option<&'a Branch> {
        match self {
            Self::Searched(set) => set.at(element),
            Self::Beside(nodes) => {
                while nodes.next_if(|node| node.element < *element).is_some() {}
                nodes.next_if(|node| node.element == *element).map(|node| &node.branch)
            }
        }
    }
}
