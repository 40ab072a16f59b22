use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::testing::{Thing, thing};

fn with_values(name: u8, version: u64, values: &[u8]) -> Arc<Thing> {
    let mut thing = Arc::unwrap_or_clone(thing(&format!("web/{name}"), version));
    thing.values = values.iter().map(u8::to_string).collect();
    Arc::new(thing)
}

fn by_value(thing: &Thing, add: &mut dyn FnMut(&str)) {
    thing.values.clone().for_each(add);
}

fn add_index(writer: &mut StoreWriter<Thing>, name: &str) -> Index<Thing> {
    writer.add_index(name, TypeId::of::<fn()>(), index_function(by_value, |_, _| {})).unwrap()
}

/// What an index should say, worked out the slow way.
fn expected(model: &BTreeMap<u8, Arc<Thing>>) -> BTreeMap<String, BTreeSet<String>> {
    let mut index: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for thing in model.values() {
        for value in &thing.values {
            index.entry(value.clone()).or_default().insert(thing.name.clone());
        }
    }
    index
}

fn contents(index: &Index<Thing>) -> BTreeMap<String, BTreeSet<String>> {
    let names = |value: &str| index.get(value).iter().map(|thing| thing.name.clone()).collect::<BTreeSet<_>>();
    index.values().into_iter().map(|value| (value.clone(), names(&value))).collect()
}

proptest! {
    // I-4, I-5, I-8, G-5, ★57.
    #[test]
    fn indexes_and_snapshots_agree_with_a_plain_model(
        steps in prop::collection::vec((0u8..8, 0u8..60, prop::collection::vec(0u8..5, 0..4)), 1..400),
        late in 0usize..400,
    ) {
        let (store, mut writer) = Store::new(1);
        let early = add_index(&mut writer, "early");
        let (mut model, mut snapshots, mut late_index) = (BTreeMap::new(), Vec::new(), None);
        for (at, (step, name, values)) in steps.iter().enumerate() {
            let object = with_values(*name, at as u64 + 1, values);
            match step {
                0..=3 => prop_assert_eq!(writer.put(object.clone()), model.insert(*name, object)),
                4 | 5 => prop_assert_eq!(writer.remove(("web", &*name.to_string())), model.remove(name)),
                6 => writer.transaction(|store| {
                    store.put(object.clone());
                    model.insert(*name, object);
                }),
                _ => snapshots.push((store.snapshot(), model.clone())),
            }
            if at == late {
                late_index = Some(add_index(&mut writer, "late"));
            }
        }
        prop_assert_eq!(contents(&early), expected(&model));
        if let Some(index) = late_index {
            prop_assert_eq!(contents(&index), expected(&model));
        }
        for (snapshot, model) in snapshots {
            prop_assert_eq!(snapshot.len(), model.len());
            for thing in model.values() {
                prop_assert!(Arc::ptr_eq(snapshot.get(thing.id().key).unwrap(), thing));
            }
            for (value, names) in expected(&model) {
                let found: BTreeSet<_> = snapshot.by_index("early", &value).map(|thing| thing.name.clone()).collect();
                prop_assert_eq!(found, names);
            }
        }
    }
}

#[test]
fn a_transaction_is_seen_all_at_once_or_not_at_all() {
    let (store, mut writer) = Store::new(1);
    writer.put(thing("web/a", 1));
    writer.transaction(|inside| {
        inside.remove("web/a");
        inside.put(thing("web/b", 2));
        assert!(store.contains("web/a") && !store.contains("web/b"));
    });
    assert!(!store.contains("web/a") && store.contains("web/b"));
}

// I-7, B-19.
#[test]
fn a_panicking_index_function_skips_the_object_and_is_reported() {
    let (store, mut writer) = Store::new(1);
    let reported = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let function = |thing: &Thing, add: &mut dyn FnMut(&str)| {
        add("before");
        assert!(thing.name != "bad", "cannot take {}", thing.name);
        add(&thing.name);
    };
    let report = {
        let reported = reported.clone();
        move |key: KeyRef<'_>, message: String| reported.lock().push((key.to_string(), message))
    };
    let index = writer.add_index("name", TypeId::of::<u8>(), index_function(function, report)).unwrap();
    writer.put(thing("web/bad", 1));
    writer.put(thing("web/good", 2));
    assert_eq!(index.values(), ["before", "good"]);
    assert_eq!(index.count("before"), 1, "nothing of a failed call is kept");
    assert_eq!(store.len(), 2);
    assert_eq!(*reported.lock(), [("web/bad".to_owned(), "cannot take bad".to_owned())]);
}

// I-8, decision 22.
#[test]
fn an_index_name_belongs_to_one_function() {
    let (_, mut writer) = Store::<Thing>::new(1);
    add_index(&mut writer, "value");
    assert_eq!(add_index(&mut writer, "value").name(), "value".into());
    let other = writer.add_index("value", TypeId::of::<u8>(), index_function(by_value, |_, _| {}));
    assert_eq!(other.unwrap_err(), IndexError::Exists("value".to_owned()));
}
