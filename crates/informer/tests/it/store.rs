//! The store and its indexes always agree, and keep no deleted objects.

use kube_informer::{Event, IndexError, InformerError, Object as _, SharedInformer, Store};
use std::sync::Arc;

use crate::script::{
    Act::{self, Fail, StayOpen},
    Script, TestInformer, Thing, added, deleted, gone, live, thing,
};
use kube_informer::parts::{Decoded, WatchEvent};

fn by_value(thing: &Thing) -> Vec<String> {
    thing.values.clone()
}

fn keys(things: Vec<Arc<Thing>>) -> Vec<String> {
    let mut keys: Vec<String> = things.iter().map(|thing| thing.id().key.to_string()).collect();
    keys.sort();
    keys
}

fn changed(thing: Thing) -> Act {
    Act::Event(WatchEvent::Modified(Decoded::Object(thing)))
}

// I-6, I-8.
#[tokio::test(start_paused = true)]
async fn star_47_an_index_is_correct_after_sync_after_changes_and_when_added_later() {
    let (feed, events) = live();
    let script = Script::new()
        .list_things("10", [thing("web/a@1").with(["red"]), thing("web/b@2").with(["red", "blue"])])
        .watch([events]);
    let informer = TestInformer::new(script, |options| options);
    let colours = informer.informer.add_index("colour", by_value).unwrap();
    informer.informer.start().unwrap();
    informer.synced().await;
    assert_eq!(keys(colours.get("red")), ["web/a", "web/b"]);
    assert_eq!(keys(colours.get("blue")), ["web/b"]);
    assert_eq!(keys(colours.get("green")), [""; 0], "an unknown value gives an empty result");

    feed.send(changed(thing("web/c@11").with(["green", "red"]))).unwrap();
    informer.delivered_through("11").await;
    assert_eq!(keys(colours.get("red")), ["web/a", "web/b", "web/c"]);
    assert_eq!(colours.values(), ["blue", "green", "red"]);

    let namespaces = informer.informer.add_index("home", |thing: &Thing| thing.id().key.namespace().map(str::to_owned));
    let namespaces = namespaces.unwrap();
    assert_eq!(
        keys(namespaces.get("web")),
        ["web/a", "web/b", "web/c"],
        "the index is filled before `add_index` returns"
    );
    feed.send(added("db/a@12")).unwrap();
    informer.delivered_through("12").await;
    assert_eq!(namespaces.values(), ["db", "web"]);
    assert_eq!(namespaces.count("db"), 1);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn star_47_an_index_is_correct_after_a_relist() {
    let script = Script::new()
        .list_things("10", [thing("web/a@1").with(["red"]), thing("web/b@2").with(["red"])])
        .watch([Fail(gone())])
        .list_things("20", [thing("web/b@12").with(["blue"]), thing("web/c@13").with(["red"])])
        .watch([StayOpen]);
    let informer = TestInformer::new(script, |options| options);
    let colours = informer.informer.add_index("colour", by_value).unwrap();
    informer.informer.start().unwrap();
    informer.delivered_through("20").await;
    assert_eq!((keys(colours.get("red")), keys(colours.get("blue"))), (vec!["web/c".into()], vec!["web/b".into()]));
    informer.stop().await;
}

// I-8. Differs: adding the same function under the same name returns the same index instead of an error.
#[test]
fn star_47_an_index_name_belongs_to_one_function() {
    let informer = SharedInformer::builder(Script::new()).build();
    let first = informer.add_index("colour", by_value).unwrap();
    let again = informer.add_index("colour", by_value).unwrap();
    assert_eq!(first.name(), again.name());
    let other = informer.add_index("colour", |_: &Thing| None::<String>);
    assert_eq!(other.map(|_| ()), Err(IndexError::Exists("colour".into())));
}

// I-4, I-5.
#[tokio::test(start_paused = true)]
async fn star_57_an_index_follows_objects_with_many_values_and_removes_unused_values() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", []).watch([events]));
    let colours = informer.informer.add_index("colour", by_value).unwrap();
    let steps: [(Act, &str, &[&str]); 6] = [
        (changed(thing("web/a@11").with(["red", "blue", "red"])), "11", &["blue", "red"]),
        (changed(thing("web/b@12").with(["red"])), "12", &["blue", "red"]),
        (changed(thing("web/a@13").with(["green"])), "13", &["green", "red"]),
        (deleted("web/b@14"), "14", &["green"]),
        (changed(thing("web/a@15")), "15", &[]),
        (deleted("web/a@16"), "16", &[]),
    ];
    for (act, version, values) in steps {
        feed.send(act).unwrap();
        informer.delivered_through(version).await;
        assert_eq!(colours.values(), values, "at {version}");
        for value in values {
            assert!(colours.count(value) > 0 && colours.get(value).len() == colours.count(value));
        }
    }
    informer.stop().await;
}

// I-1, I-10. Differs: the caller of the writer sets the version, and the informer keeps it from going back.
#[test]
fn star_57_a_store_holds_the_latest_object_of_each_key_and_the_version_that_was_set() {
    let (store, mut writer) = Store::<Thing>::new(1);
    assert_eq!(store.version(), None);
    assert!(writer.put(Arc::new(thing("web/a@1"))).is_none());
    assert_eq!(writer.put(Arc::new(thing("web/a@2"))).unwrap().id().version, "1");
    assert_eq!(store.len(), 1);
    assert!(writer.remove("web/never").is_none(), "removing an unknown key is no error");
    let before = store.snapshot();
    writer.transaction(|store| {
        store.remove("web/a");
        store.put(Arc::new(thing("web/b@3")));
        store.set_version(Some("3".into()));
    });
    assert_eq!((store.contains("web/a"), store.contains("web/b")), (false, true));
    assert_eq!(store.version(), Some("3".into()));
    assert_eq!((before.len(), before.get("web/a").unwrap().id().version), (1, "2"), "a snapshot does not change");
    writer.set_version(None);
    assert_eq!(store.version(), None);
}

// B-19: in client-go an index function that fails ends the process while it holds a lock.
#[tokio::test(start_paused = true)]
async fn b_19_an_index_function_that_panics_is_reported_and_skips_only_that_object() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/good@1", "web/evil@2"]).watch([events]));
    let names = informer.informer.add_index("name", |thing: &Thing| {
        let name = thing.id().key.name().to_owned();
        assert_ne!(name, "evil", "the index function panics on this object");
        name
    });
    let names = names.unwrap();
    informer.synced().await;
    feed.send(added("web/other@11")).unwrap();
    informer.delivered_through("11").await;
    assert_eq!(names.values(), ["good", "other"]);
    assert_eq!(informer.keys(), ["web/evil", "web/good", "web/other"], "the object is in the store");
    let errors = informer.errors();
    let evil = |error: &InformerError| matches!(error, InformerError::Index { key, .. } if key.as_str() == "web/evil");
    assert!(!errors.is_empty() && errors.iter().all(evil), "{errors:?}");
    informer.stop().await;
}

// B-16: in client-go a late handler blocks all others while it is sent the objects of the store.
#[tokio::test(start_paused = true)]
async fn b_16_a_held_snapshot_blocks_no_writer() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([events]));
    informer.synced().await;
    let held = informer.informer.store().snapshot();
    feed.send(added("web/b@11")).unwrap();
    informer.delivered_through("11").await;
    assert_eq!((held.len(), informer.informer.store().len()), (1, 2));
    assert_eq!(held.version().map(ToString::to_string).as_deref(), Some("10"));
    informer.stop().await;
}

// A list becomes visible in one step, also to a reader inside a handler.
#[tokio::test(start_paused = true)]
async fn readers_see_all_of_a_first_list_or_nothing() {
    let names: Vec<String> = (1..=600).map(|number| format!("web/{number}@{number}")).collect();
    let script = Script::new().list_things("1000", names.iter().map(|name| thing(name))).watch([StayOpen]);
    let informer = TestInformer::new(script, |options| options);
    let (store, sizes) = (informer.informer.store(), Arc::new(parking_lot::Mutex::new(Vec::new())));
    let seen = sizes.clone();
    informer.informer.on_event(move |_: Event<Thing>| seen.lock().push(store.len()));
    assert_eq!(informer.informer.store().len(), 0);
    informer.informer.start().unwrap();
    informer.synced().await;
    crate::script::quiet().await;
    assert_eq!(*sizes.lock(), [600; 600]);
    informer.stop().await;
}

// As in an index of config maps by their data keys. Each state has all of these values, and some of them twice.
#[test]
fn an_object_may_have_any_number_of_values_in_an_index() {
    let (store, mut writer) = Store::new(0);
    let index = writer
        .add_index("values", |thing: &Thing, add| thing.values.iter().chain(&thing.values).for_each(|value| add(value)))
        .unwrap();
    let values = |numbers: std::ops::Range<usize>| numbers.map(|number| format!("v{number}")).collect::<Vec<_>>();
    let count = |value: &str| index.get(value).len();
    for numbers in [0..3, 0..40_000, 20_000..60_000, 59_990..60_002] {
        let mut thing = thing("web/a@1");
        thing.values = values(numbers.clone());
        writer.put(Arc::new(thing));
        assert_eq!(index.values().len(), numbers.len());
        assert!([numbers.start, numbers.end - 1].into_iter().all(|number| count(&format!("v{number}")) == 1));
    }
    writer.remove("web/a");
    assert_eq!((index.values().len(), store.len()), (0, 0));
}
