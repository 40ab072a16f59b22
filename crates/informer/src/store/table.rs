//! A hash table that can be cloned in constant time.
//!
//! Entries live in small leaves, leaves in wide nodes, nodes in a root; each level is an `Arc`. A clone shares the root.
//! A writer changes what only it holds in place, and copies a path of three small vectors the first time it touches one
//! that a clone still shares. The table grows and shrinks one leaf at a time (linear hashing), so that no single write
//! pays for all entries.

use std::sync::Arc;

/// How many entries a leaf holds on average. Small enough to copy and to scan, large enough to keep the levels few.
const LEAF: usize = 24;
/// How many leaves a node holds.
const NODE: usize = 64;

#[derive(Debug, Clone)]
struct Slot<E> {
    hash: u64,
    entry: E,
}

type Leaf<E> = Vec<Slot<E>>;
type Node<E> = Vec<Arc<Leaf<E>>>;

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
    /// `count` leaves, dealt into nodes of `NODE`.
    Many { nodes: Arc<Vec<Arc<Node<E>>>>, count: usize },
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

    pub(super) fn get(&self, hash: u64, same: impl Fn(&E) -> bool) -> Option<&E> {
        let leaf = match &self.leaves {
            Leaves::One(leaf) => leaf,
            Leaves::Many { nodes, count } => {
                let at = leaf_of(hash, *count);
                &*nodes[at / NODE][at % NODE]
            }
        };
        leaf.iter().find(|slot| slot.hash == hash && same(&slot.entry)).map(|slot| &slot.entry)
    }

    pub(super) fn get_mut(&mut self, hash: u64, same: impl Fn(&E) -> bool) -> Option<&mut E> {
        let slot = self.leaf_mut(hash).iter_mut().find(|slot| slot.hash == hash && same(&slot.entry))?;
        Some(&mut slot.entry)
    }

    /// Puts an entry in, and gives back the one it takes the place of.
    pub(super) fn insert(&mut self, hash: u64, same: impl Fn(&E) -> bool, entry: E) -> Option<E> {
        let leaf = self.leaf_mut(hash);
        if let Some(slot) = leaf.iter_mut().find(|slot| slot.hash == hash && same(&slot.entry)) {
            return Some(std::mem::replace(&mut slot.entry, entry));
        }
        leaf.push(Slot { hash, entry });
        self.len += 1;
        if self.len > LEAF * self.leaf_count() {
            self.split_one();
        }
        None
    }

    pub(super) fn remove(&mut self, hash: u64, same: impl Fn(&E) -> bool) -> Option<E> {
        let leaf = self.leaf_mut(hash);
        let at = leaf.iter().position(|slot| slot.hash == hash && same(&slot.entry))?;
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
            Leaves::Many { nodes, .. } => (None, Some(nodes.iter().flat_map(|node| node.iter()).map(|leaf| &**leaf))),
        };
        one.into_iter().chain(many.into_iter().flatten()).flatten().map(|slot| &slot.entry)
    }

    fn leaf_count(&self) -> usize {
        match &self.leaves {
            Leaves::One(_) => 1,
            Leaves::Many { count, .. } => *count,
        }
    }

    fn leaf_mut(&mut self, hash: u64) -> &mut Leaf<E> {
        match &mut self.leaves {
            Leaves::One(leaf) => leaf,
            Leaves::Many { nodes, count } => at_mut(nodes, leaf_of(hash, *count)),
        }
    }

    /// Adds one leaf, and deals the entries of the leaf it splits off from between the two.
    fn split_one(&mut self) {
        if let Leaves::One(leaf) = &mut self.leaves {
            let first: Node<E> = vec![Arc::new(std::mem::take(leaf))];
            self.leaves = Leaves::Many { nodes: Arc::new(vec![Arc::new(first)]), count: 1 };
        }
        let Leaves::Many { nodes, count } = &mut self.leaves else { return };
        let (new, new_count) = (*count, *count + 1);
        let from = at_mut(nodes, parent_of(new));
        let (stay, go) = std::mem::take(from).into_iter().partition(|slot| leaf_of(slot.hash, new_count) != new);
        *from = stay;
        let nodes = Arc::make_mut(nodes);
        if new % NODE == 0 {
            nodes.push(Arc::new(Vec::with_capacity(NODE)));
        }
        if let Some(last) = nodes.last_mut() {
            Arc::make_mut(last).push(Arc::new(go));
        }
        *count = new_count;
    }

    /// Takes the last leaf away, and puts its entries back where they were split off from.
    fn merge_one(&mut self) {
        let Leaves::Many { nodes, count } = &mut self.leaves else { return };
        let last = *count - 1;
        let all = Arc::make_mut(nodes);
        let Some(leaf) = all.last_mut().and_then(|node| Arc::make_mut(node).pop()) else { return };
        if last % NODE == 0 {
            all.pop();
        }
        *count = last;
        let into = at_mut(nodes, parent_of(last));
        into.extend(Arc::unwrap_or_clone(leaf));
        if last == 1 {
            self.leaves = Leaves::One(std::mem::take(into));
        }
    }
}

/// Which of `count` leaves a hash belongs to.
fn leaf_of(hash: u64, count: usize) -> usize {
    let mask = count.next_power_of_two() - 1;
    let at = hash as usize & mask;
    if at < count { at } else { at & (mask >> 1) }
}

/// Which leaf a later one was split off from.
fn parent_of(leaf: usize) -> usize {
    leaf - (1 << leaf.ilog2())
}

fn at_mut<E: Clone>(nodes: &mut Arc<Vec<Arc<Node<E>>>>, at: usize) -> &mut Leaf<E> {
    Arc::make_mut(&mut Arc::make_mut(&mut Arc::make_mut(nodes)[at / NODE])[at % NODE])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    // Weak on purpose: many keys share a hash, so that equality is needed.
    fn hash(key: u32) -> u64 {
        u64::from(key / 3).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    fn put(table: &mut Table<(u32, u32)>, key: u32, value: u32) -> Option<u32> {
        table.insert(hash(key), |entry| entry.0 == key, (key, value)).map(|old| old.1)
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
        assert!(table.leaf_count() > 10 * NODE);
        let before = table.clone();
        for key in 0..20_000 {
            assert_eq!(take(&mut table, key), Some(key));
        }
        assert!(table.is_empty() && table.leaf_count() <= 5, "{} leaves left", table.leaf_count());
        assert_eq!(contents(&before).len(), 20_000);
    }
}
