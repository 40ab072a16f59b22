use super::*;
use crate::kinds::Catalog;
use serde_json::json;

const PLENTY: HistoryLimits = HistoryLimits { max_events: 10_000, max_bytes: usize::MAX, max_age: None };

fn config_maps() -> Arc<Resource> {
    Catalog::built_in().named("configmaps").unwrap().clone()
}

/// Performs creates, updates and deletes in turn, one revision each, starting after revision 100.
fn write(collection: &mut Collection, revision: u64, name: &str, present: bool, limits: HistoryLimits) {
    let key = StoreKey::new(Some("default"), name);
    let before = collection.objects().get(&key).cloned();
    let object = json!({"metadata": {"name": name, "namespace": "default"}, "data": {"at": revision.to_string()}});
    let after = present.then(|| {
        Arc::new(
            Draft::encode(&config_maps(), key.clone(), &object, WriteKind::Modified, revision)
                .at(revision, WriteKind::Modified),
        )
    });
    collection.record(&key, StoredEvent::new(revision, Instant::now(), before, after), limits);
}

fn names(objects: &Objects) -> Vec<(String, u64)> {
    objects.values().map(|object| (object.key.name().to_owned(), object.revision)).collect()
}

#[test]
fn every_state_within_the_history_can_be_restored() {
    let mut collection = Collection::new(1, 100);
    let mut states = vec![(100, names(collection.objects()))];
    for revision in 101..1_500 {
        let name = format!("n{}", revision % 7);
        write(&mut collection, revision, &name, revision % 5 != 0, PLENTY);
        states.push((revision, names(collection.objects())));
    }
    for (revision, state) in states {
        assert_eq!(names(&collection.at(revision).unwrap()), state, "at {revision}");
    }
}

#[test]
fn compaction_drops_only_older_revisions() {
    let mut collection = Collection::new(1, 100);
    for revision in 101..=110 {
        write(&mut collection, revision, "a", true, PLENTY);
    }
    collection.compact(105);
    assert_eq!(collection.at(104).unwrap_err(), Forgotten { oldest: 105 });
    assert!(collection.log().has_lost(104));
    assert!(!collection.log().has_lost(105));
    let revisions: Vec<_> = collection.log().unseen(105, 3).iter().map(|event| event.revision).collect();
    assert_eq!(revisions, [106, 107, 108]);
    assert_eq!(collection.log().count_after(108), 2);
}

#[test]
fn full_history_drops_oldest_events() {
    let limits = HistoryLimits { max_events: 3, ..PLENTY };
    let mut collection = Collection::new(1, 100);
    for revision in [102, 104, 106, 108, 110] {
        write(&mut collection, revision, "a", true, limits);
    }
    assert_eq!(collection.horizon(), 105);
    assert_eq!(collection.log().unseen(105, 10).len(), 3);
}

#[test]
fn large_history_drops_oldest_events() {
    let mut collection = Collection::new(1, 100);
    write(&mut collection, 101, "a", true, PLENTY);
    let size = collection.log().unseen(100, 1)[0].size();
    let limits = HistoryLimits { max_bytes: 3 * size, ..PLENTY };
    for revision in [102, 104, 106, 108, 110] {
        write(&mut collection, revision, "a", true, limits);
    }
    assert_eq!((collection.horizon(), collection.log().unseen(105, 10).len()), (105, 3));
    assert!(collection.at(104).is_err() && collection.at(105).is_ok());
    // A delete has the size of its last state, and frees nothing.
    write(&mut collection, 112, "a", false, limits);
    assert_eq!((collection.horizon(), collection.log().unseen(107, 10).len()), (107, 3));
    // Watches still get an event that exceeds the limit alone.
    write(&mut collection, 114, "b", true, HistoryLimits { max_bytes: 1, ..PLENTY });
    assert_eq!((collection.horizon(), collection.log().unseen(113, 10).len()), (113, 1));
    collection.compact(114);
    write(&mut collection, 116, "b", true, limits);
    write(&mut collection, 118, "b", true, limits);
    assert_eq!(
        (collection.horizon(), collection.log().unseen(114, 10).len()),
        (114, 2),
        "what was compacted takes no room"
    );
}

#[tokio::test(start_paused = true)]
async fn old_events_are_dropped_by_age() {
    let limits = HistoryLimits { max_age: Some(Duration::from_secs(10)), ..PLENTY };
    let mut collection = Collection::new(1, 100);
    write(&mut collection, 101, "a", true, limits);
    tokio::time::advance(Duration::from_secs(11)).await;
    collection.trim(limits, Instant::now());
    assert_eq!(collection.horizon(), 101);
    assert!(collection.at(100).is_err());
}
