//! Entries by number. A number stays valid when its entry is replaced.

use std::sync::Arc;

use super::chunks::Chunks;

/// How many entries a chunk has.
const CHUNK: usize = 32;
/// How many chunks are created together at most.
const AT_ONCE: u32 = 64;
/// Stands for no chunk.
const NONE: u32 = u32::MAX;

/// The number of an entry, which it keeps until it is removed.
pub(crate) type Slot = u32;

/// Entries by number, with clones in constant time. An empty chunk takes no memory for entries.
#[derive(Debug, Clone)]
pub(super) struct Slots<E> {
    chunks: Chunks<Chunk<E>>,
    /// The first chunk with a free slot. Each such chunk stores the next one.
    free: u32,
    len: usize,
}

#[derive(Debug, Clone)]
struct Chunk<E> {
    /// `None` if the chunk is empty.
    places: Option<Arc<Places<E>>>,
    taken: u32,
    next_free: u32,
}

/// In one allocation, so that a read needs one step.
type Places<E> = [Option<E>; CHUNK];

impl<E: Clone> Slots<E> {
    pub(super) fn new() -> Self {
        Self { chunks: Chunks::new(), free: NONE, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&E> {
        self.chunks.get(slot as usize / CHUNK)?.places.as_ref()?[slot as usize % CHUNK].as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut E> {
        let places = self.chunks.get_mut(slot as usize / CHUNK)?.places.as_mut()?;
        Arc::make_mut(places)[slot as usize % CHUNK].as_mut()
    }

    /// Adds an entry in a free slot.
    pub(super) fn add(&mut self, entry: E) -> Slot {
        if self.free == NONE {
            self.grow();
        }
        let number = self.free as usize;
        let Some(chunk) = self.chunks.get_mut(number) else { return NONE };
        let places = Arc::make_mut(chunk.places.get_or_insert_with(|| Arc::new([const { None }; CHUNK])));
        let place = places.iter().position(Option::is_none).unwrap_or_default();
        places[place] = Some(entry);
        chunk.taken += 1;
        if chunk.taken as usize == CHUNK {
            self.free = std::mem::replace(&mut chunk.next_free, NONE);
        }
        self.len += 1;
        (number * CHUNK + place) as Slot
    }

    /// Creates chunks, in proportion to the existing ones. Chunks that are created together lie side by side in few
    /// memory pages, and not between other objects.
    fn grow(&mut self) {
        let first = self.chunks.len() as u32;
        let more = (first / 4).clamp(1, AT_ONCE);
        for number in first..first + more {
            let next_free = if number + 1 < first + more { number + 1 } else { NONE };
            let places = Some(Arc::new([const { None }; CHUNK]));
            self.chunks.push(Chunk { places, taken: 0, next_free });
        }
        self.free = first;
    }

    pub(super) fn remove(&mut self, slot: Slot) -> Option<E> {
        let (number, free) = (slot as usize / CHUNK, self.free);
        self.get(slot)?;
        let chunk = self.chunks.get_mut(number)?;
        let removed = Arc::make_mut(chunk.places.as_mut()?)[slot as usize % CHUNK].take()?;
        if chunk.taken as usize == CHUNK {
            chunk.next_free = free;
            self.free = number as u32;
        }
        chunk.taken -= 1;
        if chunk.taken == 0 {
            chunk.places = None;
        }
        self.len -= 1;
        Some(removed)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot, &E)> {
        self.chunks.iter().enumerate().flat_map(|(number, chunk)| {
            let places = chunk.places.iter().flat_map(|places| places.iter()).enumerate();
            places.filter_map(move |(place, entry)| Some(((number * CHUNK + place) as Slot, entry.as_ref()?)))
        })
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
                    (5, Some(slot)) => {
                        let entry = slots.get_mut(slot).map(|entry| std::mem::replace(entry, value));
                        prop_assert_eq!(entry, model.insert(slot, value));
                    }
                    (6..=8, Some(slot)) => {
                        prop_assert_eq!(slots.remove(slot), model.remove(&slot));
                        prop_assert_eq!(slots.remove(slot), None);
                        prop_assert_eq!(slots.get_mut(slot), None);
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
    fn free_slots_are_reused_first() {
        let mut slots = Slots::new();
        let all: Vec<Slot> = (0..5000).map(|value| slots.add(value)).collect();
        all.iter().for_each(|&slot| assert!(slots.remove(slot).is_some()));
        let held = |slots: &Slots<i32>| slots.chunks.iter().filter(|chunk| chunk.places.is_some()).count();
        assert!(held(&slots) < 64, "what is free is given back");
        (0..5000).for_each(|value| assert!(slots.add(value) < 5024));
    }
}
