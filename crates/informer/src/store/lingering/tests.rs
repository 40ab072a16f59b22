use std::collections::VecDeque;

use futures_util::FutureExt as _;
use proptest::prelude::*;

use super::*;
use crate::store::StoreWriter;
use crate::store::writer::StoreChange;
use crate::testing::{Thing, thing};

const TIME: Duration = Duration::from_secs(60);

fn lingering_store(objects: usize, bytes: u64, now: Instant) -> (Store<Thing>, StoreWriter<Thing>) {
    let (store, mut writer) = Store::new(1);
    writer.linger(LingerLimits { time: TIME, objects, bytes }, now);
    (store, writer)
}

fn made(name: u8, uid: u64, values: &[u8]) -> Arc<Thing> {
    let mut thing = Arc::unwrap_or_clone(thing(&format!("web/{name}"), uid));
    thing.uid = format!("uid-{uid}");
    thing.values = values.iter().map(u8::to_string).collect();
    Arc::new(thing)
}

fn by_value(thing: &Thing, add: &mut dyn FnMut(&str)) {
    thing.values.iter().for_each(|value| add(value));
}

/// A plain model: the objects by name, and the deleted ones from the first to the last, with their time and size.
#[derive(Default)]
struct Model {
    live: std::collections::BTreeMap<u8, Arc<Thing>>,
    gone: VecDeque<(Instant, u64, Arc<Thing>)>,
    dropped: u64,
}

impl Model {
    fn leaves(&mut self, gone: Arc<Thing>, departure: Departure, (objects, bytes): (usize, u64)) {
        self.gone.push_back((departure.at, departure.bytes, gone));
        while self.gone.len() > objects || self.gone.iter().map(|(_, bytes, _)| bytes).sum::<u64>() > bytes {
            self.gone.pop_front();
            self.dropped += 1;
        }
    }

    fn newest_first(&self, condition: impl Fn(&Thing) -> bool) -> Vec<Arc<Thing>> {
        self.gone.iter().rev().map(|(_, _, thing)| thing.clone()).filter(|thing| condition(thing)).collect()
    }
}

proptest! {
    #[test]
    fn lingering_objects_agree_with_a_plain_model(
        steps in prop::collection::vec((0u8..10, 0u8..6, prop::collection::vec(0u8..4, 0..3)), 1..150),
        objects in 0usize..8,
        bytes in 0u64..80,
        late in 0usize..150,
    ) {
        let began = Instant::now();
        let (store, mut writer) = lingering_store(objects, bytes, began);
        writer.add_index("early", by_value).unwrap();
        let (lingering, mut model) = (Lingering::new(store.clone()), Model::default());
        let limits = (objects, bytes);
        for (at, (step, name, values)) in (0u64..).zip(&steps) {
            let now = began + Duration::from_secs(at * 5);
            let departure = Departure { at: now, bytes: at % 20 };
            let object = made(*name, at, values);
            match step {
                // Another object of the same name, in one change or in a transaction.
                0..4 => {
                    let mut index_values = Values::default();
                    index_values.fill(&writer.functions(), &*object);
                    let change = StoreChange::Put(object.clone(), &index_values, None);
                    drop(writer.make([change].into_iter(), None, Some(departure)));
                    if let Some(old) = model.live.insert(*name, object) {
                        model.leaves(old, departure, limits);
                    }
                }
                // A deletion with a final state.
                4..6 => if let Some(known) = model.live.remove(name) {
                    let mut last = Arc::unwrap_or_clone(known);
                    last.values = object.values.clone();
                    let last = Arc::new(last);
                    let mut index_values = Values::default();
                    index_values.fill(&writer.functions(), &*last);
                    let erased: Arc<dyn Object> = last.clone();
                    let change = StoreChange::Delete(&erased, Some(&index_values));
                    drop(writer.make([change].into_iter(), None, Some(departure)));
                    model.leaves(last, departure, limits);
                },
                // A list without the object.
                6..8 => {
                    let mut transaction = writer.begin();
                    transaction.departs(departure);
                    transaction.delete(object.id().key);
                    writer.commit(transaction).unwrap();
                    if let Some(known) = model.live.remove(name) {
                        model.leaves(known, departure, limits);
                    }
                }
                // The object leaves the scope.
                8 => {
                    writer.remove(object.id().key);
                    model.live.remove(name);
                }
                _ => {
                    drop(writer.expire(now, usize::MAX));
                    model.gone.retain(|(since, _, _)| *since + TIME > now);
                }
            }
            if at as usize == late {
                writer.add_index("late", by_value).unwrap();
            }
            let counts = store.lingering_counts().unwrap();
            prop_assert_eq!((counts.objects, counts.dropped), (model.gone.len(), model.dropped));
            prop_assert_eq!(counts.bytes, model.gone.iter().map(|(_, bytes, _)| bytes).sum::<u64>());
            prop_assert_eq!(store.lingering_ends(), model.gone.front().map(|(since, _, _)| *since + TIME));
            for uid in 0..=at {
                let uid = format!("uid-{uid}");
                prop_assert_eq!(lingering.by_uid(&uid), model.newest_first(|thing| thing.uid == uid).pop());
            }
            for name in 0..6u8 {
                let name = name.to_string();
                let expected = model.newest_first(|thing| thing.name == name);
                prop_assert_eq!(lingering.by_key(("web", &*name)), expected);
            }
            for value in 0..4u8 {
                let value = value.to_string();
                let expected = model.newest_first(|thing| thing.values.contains(&value));
                prop_assert_eq!(lingering.by_index("early", &value), expected.clone());
                if at as usize >= late {
                    prop_assert_eq!(lingering.by_index("late", &value), expected);
                }
            }
            prop_assert_eq!(store.len(), model.live.len());
        }
    }
}

// The transaction was prepared before, so it has the object that was removed meanwhile.
#[test]
fn an_object_that_a_transaction_brings_back_is_removed_again() {
    let now = Instant::now();
    let (store, mut writer) = lingering_store(10, u64::MAX, now);
    writer.put(made(1, 1, &[]));
    let mut deletion = writer.begin();
    deletion.delete(("web", "1").into());
    writer.commit(deletion).unwrap();
    let mut transaction = writer.begin();
    transaction.put(made(2, 2, &[]));
    assert_eq!(writer.expire(now + TIME, 10).len(), 1);
    assert_eq!(store.lingering_ends(), None);
    assert!(store.lingered().now_or_never().is_some() && store.lingered().now_or_never().is_none());
    writer.commit(transaction).unwrap();
    assert_eq!(store.lingering_ends(), Some(now + TIME));
    assert!(store.lingered().now_or_never().is_some(), "the task that frees them is woken");
}

#[test]
fn a_snapshot_does_not_keep_lingering_objects() {
    let now = Instant::now();
    let (store, mut writer) = lingering_store(10, u64::MAX, now);
    let object = made(1, 1, &[]);
    writer.put(object.clone());
    let mut deletion = writer.begin();
    deletion.delete(("web", "1").into());
    writer.commit(deletion).unwrap();
    let snapshot = store.snapshot();
    assert_eq!(Arc::strong_count(&object), 2);
    drop(writer.expire(now + TIME, 10));
    assert_eq!(Arc::strong_count(&object), 1);
    assert!(snapshot.is_empty());
}
