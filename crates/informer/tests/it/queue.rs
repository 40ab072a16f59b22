//! The ordered queue returns every delta once, in order, in batches that can be applied in one step.

use std::sync::Arc;

use kube_informer::parts::{Delta, ListMark, OrderedQueue, Replacement};
use proptest::prelude::*;

use crate::script::{Thing, describe, thing};

fn added(text: &str) -> Delta<Thing> {
    Delta::Added(Arc::new(thing(text)))
}

fn updated(text: &str) -> Delta<Thing> {
    Delta::Updated(Arc::new(thing(text)))
}

fn deleted(text: &str) -> Delta<Thing> {
    Delta::Deleted(Arc::new(thing(text)))
}

fn bookmark(version: &str) -> Delta<Thing> {
    Delta::Bookmark { scope: None, version: version.into() }
}

fn replaced<const N: usize>(version: &str, objects: [&str; N]) -> Delta<Thing> {
    let objects = objects.iter().map(|text| Arc::new(thing(text))).collect();
    let mark = ListMark { version: Some(version.into()), ..ListMark::default() };
    Delta::Replaced(Replacement { mark, objects, undecodable: Vec::new() })
}

fn queue(deltas: impl IntoIterator<Item = Delta<Thing>>) -> OrderedQueue<Thing> {
    let mut queue = OrderedQueue::new();
    deltas.into_iter().for_each(|delta| queue.push(delta));
    queue
}

/// Returns all deltas of the queue, one list for each batch.
fn batches(queue: &mut OrderedQueue<Thing>) -> Vec<Vec<String>> {
    let mut batches = Vec::new();
    while !queue.is_empty() {
        batches.push(queue.pop_batch().iter().map(describe).collect());
        queue.processed();
    }
    batches
}

// whether a queue is synced, step by step.
#[test]
fn star_37_synced_is_true_once_the_first_population_is_popped_and_processed() {
    let empty = OrderedQueue::<Thing>::new();
    assert!(!empty.has_synced(), "nothing was pushed");

    assert!(queue([added("web/a@1")]).has_synced(), "an event before any list: there is no first population");
    assert!(queue([deleted("web/a@1")]).has_synced());
    assert!(!queue([bookmark("1")]).has_synced(), "a bookmark populates nothing");
    assert!(!queue([Delta::Resync]).has_synced());

    // An empty list counts once it is processed.
    for list in [replaced("5", []), replaced("5", ["web/a@1", "web/b@2"])] {
        let mut queue = queue([list, added("web/c@6")]);
        assert!(!queue.has_synced(), "not popped");
        assert_eq!(queue.pop_batch().len(), 1);
        assert!(!queue.has_synced(), "popped, but not processed");
        queue.processed();
        assert!(queue.has_synced());
        queue.push(replaced("7", ["web/d@7"]));
        assert!(queue.has_synced(), "synced does not go back");
    }

    // A delta in front of the first list belongs to the first population.
    let mut queue = queue([bookmark("1"), replaced("5", [])]);
    queue.pop_batch();
    queue.processed();
    assert!(!queue.has_synced());
    queue.pop_batch();
    queue.processed();
    assert!(queue.has_synced());
}

#[test]
fn star_37_synced_also_waits_for_a_list_that_is_pushed_during_processing() {
    let mut queue = queue([bookmark("1")]);
    assert_eq!(queue.pop_batch().len(), 1);
    queue.push(replaced("5", ["web/a@1"]));
    queue.processed();
    assert!(!queue.has_synced(), "only the bookmark was processed");
    queue.pop_batch();
    queue.processed();
    assert!(queue.has_synced());
}

// Keys can always be computed here.
#[test]
fn star_39_a_batch_ends_before_a_repeated_key_and_around_deltas_of_many_objects() {
    let check = |deltas: Vec<Delta<Thing>>, expected: &[&[&str]]| assert_eq!(batches(&mut queue(deltas)), expected);
    check(vec![], &[]);
    // Deltas of different objects share a batch, whatever their kind.
    check(
        vec![added("web/a@1"), updated("web/b@2"), deleted("web/c@3")],
        &[&["added web/a@1", "updated web/b@2", "deleted web/c@3"]],
    );
    // Two deltas of one object do not.
    check(
        vec![added("web/a@1"), added("web/b@2"), updated("web/a@3"), added("web/c@4")],
        &[&["added web/a@1", "added web/b@2"], &["updated web/a@3", "added web/c@4"]],
    );
    // The same name in another namespace is another object.
    check(vec![added("web/a@1"), added("db/a@2"), added("a@3")], &[&["added web/a@1", "added db/a@2", "added a@3"]]);
    // A delta of many objects, or of none, is a batch of its own, wherever it is.
    check(
        vec![replaced("5", ["web/a@1"]), added("web/b@6"), bookmark("7"), added("web/c@8"), Delta::Resync],
        &[&["replaced 5: web/a@1"], &["added web/b@6"], &["bookmark 7"], &["added web/c@8"], &["resync"]],
    );
    check(
        vec![Delta::Restarted { scope: None }, replaced("5", []), replaced("6", [])],
        &[&["restarted"], &["replaced 5: "], &["replaced 6: "]],
    );
    // A delete that has only a key is a batch of its own, too.
    check(
        vec![Delta::Vanished { key: "web/a".parse().unwrap(), version: None }, added("web/a@2")],
        &[&["vanished web/a"], &["added web/a@2"]],
    );
}

#[test]
fn star_39_a_batch_holds_256_changes_at_most() {
    let many = (0..600).map(|number| added(&format!("web/{number}@{number}")));
    let mut queue = queue(many);
    let sizes: Vec<usize> = batches(&mut queue).iter().map(Vec::len).collect();
    assert_eq!(sizes, [256, 256, 88]);
}

#[test]
fn star_40_a_list_is_one_delta_in_its_place_even_if_it_is_repeated_or_empty() {
    let mut queue = queue([
        added("web/a@1"),
        replaced("5", ["web/a@1", "web/b@2"]),
        bookmark("6"),
        replaced("7", []),
        replaced("7", []),
        updated("web/a@8"),
    ]);
    assert_eq!(queue.len(), 6);
    let expected: [&[&str]; 6] = [
        &["added web/a@1"],
        &["replaced 5: web/a@1 web/b@2"],
        &["bookmark 6"],
        &["replaced 7: "],
        &["replaced 7: "],
        &["updated web/a@8"],
    ];
    assert_eq!(batches(&mut queue), expected);
    assert!(queue.pop_batch().is_empty());
}

/// Returns a change to one of a few objects, or to all of them. `None` is a pop.
fn step(kind: u8, name: u8) -> Option<Delta<Thing>> {
    let name = format!("web/{name}@1");
    match kind {
        0..=2 => Some(added(&name)),
        3..=4 => Some(updated(&name)),
        5 => Some(deleted(&name)),
        6 => Some(bookmark("1")),
        7 => Some(Delta::Resync),
        8 => Some(replaced("1", [])),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    // compared with a plain list: pushes and pops in any order.
    #[test]
    fn the_batches_together_are_the_pushed_deltas_and_no_batch_repeats_a_key(
        steps in prop::collection::vec((0..12_u8, 0..6_u8), 0..200)
    ) {
        let mut queue = OrderedQueue::new();
        let (mut pushed, mut popped) = (Vec::<String>::new(), Vec::<String>::new());
        // How many must be processed before the queue is synced; `None` before the first list or event.
        let (mut first_population, mut processed) = (None, 0);
        for (kind, name) in steps {
            match step(kind, name) {
                Some(delta) => {
                    pushed.push(describe(&delta));
                    if first_population.is_none() {
                        if matches!(delta, Delta::Replaced(_)) {
                            first_population = Some(pushed.len());
                        } else if delta.key().is_some() {
                            first_population = Some(0);
                        }
                    }
                    queue.push(delta);
                }
                None => {
                    let waiting = queue.len();
                    let batch = queue.pop_batch();
                    prop_assert_eq!(batch.is_empty(), waiting == 0);
                    prop_assert_eq!(queue.len() + batch.len(), waiting);
                    prop_assert!(batch.len() == 1 || batch.iter().all(|delta| delta.key().is_some()));
                    let mut keys: Vec<_> = batch.iter().filter_map(Delta::key).collect();
                    keys.sort();
                    keys.dedup();
                    prop_assert!(batch.len() <= 1 || keys.len() == batch.len(), "a key occurs twice");
                    let boundary = first_population.unwrap_or(0);
                    prop_assert!(processed >= boundary || processed + batch.len() <= boundary, "beyond the first list");
                    popped.extend(batch.iter().map(describe));
                    if processed < boundary {
                        prop_assert!(!queue.has_synced(), "synced while a batch is not processed");
                    }
                    queue.processed();
                    processed = popped.len();
                }
            }
            prop_assert_eq!(queue.has_synced(), first_population.is_some_and(|count| processed >= count));
        }
        while !queue.is_empty() {
            popped.extend(queue.pop_batch().iter().map(describe));
            queue.processed();
        }
        prop_assert_eq!(popped, pushed);
    }
}
