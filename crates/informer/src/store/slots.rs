//! Objects by number. Whoever refers to an object by its number need not be told when the object is replaced.

use super::chunks::Chunks;

/// How many slots a chunk holds: small enough to copy, large enough to keep the levels few.
const CHUNK: usize = 32;
/// Where the chain of free slots ends.
const NONE: u32 = u32::MAX;

/// The number of an object, kept until the object is removed.
pub(super) type Slot = u32;

/// Can be cloned in constant time. A slot that is free costs 16 bytes until it is taken again.
#[derive(Debug, Clone)]
pub(super) struct Slots<E> {
    chunks: Chunks<Vec<Place<E>>>,
    free: Slot,
    len: usize,
}

#[derive(Debug, Clone)]
enum Place<E> {
    Taken(E),
    /// The next free one.
    Free(Slot),
}

impl<E: Clone> Slots<E> {
    pub(super) fn new() -> Self {
        Self { chunks: Chunks::new(), free: NONE, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&E> {
        match self.chunks.get(slot as usize / CHUNK)?.get(slot as usize % CHUNK)? {
            Place::Taken(entry) => Some(entry),
            Place::Free(_) => None,
        }
    }

    /// Gives an entry a slot of its own.
    pub(super) fn add(&mut self, entry: E) -> Slot {
        self.len += 1;
        let slot = self.free;
        match self.place_mut(slot) {
            Some(place) => {
                if let Place::Free(next) = std::mem::replace(place, Place::Taken(entry)) {
                    self.free = next;
                }
                slot
            }
            None => self.append(entry),
        }
    }

    /// Puts an entry in the place of another one, and gives that back.
    pub(super) fn replace(&mut self, slot: Slot, entry: E) -> Option<E> {
        match self.place_mut(slot)? {
            Place::Taken(known) => Some(std::mem::replace(known, entry)),
            Place::Free(_) => None,
        }
    }

    pub(super) fn remove(&mut self, slot: Slot) -> Option<E> {
        let next = self.free;
        let place = self.place_mut(slot).filter(|place| matches!(place, Place::Taken(_)))?;
        let Place::Taken(removed) = std::mem::replace(place, Place::Free(next)) else { return None };
        self.free = slot;
        self.len -= 1;
        Some(removed)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot, &E)> {
        (0..).zip(self.chunks.iter().flatten()).filter_map(|(slot, place)| match place {
            Place::Taken(entry) => Some((slot, entry)),
            Place::Free(_) => None,
        })
    }

    fn append(&mut self, entry: E) -> Slot {
        let last = self.chunks.len().saturating_sub(1);
        match self.chunks.get_mut(last).filter(|chunk| chunk.len() < CHUNK) {
            Some(chunk) => {
                chunk.push(Place::Taken(entry));
                (last * CHUNK + chunk.len() - 1) as Slot
            }
            None => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(Place::Taken(entry));
                self.chunks.push(chunk);
                ((self.chunks.len() - 1) * CHUNK) as Slot
            }
        }
    }

    fn place_mut(&mut self, slot: Slot) -> Option<&mut Place<E>> {
        self.chunks.get_mut(slot as usize / CHUNK)?.get_mut(slot as usize % CHUNK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn an_entry_keeps_its_slot_and_clones_never_change(steps in prop::collection::vec((0u8..10, any::<u32>()), 0..800)) {
            let (mut slots, mut model) = (Slots::new(), BTreeMap::new());
            let mut clones = Vec::new();
            for (step, value) in steps {
                let known = model.keys().nth(value as usize % model.len().max(1)).copied();
                match (step, known) {
                    (0..=4, _) => prop_assert_eq!(model.insert(slots.add(value), value), None),
                    (5, Some(slot)) => prop_assert_eq!(slots.replace(slot, value), model.insert(slot, value)),
                    (6..=8, Some(slot)) => {
                        prop_assert_eq!(slots.remove(slot), model.remove(&slot));
                        prop_assert_eq!(slots.remove(slot), None);
                        prop_assert_eq!(slots.replace(slot, value), None);
                    }
                    _ => clones.push((slots.clone(), model.clone())),
                }
            }
            clones.push((slots, model));
            for (slots, model) in clones {
                prop_assert_eq!(slots.len(), model.len());
                prop_assert_eq!(slots.iter().map(|(slot, value)| (slot, *value)).collect::<BTreeMap<_, _>>(), model);
            }
        }
    }

    #[test]
    fn slots_that_are_free_are_taken_first() {
        let mut slots = Slots::new();
        let all: Vec<Slot> = (0..5000).map(|value| slots.add(value)).collect();
        all.iter().for_each(|&slot| assert!(slots.remove(slot).is_some()));
        (0..5000).for_each(|value| assert!(slots.add(value) < 5000));
    }
}
