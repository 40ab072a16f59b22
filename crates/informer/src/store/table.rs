//! A hash table that can be cloned in constant time.
//!
//! Entries live in small leaves. The table grows and shrinks one leaf at a time (linear hashing), so that no single write
//! pays for all entries.

use super::chunks::Chunks;

/// How many entries a leaf holds on average. Small enough to copy and to scan, large enough to keep the levels few.
const LEAF: usize = 24;

#[derive(Debug, Clone)]
struct Hashed<E> {
    hash: u32,
    entry: E,
}

type Leaf<E> = Vec<Hashed<E>>;

/// Entries by hash; equality is the caller's, given with each call.
#[derive(Debug, Clone)]
pub(super) struct Table<E> {
    leaves: Leaves<E>,
    len: usize,
}

#[derive(Debug, Clone)]
enum Leaves<E> {
    /// Up to one leaf's worth: index postings mostly have a few members, and should cost little more than those.
    One(Leaf<E>),
    Many(Chunks<Leaf<E>>),
}

impl<E: Clone> Table<E> {
    pub(super) const fn new() -> Self {
        Self { leaves: Leaves::One(Vec::new()), len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn get(&self, hash: u32, same: impl Fn(&E) -> bool) -> Option<&E> {
        let leaf = match &self.leaves {
            Leaves::One(leaf) => leaf,
            Leaves::Many(leaves) => leaves.get(leaf_of(hash, leaves.len()))?,
        };
        leaf.iter().find(|known| known.hash == hash && same(&known.entry)).map(|known| &known.entry)
    }

    #[cfg(test)]
    fn get_mut(&mut self, hash: u32, same: impl Fn(&E) -> bool) -> Option<&mut E> {
        let known = self.leaf_mut(hash)?.iter_mut().find(|known| known.hash == hash && same(&known.entry))?;
        Some(&mut known.entry)
    }

    /// Puts an entry in that is not there yet.
    pub(super) fn add(&mut self, hash: u32, entry: E) {
        let Some(leaf) = self.leaf_mut(hash) else { return };
        leaf.push(Hashed { hash, entry });
        self.len += 1;
        if self.len > LEAF * self.leaf_count() {
            self.split_one();
        }
    }

    pub(super) fn remove(&mut self, hash: u32, same: impl Fn(&E) -> bool) -> Option<E> {
        let leaf = self.leaf_mut(hash)?;
        let at = leaf.iter().position(|known| known.hash == hash && same(&known.entry))?;
        let removed = leaf.swap_remove(at).entry;
        self.len -= 1;
        // Far below the point of growth, so that a size that wavers does not split and merge in turn.
        if self.len < LEAF / 4 * (self.leaf_count() - 1) {
            self.merge_one();
        }
        Some(removed)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &E> {
        let (one, many) = match &self.leaves {
            Leaves::One(leaf) => (Some(leaf), None),
            Leaves::Many(leaves) => (None, Some(leaves.iter())),
        };
        one.into_iter().chain(many.into_iter().flatten()).flatten().map(|known| &known.entry)
    }

    fn leaf_count(&self) -> usize {
        match &self.leaves {
            Leaves::One(_) => 1,
            Leaves::Many(leaves) => leaves.len(),
        }
    }

    fn leaf_mut(&mut self, hash: u32) -> Option<&mut Leaf<E>> {
        match &mut self.leaves {
            Leaves::One(leaf) => Some(leaf),
            Leaves::Many(leaves) => leaves.get_mut(leaf_of(hash, leaves.len())),
        }
    }

    /// Adds one leaf, and deals the entries of the leaf it splits off from between the two.
    fn split_one(&mut self) {
        if let Leaves::One(leaf) = &mut self.leaves {
            let mut leaves = Chunks::new();
            leaves.push(std::mem::take(leaf));
            self.leaves = Leaves::Many(leaves);
        }
        let Leaves::Many(leaves) = &mut self.leaves else { return };
        let new = leaves.len();
        let Some(from) = leaves.get_mut(parent_of(new)) else { return };
        let (stay, go) = std::mem::take(from).into_iter().partition(|known| leaf_of(known.hash, new + 1) != new);
        *from = stay;
        leaves.push(go);
    }

    /// Takes the last leaf away, and puts its entries back where they were split off from.
    fn merge_one(&mut self) {
        let Leaves::Many(leaves) = &mut self.leaves else { return };
        let Some(leaf) = leaves.pop() else { return };
        let last = leaves.len();
        let Some(into) = leaves.get_mut(parent_of(last)) else { return };
        into.extend(leaf);
        if last == 1 {
            self.leaves = Leaves::One(std::mem::take(into));
        }
    }
}

/// Which of `count` leaves a hash belongs to.
fn leaf_of(hash: u32, count: usize) -> usize {
    let mask = count.next_power_of_two() - 1;
    let at = hash as usize & mask;
    if at < count { at } else { at & (mask >> 1) }
}

/// Which leaf a later one was split off from.
fn parent_of(leaf: usize) -> usize {
    leaf - (1 << leaf.ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    // Weak on purpose: many keys share a hash, so that equality is needed.
    fn hash(key: u32) -> u32 {
        (key / 3).wrapping_mul(0x9E37_79B9)
    }

    fn put(table: &mut Table<(u32, u32)>, key: u32, value: u32) -> Option<u32> {
        match table.get_mut(hash(key), |entry| entry.0 == key) {
            Some(entry) => Some(std::mem::replace(&mut entry.1, value)),
            None => {
                table.add(hash(key), (key, value));
                None
            }
        }
    }

    fn take(table: &mut Table<(u32, u32)>, key: u32) -> Option<u32> {
        table.remove(hash(key), |entry| entry.0 == key).map(|old| old.1)
    }

    fn contents(table: &Table<(u32, u32)>) -> BTreeMap<u32, u32> {
        let all: BTreeMap<_, _> = table.iter().copied().collect();
        assert_eq!(all.len(), table.len(), "no key twice, and the length is right");
        all
    }

    proptest! {
        #[test]
        fn it_is_a_map_and_its_clones_never_change(steps in prop::collection::vec((0u8..10, 0u32..600, any::<u32>()), 0..3000)) {
            let (mut table, mut model) = (Table::new(), BTreeMap::new());
            let mut clones = Vec::new();
            for (step, key, value) in steps {
                match step {
                    0..=5 => prop_assert_eq!(put(&mut table, key, value), model.insert(key, value)),
                    6..=8 => prop_assert_eq!(take(&mut table, key), model.remove(&key)),
                    _ => clones.push((table.clone(), model.clone())),
                }
                prop_assert_eq!(table.get(hash(key), |entry| entry.0 == key).map(|entry| entry.1), model.get(&key).copied());
            }
            prop_assert_eq!(contents(&table), model);
            for (clone, model) in clones {
                prop_assert_eq!(contents(&clone), model);
            }
        }
    }

    #[test]
    fn it_grows_to_many_nodes_and_shrinks_back_to_nothing() {
        let mut table = Table::new();
        for key in 0..20_000 {
            put(&mut table, key, key);
        }
        assert!(table.leaf_count() > 640);
        let before = table.clone();
        for key in 0..20_000 {
            assert_eq!(take(&mut table, key), Some(key));
        }
        assert!(table.is_empty() && table.leaf_count() <= 5, "{} leaves left", table.leaf_count());
        assert_eq!(contents(&before).len(), 20_000);
    }
}
