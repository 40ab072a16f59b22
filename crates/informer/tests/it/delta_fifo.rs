//! `DeltaFifo`, the queue of client-go: it keeps all deltas of one object together, and objects in the order of their
//! first delta.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube_informer::parts::{Delta, DeltaFifo, DeltaQueue, KeyDelta, ListMark, Replacement, StoreWriter};
use kube_informer::{Deleted, KeyRef, Object as _, ObjectKey, Store};
use proptest::prelude::*;

use crate::script::{Thing, bad, describe_batch, thing};

/// One call to the queue.
enum Call {
    Add(&'static str),
    Update(&'static str),
    Delete(&'static str),
    /// A delete for which only the last known state is available.
    Tombstone(&'static str),
    Replace(&'static [&'static str]),
    Resync,
}

use Call::{Add, Delete, Replace, Resync, Tombstone, Update};

fn object(text: &str) -> Arc<Thing> {
    Arc::new(thing(text))
}

/// Returns a store that holds these objects.
fn store(known: &[&str]) -> (Store<Thing>, StoreWriter<Thing>) {
    let (store, mut writer) = Store::new(0);
    known.iter().for_each(|text| drop(writer.put(object(text))));
    (store, writer)
}

fn make(queue: &mut DeltaFifo<Thing>, call: &Call, known: &Store<Thing>) {
    let known = known.snapshot();
    match call {
        Add(text) => queue.add(object(text)),
        Update(text) => queue.update(object(text)),
        Delete(text) => queue.delete(Deleted::Final(object(text)), &known),
        Tombstone(text) => queue.delete(Deleted::Unknown(object(text)), &known),
        Replace(texts) => queue.replace(texts.iter().map(|text| object(text)).collect(), &known),
        Resync => queue.resync(&known),
    }
}

/// Returns what the queue returns after these calls, one line per object. `known` are the objects in the store.
fn popped(known: &[&str], calls: &[Call]) -> Vec<String> {
    let (store, _writer) = store(known);
    let mut queue = DeltaFifo::new().emit_replaced(true);
    calls.iter().for_each(|call| make(&mut queue, call, &store));
    let mut lines = Vec::new();
    while let Some((_, deltas)) = queue.pop() {
        lines.push(deltas.iter().map(|delta| format!("{delta:?}")).collect::<Vec<_>>().join(" "));
    }
    lines
}

fn check(known: &[&str], calls: &[Call], expected: &[&str]) {
    assert_eq!(popped(known, calls), expected);
}

//
#[test]
fn star_31_a_queued_delete_stays_and_the_listed_object_follows_it() {
    check(&["a@1"], &[Delete("a@2"), Replace(&["a@3"])], &["Deleted(a@2, final) Replaced(a@3)"]);
    check(&["a@1"], &[Tombstone("a@1"), Replace(&["a@3"])], &["Deleted(a@1, last known) Replaced(a@3)"]);
}

// Q-20 (a), in the order of 2.5.3.
#[test]
fn star_32_a_queued_object_that_is_not_listed_is_deleted_once_in_its_newest_state() {
    check(&[], &[Add("a@1"), Replace(&[])], &["Added(a@1) Deleted(a@1, last known)"]);
    check(&[], &[Add("a@1"), Replace(&[]), Replace(&[])], &["Added(a@1) Deleted(a@1, last known)"]);
    check(&[], &[Add("a@1"), Delete("a@2"), Replace(&[])], &["Added(a@1) Deleted(a@2, final)"]);
    check(&[], &[Replace(&["a@1"]), Replace(&[]), Replace(&[])], &["Replaced(a@1) Deleted(a@1, last known)"]);
    check(&[], &[Add("a@1"), Update("a@2"), Replace(&[])], &["Added(a@1) Updated(a@2) Deleted(a@2, last known)"]);
    let again = &["Added(a@1) Deleted(a@2, final) Added(a@3) Deleted(a@3, last known)"];
    check(&[], &[Add("a@1"), Delete("a@2"), Add("a@3"), Replace(&[])], again);
    let both = &["Added(a@1) Deleted(a@1, last known)", "Replaced(b@2)"];
    check(&[], &[Add("a@1"), Replace(&["b@2"])], both);
}

// Q-20 as of 2.5.3: listed objects come before tombstones, unless the key is queued already.
#[test]
fn star_35_objects_missing_from_a_list_are_deleted_in_their_newest_state_after_the_listed_ones() {
    let known = &["bar@6", "baz@7", "foo@5"];
    let deleted = &["Deleted(baz@10, final)", "Replaced(foo@8)", "Deleted(bar@6, last known)"];
    check(known, &[Delete("baz@10"), Replace(&["foo@8"])], deleted);
    let queued = &["Updated(baz@10) Deleted(baz@10, last known)", "Replaced(foo@8)", "Deleted(bar@6, last known)"];
    check(known, &[Update("baz@10"), Replace(&["foo@8"])], queued);
    let made_again = &["Deleted(baz@9, final) Added(baz@10) Deleted(baz@10, last known)", "Replaced(foo@8)"];
    check(&["baz@7", "foo@5"], &[Delete("baz@9"), Add("baz@10"), Replace(&["foo@8"])], made_again);
    let listed_twice = &["Replaced(foo@8) Replaced(foo@8)", "Replaced(bar@9) Deleted(bar@9, last known)"];
    check(&["bar@6", "foo@5"], &[Replace(&["foo@8", "bar@9"]), Replace(&["foo@8"])], listed_twice);
    let nothing_known = &["Added(baz@10) Deleted(baz@10, last known)", "Replaced(foo@5)"];
    check(&[], &[Add("baz@10"), Replace(&["foo@5"])], nothing_known);
}

//
#[test]
fn star_36_a_resync_skips_objects_with_queued_deltas() {
    check(&["a@1"], &[Update("a@2"), Resync], &["Updated(a@2)"]);
    check(&["a@1"], &[Delete("a@2"), Resync], &["Deleted(a@2, final)"]);
    check(&["a@1"], &[Replace(&["a@1"]), Resync], &["Replaced(a@1)"]);
    check(&["a@1"], &[Resync], &["Sync(a@1)"]);
    check(&["a@1"], &[Resync, Resync, Update("a@2")], &["Sync(a@1) Updated(a@2)"]);
}

#[test]
fn only_adjacent_deletes_collapse_and_a_final_state_is_preferred() {
    check(&["a@1"], &[Delete("a@2"), Delete("a@3")], &["Deleted(a@2, final)"]);
    check(&["a@1"], &[Delete("a@2"), Tombstone("a@1")], &["Deleted(a@2, final)"]);
    check(&["a@1"], &[Tombstone("a@1"), Delete("a@2")], &["Deleted(a@2, final)"]);
    check(&["a@1"], &[Tombstone("a@1"), Tombstone("a@1")], &["Deleted(a@1, last known)"]);
    let all = &["Updated(a@2) Updated(a@2) Added(a@2) Deleted(a@3, final) Added(a@4)"];
    check(&["a@1"], &[Update("a@2"), Update("a@2"), Add("a@2"), Delete("a@3"), Add("a@4")], all);
}

#[test]
fn deletes_of_objects_that_are_neither_queued_nor_known_are_ignored() {
    check(&[], &[Delete("a@2"), Tombstone("b@1")], &[]);
    check(&[], &[Add("a@1"), Delete("a@2")], &["Added(a@1) Deleted(a@2, final)"]);
}

#[test]
fn listed_objects_become_sync_deltas_by_default() {
    let (store, _writer) = store(&[]);
    let mut queue = DeltaFifo::new();
    make(&mut queue, &Replace(&["a@1"]), &store);
    assert!(matches!(queue.get("a"), Some([KeyDelta::Sync(_)])));
}

#[test]
fn queued_deltas_can_be_read_and_a_closed_queue_accepts_none() {
    let (store, _writer) = store(&["c@3"]);
    let mut queue = DeltaFifo::new();
    for call in [Add("b@1"), Add("a@2"), Update("b@4"), Delete("c@5")] {
        make(&mut queue, &call, &store);
    }
    let newest = |key: &KeyRef<'_>| format!("{:?}", queue.get(*key).unwrap().last().unwrap());
    let all: Vec<String> = queue.keys().iter().map(newest).collect();
    assert_eq!(all, ["Updated(b@4)", "Added(a@2)", "Deleted(c@5, final)"], "the newest delta of each key");
    assert_eq!(queue.keys().iter().map(ToString::to_string).collect::<Vec<_>>(), ["b", "a", "c"]);
    assert_eq!(queue.get("b").map(<[_]>::len), Some(2));
    assert!(queue.get("d").is_none());
    assert_eq!(queue.len(), 3);
    queue.close();
    for call in [Add("d@6"), Update("a@7"), Replace(&[]), Resync] {
        make(&mut queue, &call, &store);
    }
    assert!(queue.is_closed());
    assert_eq!(queue.pop().map(|(key, deltas)| (key.to_string(), deltas.len())), Some(("b".to_owned(), 2)));
    assert_eq!(queue.pop().map(|(key, deltas)| (key.to_string(), deltas.len())), Some(("a".to_owned(), 1)));
    assert_eq!(queue.pop().map(|(key, deltas)| (key.to_string(), deltas.len())), Some(("c".to_owned(), 1)));
    assert!(queue.pop().is_none() && queue.is_empty());
}

#[test]
fn deltas_that_could_not_be_processed_are_put_back_unless_newer_ones_are_queued() {
    let (store, _writer) = store(&[]);
    let mut queue = DeltaFifo::new();
    make(&mut queue, &Add("a@1"), &store);
    make(&mut queue, &Add("b@2"), &store);
    let (key, deltas) = queue.pop().unwrap();
    queue.add_if_absent(key, deltas);
    assert_eq!(
        queue.keys().iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["b", "a"],
        "a batch is put back behind the others"
    );
    let (key, deltas) = queue.pop().unwrap();
    make(&mut queue, &Update("b@3"), &store);
    queue.add_if_absent(key, deltas);
    assert_eq!(format!("{:?}", queue.get("b").unwrap()), "[Updated(b@3)]");
}

// Differs from client-go's `DeltaFIFO`: the popped objects must also be processed.
#[test]
fn star_37_per_object_synced_is_true_once_the_first_population_is_processed() {
    // The known objects, the calls, and how many objects must then be processed. `None`: the queue is not populated.
    let table: &[(&[&str], &[Call], Option<usize>)] = &[
        (&[], &[], None),
        (&["a@1"], &[Resync], None),
        (&[], &[Add("a@1")], Some(0)),
        (&[], &[Update("a@1")], Some(0)),
        (&[], &[Delete("a@1")], Some(0)),
        (&[], &[Replace(&[])], Some(0)),
        (&[], &[Replace(&["a@1", "b@2"])], Some(2)),
        (&[], &[Replace(&["a@1", "b@2"]), Add("c@3")], Some(2)),
        (&[], &[Replace(&["a@1"]), Replace(&["b@2"])], Some(1)),
        (&[], &[Replace(&[]), Replace(&["b@2"])], Some(0)),
        (&[], &[Add("a@1"), Replace(&["b@2"])], Some(0)),
        (&["x@1"], &[Replace(&["a@2"])], Some(2)),
        (&["x@1"], &[Replace(&[])], Some(1)),
    ];
    for (at, (known, calls, needed)) in table.iter().enumerate() {
        let (store, _writer) = store(known);
        let mut queue = DeltaFifo::new();
        assert!(!queue.has_synced());
        calls.iter().for_each(|call| make(&mut queue, call, &store));
        for processed in 0..=needed.unwrap_or(1) {
            assert_eq!(queue.has_synced(), needed.is_some_and(|needed| processed >= needed), "row {at}, {processed}");
            let synced = queue.has_synced();
            queue.pop();
            assert_eq!(queue.has_synced(), synced, "row {at}: popping alone changes nothing");
            queue.processed();
        }
        assert_eq!(queue.has_synced(), needed.is_some(), "row {at}: synced does not go back");
    }
}

fn replaced(version: &str, objects: &[&str], undecodable: &[&str]) -> Delta<Thing> {
    Delta::Replaced(Replacement {
        mark: ListMark { version: Some(version.into()), ..ListMark::default() },
        objects: objects.iter().map(|text| object(text)).collect(),
        undecodable: undecodable.iter().map(|text| bad(text)).collect(),
    })
}

#[test]
fn an_undecodable_object_does_not_keep_the_queue_from_syncing() {
    let (store, _writer) = store(&[]);
    let mut queue = DeltaFifo::new();
    DeltaQueue::push(&mut queue, replaced("10", &["web/a@1"], &["web/b@2"]), 0, &store);
    assert!(!queue.has_synced());
    while DeltaQueue::pop(&mut queue).is_some() {
        queue.processed();
    }
    assert!(queue.has_synced());
}

#[test]
fn marks_are_popped_after_all_deltas_that_were_pushed_before_them() {
    let (store, _writer) = store(&["web/x@1"]);
    let mut queue = DeltaFifo::new().emit_replaced(true);
    let bookmark = |version: &str| Delta::Bookmark { scope: None, version: version.into() };
    for delta in [
        Delta::Added(object("web/a@1")),
        bookmark("2"),
        Delta::Updated(object("web/a@3")),
        Delta::Added(object("web/b@4")),
        bookmark("5"),
        replaced("6", &["web/a@3", "web/c@6"], &[]),
        Delta::Resync,
    ] {
        DeltaQueue::push(&mut queue, delta, 0, &store);
    }
    let mut batches = Vec::new();
    while let Some(batch) = DeltaQueue::pop(&mut queue) {
        batches.push(describe_batch(&batch).join(", "));
    }
    let expected = [
        "added web/a@1, updated web/a@3, replaced web/a@3",
        "bookmark 2",
        "added web/b@4, tombstone web/b@4",
        "bookmark 5",
        "replaced web/c@6",
        "tombstone web/x@1",
        "listed 6",
        "resync done",
    ];
    assert_eq!(batches, expected);
}

#[test]
fn marks_that_could_not_be_processed_are_put_back_too() {
    let (store, _writer) = store(&[]);
    let mut queue = DeltaFifo::new();
    DeltaQueue::push(&mut queue, replaced("6", &[], &[]), 0, &store);
    DeltaQueue::push(&mut queue, Delta::Added(object("web/a@7")), 0, &store);
    let batch = DeltaQueue::pop(&mut queue).unwrap();
    assert_eq!(describe_batch(&batch), ["listed 6"]);
    queue.put_back(batch);
    assert_eq!(describe_batch(&DeltaQueue::pop(&mut queue).unwrap()), ["listed 6"]);
    assert_eq!(describe_batch(&DeltaQueue::pop(&mut queue).unwrap()), ["added web/a@7"]);
}

#[derive(Debug, Clone)]
enum Step {
    Put { key: u8, added: bool },
    Delete { key: u8, last: bool },
    Replace(BTreeSet<u8>),
    Resync,
    Pop,
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..6_u8;
    prop_oneof![
        4 => (key.clone(), any::<bool>()).prop_map(|(key, added)| Step::Put { key, added }),
        2 => (key.clone(), any::<bool>()).prop_map(|(key, last)| Step::Delete { key, last }),
        1 => prop::collection::btree_set(key, 0..5).prop_map(Step::Replace),
        1 => Just(Step::Resync),
        4 => Just(Step::Pop),
    ]
}

/// A queue, and a model of it in plain maps.
struct Model {
    queue: DeltaFifo<Thing>,
    /// The popped deltas, replayed into a store.
    writer: StoreWriter<Thing>,
    /// The objects that the server has, with their versions.
    server: BTreeMap<String, u64>,
    /// The queued keys, in the order of the queue.
    line: Vec<String>,
    /// How many objects of the first population are not processed yet. `None` before the first population.
    initial: Option<usize>,
    version: u64,
}

impl Model {
    fn next(&mut self, key: u8) -> (String, Arc<Thing>) {
        self.version += 1;
        let key = format!("web/{key}");
        let object = object(&format!("{key}@{}", self.version));
        (key, object)
    }

    fn queued(&mut self, key: &str) {
        if !self.line.iter().any(|waiting| waiting == key) {
            self.line.push(key.to_owned());
        }
    }

    fn known(&self) -> BTreeSet<String> {
        self.writer.store().snapshot().iter().map(|object| object.id().key.to_string()).collect()
    }

    fn step(&mut self, step: Step) {
        let known = self.known();
        match step {
            Step::Put { key, added } => {
                let (key, object) = self.next(key);
                self.server.insert(key.clone(), self.version);
                self.queued(&key);
                self.initial.get_or_insert(0);
                if added { self.queue.add(object) } else { self.queue.update(object) }
            }
            Step::Delete { key, last } => {
                let (key, object) = self.next(key);
                self.server.remove(&key);
                if known.contains(&key) {
                    self.queued(&key);
                }
                self.initial.get_or_insert(0);
                let gone = if last { Deleted::Final(object) } else { Deleted::Unknown(object) };
                self.queue.delete(gone, &self.writer.store().snapshot());
            }
            Step::Replace(keys) => {
                let listed: Vec<_> = keys.into_iter().map(|key| self.next(key)).collect();
                let keys: BTreeSet<String> = listed.iter().map(|(key, _)| key.clone()).collect();
                let versions = listed.iter().map(|(key, object)| (key.clone(), object.id().version.parse().unwrap()));
                self.server = versions.collect();
                let present: BTreeSet<String> = known.iter().chain(&self.line).cloned().collect();
                self.initial.get_or_insert(keys.len() + present.difference(&keys).count());
                let only_known: BTreeSet<String> =
                    known.into_iter().filter(|key| !keys.contains(key) && !self.line.contains(key)).collect();
                listed.iter().for_each(|(key, _)| self.queued(key));
                let objects = listed.into_iter().map(|(_, object)| object).collect();
                self.queue.replace(objects, &self.writer.store().snapshot());
                self.behind(only_known);
            }
            Step::Resync => {
                let quiet = known.into_iter().filter(|key| !self.line.contains(key)).collect();
                self.queue.resync(&self.writer.store().snapshot());
                self.behind(quiet);
            }
            Step::Pop => self.pop(),
        }
        let keys: Vec<String> = self.queue.keys().iter().map(ToString::to_string).collect();
        assert_eq!(keys, self.line);
        assert_eq!(self.queue.len(), self.line.len());
        assert_eq!(self.queue.has_synced(), self.initial == Some(0));
    }

    /// Expects these keys at the end of the queue, in any order.
    fn behind(&mut self, keys: BTreeSet<String>) {
        let now: Vec<String> = self.queue.keys().iter().map(ToString::to_string).collect();
        let new: Vec<String> = now.get(self.line.len()..).unwrap_or_default().to_vec();
        assert_eq!(new.iter().cloned().collect::<BTreeSet<_>>(), keys);
        self.line.extend(new);
    }

    fn pop(&mut self) {
        let Some((key, deltas)) = self.queue.pop() else {
            assert!(self.line.is_empty());
            return;
        };
        assert_eq!(key.to_string(), self.line.remove(0), "first in, first out");
        assert!(!deltas.is_empty());
        for pair in deltas.windows(2) {
            assert!(!matches!(pair, [KeyDelta::Deleted(_), KeyDelta::Deleted(_)]), "{deltas:?}");
        }
        assert!(self.queue.get(&key).is_none(), "no key twice");
        for delta in deltas {
            assert_eq!(ObjectKey::from(delta.object().id().key), key);
            match delta {
                KeyDelta::Deleted(_) => drop(self.writer.remove(&key)),
                KeyDelta::Added(object)
                | KeyDelta::Updated(object)
                | KeyDelta::Replaced(object)
                | KeyDelta::Sync(object) => drop(self.writer.put(object)),
            }
        }
        if self.initial.is_some_and(|initial| initial > 0) {
            assert!(!self.queue.has_synced(), "synced while a batch is not processed");
        }
        self.queue.processed();
        self.initial = self.initial.map(|initial| initial.saturating_sub(1));
    }
}

proptest! {
    #[test]
    fn replaying_the_popped_deltas_gives_the_state_of_the_server(
        steps in prop::collection::vec(step(), 0..120),
        emit_replaced in any::<bool>(),
    ) {
        let (_, writer) = Store::new(0);
        let queue = DeltaFifo::new().emit_replaced(emit_replaced);
        let mut model =
            Model { queue, writer, server: BTreeMap::new(), line: Vec::new(), initial: None, version: 0 };
        steps.into_iter().for_each(|step| model.step(step));
        while !model.line.is_empty() {
            model.step(Step::Pop);
        }
        prop_assert!(model.queue.pop().is_none());
        let snapshot = model.writer.store().snapshot();
        let replayed: BTreeMap<String, u64> = snapshot
            .iter()
            .map(|object| (object.id().key.to_string(), object.id().version.parse().unwrap()))
            .collect();
        prop_assert_eq!(replayed, model.server);
    }
}
