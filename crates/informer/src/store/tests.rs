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
    thing.values.iter().for_each(|value| add(value));
}

fn add_index(writer: &mut StoreWriter<Thing>, name: &str) -> Index<Thing> {
    writer.add_index(name, by_value).unwrap()
}

/// Computes the expected content of an index from the model.
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
                prop_assert!(Arc::ptr_eq(&snapshot.get_arc(thing.id().key).unwrap(), thing));
            }
            for (value, names) in expected(&model) {
                let found: BTreeSet<_> = snapshot.by_index("early", &value).map(|thing| thing.name.clone()).collect();
                prop_assert_eq!(found, names);
            }
        }
    }
}

#[test]
fn readers_see_all_of_a_transaction_or_nothing() {
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
    let function = |thing: &Thing, add: &mut dyn FnMut(&str)| {
        add("before");
        assert!(thing.name != "bad", "cannot take {}", thing.name);
        add(&thing.name);
    };
    let index = writer.add_index("name", function).unwrap();
    let mut transaction = writer.begin();
    transaction.put(thing("web/bad", 1));
    transaction.put(thing("web/good", 2));
    let (_, failures) = writer.commit(transaction).unwrap();
    assert_eq!(index.values(), ["before", "good"]);
    assert_eq!(index.count("before"), 1, "nothing of a failed call is kept");
    assert_eq!(store.len(), 2);
    let failures: Vec<_> = failures.into_iter().map(|failure| (failure.key.to_string(), failure.message)).collect();
    assert_eq!(failures, [("web/bad".to_owned(), "cannot take bad".to_owned())]);
}

// I-8, decision 22.
#[test]
fn an_index_name_belongs_to_one_function() {
    let (_, mut writer) = Store::<Thing>::new(1);
    add_index(&mut writer, "value");
    assert_eq!(add_index(&mut writer, "value").name(), "value".into());
    let other = writer.add_index("value", |_: &Thing, _: &mut dyn FnMut(&str)| {});
    assert_eq!(other.unwrap_err(), IndexError::Exists("value".to_owned()));
}

#[test]
fn closures_of_one_type_with_different_captures_are_different_functions() {
    let (_, mut writer) = Store::<Thing>::new(1);
    let prefixed =
        |prefix: &'static str| move |thing: &Thing, add: &mut dyn FnMut(&str)| add(&(prefix.to_owned() + &thing.name));
    writer.add_index("name", prefixed("a-")).unwrap();
    assert_eq!(writer.add_index("name", prefixed("b-")).unwrap_err(), IndexError::Exists("name".to_owned()));
    type Pointer = fn(&Thing, &mut dyn FnMut(&str));
    let pointer: Pointer = by_value;
    writer.add_index("value", pointer).unwrap();
    assert_eq!(writer.add_index("value", pointer).unwrap_err(), IndexError::Exists("value".to_owned()));
}

// Decision 28: readers never wait for user code, and user code may read.
#[test]
fn an_index_function_may_read_its_own_store() {
    let (store, mut writer) = Store::new(1);
    writer.put(thing("web/a", 1));
    let reads = store.clone();
    let index =
        writer.add_index("size", move |_: &Thing, add: &mut dyn FnMut(&str)| add(&reads.len().to_string())).unwrap();
    writer.put(thing("web/b", 2));
    writer.transaction(|transaction| transaction.put(thing("web/c", 3)));
    assert_eq!(index.values(), ["1", "2"]);
}

// Decision 28: the index values of an object are stored, not computed again.
#[test]
fn an_inconsistent_index_function_leaves_no_stale_value() {
    let (_, mut writer) = Store::new(1);
    let calls = std::sync::atomic::AtomicU32::new(0);
    let index = writer
        .add_index("call", move |_: &Thing, add: &mut dyn FnMut(&str)| {
            add(&calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed).to_string());
        })
        .unwrap();
    for version in 1..5 {
        writer.put(thing("web/a", version));
        assert_eq!(index.values().len(), 1);
    }
    assert_eq!(index.values(), ["3"], "called once a change");
    writer.remove("web/a");
    assert_eq!(index.values(), [""; 0]);
}

#[test]
fn changes_that_overtake_a_new_index_are_not_undone() {
    let (store, mut writer) = Store::new(1);
    writer.put(thing("web/a", 5));
    writer.set_version(Some("5".into()));
    let filled = writer.begin().add_index("late", Some(TypeId::of::<()>()), index_function(by_value)).unwrap().unwrap();
    writer.set_version(Some("9".into()));
    assert!(writer.commit(filled).is_err(), "a bookmark came meanwhile");
    assert_eq!(store.version(), Some("9".into()));
}
