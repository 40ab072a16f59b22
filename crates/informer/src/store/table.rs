//! A hash table of numbers, with clones in constant time.
//!
//! Numbers are in small leaves. The table grows and shrinks by one leaf at a time (linear hashing), so that no single
//! write has to move all of them.

use std::sync::Arc;

use super::chunks::Chunks;
use super::slots::Slot;

/// How many numbers a leaf holds on average. With free places a leaf takes a kilobyte: it is quick to copy, and all
/// leaves of a large table lie in few enough memory pages for the TLB.
const LEAF: usize = 64;

/// A set of numbers by hash. The caller passes the equality with each call.
#[derive(Debug, Clone)]
pub(super) struct Table {
    leaves: Leaves,
    len: usize,
}

#[derive(Debug, Clone)]
enum Leaves {
    /// Up to one leaf. Most values of an index have few members, and should cost little more than those.
    One(Leaf),
    Many(Chunks<Leaf>),
}

impl Table {
    pub(super) fn new() -> Self {
        Self { leaves: Leaves::One(Leaf::default()), len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the first result of `find` for a number with this hash.
    pub(super) fn get<R>(&self, hash: u32, find: impl Fn(Slot) -> Option<R>) -> Option<R> {
        let leaf = match &self.leaves {
            Leaves::One(leaf) => leaf,
            Leaves::Many(leaves) => leaves.get(leaf_of(hash, leaves.len()))?,
        };
        leaf.find(hash, find).map(|(_, found)| found)
    }

    /// Adds a number that is not in the table yet.
    pub(super) fn add(&mut self, hash: u32, slot: Slot) {
        let Some(leaf) = self.leaf_mut(hash) else { return };
        *leaf = Leaf::of(leaf.iter().chain([Hashed { hash, slot }]), leaf.len() + 1);
        self.len += 1;
        if self.len > LEAF * self.leaf_count() {
            self.split_one();
        }
    }

    pub(super) fn remove(&mut self, hash: u32, same: impl Fn(Slot) -> bool) -> Option<Slot> {
        let leaf = self.leaf_mut(hash)?;
        let (place, removed) = leaf.find(hash, |slot| same(slot).then_some(slot))?;
        let kept = (0..).zip(&*leaf.0).filter(|(at, known)| *at != place && !known.is_empty()).map(|(_, known)| *known);
        *leaf = Leaf::of(kept, leaf.len() - 1);
        self.len -= 1;
        // This limit is far below the limit for growth, so that a varying size does not split and merge again and
        // again.
        if self.len < LEAF / 4 * (self.leaf_count() - 1) {
            self.merge_one();
        }
        Some(removed)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Slot> {
        let (one, many) = match &self.leaves {
            Leaves::One(leaf) => (Some(leaf), None),
            Leaves::Many(leaves) => (None, Some(leaves.iter())),
        };
        one.into_iter().chain(many.into_iter().flatten()).flat_map(Leaf::iter).map(|known| known.slot)
    }

    fn leaf_count(&self) -> usize {
        match &self.leaves {
            Leaves::One(_) => 1,
            Leaves::Many(leaves) => leaves.len(),
        }
    }

    fn leaf_mut(&mut self, hash: u32) -> Option<&mut Leaf> {
        match &mut self.leaves {
            Leaves::One(leaf) => Some(leaf),
            Leaves::Many(leaves) => leaves.get_mut(leaf_of(hash, leaves.len())),
        }
    }

    /// Adds one leaf, and divides the numbers of the leaf that it is split from.
    fn split_one(&mut self) {
        if let Leaves::One(leaf) = &mut self.leaves {
            let mut leaves = Chunks::new();
            leaves.push(std::mem::take(leaf));
            self.leaves = Leaves::Many(leaves);
        }
        let Leaves::Many(leaves) = &mut self.leaves else { return };
        let new = leaves.len();
        let Some(from) = leaves.get_mut(parent_of(new)) else { return };
        let (go, stay): (Vec<_>, Vec<_>) = from.iter().partition(|known| leaf_of(known.hash, new + 1) == new);
        *from = Leaf::of(stay.iter().copied(), stay.len());
        leaves.push(Leaf::of(go.iter().copied(), go.len()));
    }

    /// Removes the last leaf, and moves its numbers back to the leaf that it was split from.
    fn merge_one(&mut self) {
        let Leaves::Many(leaves) = &mut self.leaves else { return };
        let Some(leaf) = leaves.pop() else { return };
        let last = leaves.len();
        let Some(into) = leaves.get_mut(parent_of(last)) else { return };
        *into = Leaf::of(into.iter().chain(leaf.iter()), into.len() + leaf.len());
        if last == 1 {
            self.leaves = Leaves::One(std::mem::take(into));
        }
    }
}

/// Each number is at the place of its hash, or at the next free place. The leaf is one allocation, which is replaced
/// with each change, so that a read needs one step.
#[derive(Debug, Clone, Default)]
struct Leaf(Arc<[Hashed]>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hashed {
    hash: u32,
    slot: Slot,
}

impl Hashed {
    /// No slot has this number, because a store cannot hold so many objects.
    const EMPTY: Self = Self { hash: 0, slot: Slot::MAX };

    fn is_empty(self) -> bool {
        self.slot == Slot::MAX
    }
}

impl Leaf {
    fn of(all: impl Iterator<Item = Hashed>, len: usize) -> Self {
        // A leaf is never full, so that each search ends.
        let places = (len + len / 2 + 1).next_power_of_two();
        let mut leaf = vec![Hashed::EMPTY; if len == 0 { 0 } else { places }];
        for known in all {
            let mut at = place(known.hash, places);
            while !leaf[at].is_empty() {
                at = (at + 1) & (places - 1);
            }
            leaf[at] = known;
        }
        Self(leaf.into())
    }

    fn len(&self) -> usize {
        self.iter().count()
    }

    fn iter(&self) -> impl Iterator<Item = Hashed> {
        self.0.iter().copied().filter(|known| !known.is_empty())
    }

    /// Returns the first result of `find` for a number with this hash, and its place.
    fn find<R>(&self, hash: u32, find: impl Fn(Slot) -> Option<R>) -> Option<(usize, R)> {
        let mask = self.0.len().checked_sub(1)?;
        let mut at = place(hash, self.0.len());
        loop {
            let known = self.0[at & mask];
            if known.is_empty() {
                return None;
            }
            if known.hash == hash
                && let Some(found) = find(known.slot)
            {
                return Some((at & mask, found));
            }
            at += 1;
        }
    }
}

/// Returns the place of a hash among this many places, a power of two. It uses the upper bits, because the lower bits
/// are equal within a leaf.
fn place(hash: u32, places: usize) -> usize {
    ((u64::from(hash) * places as u64) >> 32) as usize
}

/// Returns the leaf of a hash among `count` leaves.
fn leaf_of(hash: u32, count: usize) -> usize {
    let mask = count.next_power_of_two() - 1;
    let at = hash as usize & mask;
    if at < count { at } else { at & (mask >> 1) }
}

/// Returns the leaf that a later one was split from.
fn parent_of(leaf: usize) -> usize {
    leaf - (1 << leaf.ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    // Weak on purpose: many numbers have the same hash, so that equality is tested, too.
    fn hash(slot: Slot) -> u32 {
        (slot / 3).wrapping_mul(0x9E37_79B9)
    }

    fn get(table: &Table, slot: Slot) -> Option<Slot> {
        table.get(hash(slot), |known| (known == slot).then_some(known))
    }

    fn put(table: &mut Table, slot: Slot) -> bool {
        let new = get(table, slot).is_none();
        if new {
            table.add(hash(slot), slot);
        }
        new
    }

    fn take(table: &mut Table, slot: Slot) -> bool {
        table.remove(hash(slot), |known| known == slot).is_some()
    }

    fn contents(table: &Table) -> BTreeSet<Slot> {
        let all: BTreeSet<_> = table.iter().collect();
        assert_eq!(all.len(), table.len(), "none twice, and the length is right");
        all
    }

    proptest! {
        #[test]
        fn a_table_is_a_set_and_its_clones_never_change(steps in prop::collection::vec((0u8..10, 0u32..600), 0..3000)) {
            let (mut table, mut model) = (Table::new(), BTreeSet::new());
            let mut clones = Vec::new();
            for (step, slot) in steps {
                match step {
                    0..=5 => prop_assert_eq!(put(&mut table, slot), model.insert(slot)),
                    6..=8 => prop_assert_eq!(take(&mut table, slot), model.remove(&slot)),
                    _ => clones.push((table.clone(), model.clone())),
                }
                let found = get(&table, slot);
                prop_assert_eq!(found, model.get(&slot).copied());
            }
            prop_assert_eq!(contents(&table), model);
            for (clone, model) in clones {
                prop_assert_eq!(contents(&clone), model);
            }
        }
    }

    #[test]
    fn a_table_grows_to_many_nodes_and_shrinks_to_nothing() {
        let mut table = Table::new();
        for slot in 0..20_000 {
            put(&mut table, slot);
        }
        assert!(table.leaf_count() > 200);
        let before = table.clone();
        for slot in 0..20_000 {
            assert!(take(&mut table, slot));
        }
        assert!(table.is_empty() && table.leaf_count() <= 5, "{} leaves left", table.leaf_count());
        assert_eq!(contents(&before).len(), 20_000);
    }
}
