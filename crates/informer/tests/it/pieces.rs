//! A list enters the per-object queue in pieces, so that the queue's lock is held for one piece at a time. The result
//! is the same as if the list had entered the queue at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt as _;
use kube_informer::internal::ChangesSink;
use kube_informer::parts::{
    Batch, Changes, Delta, DeltaFifo, DeltaQueue, Deltas, KeyDelta, ListMark, Pending, Piece, Replacement, StoreWriter,
    Work,
};
use kube_informer::{Object as _, Store};

use crate::script::{Thing, describe_batch, thing, within};

/// A queue that records how many keys one call adds. Each call runs under one lock of the queue.
struct Measured {
    queue: DeltaFifo<Thing>,
    longest: Arc<AtomicUsize>,
}

impl Measured {
    fn measure(&mut self, call: impl FnOnce(&mut DeltaFifo<Thing>)) {
        let before = DeltaQueue::len(&self.queue);
        call(&mut self.queue);
        self.longest.fetch_max(DeltaQueue::len(&self.queue) - before, Ordering::Relaxed);
    }
}

impl DeltaQueue<Thing> for Measured {
    fn push(&mut self, delta: Delta<Thing>, bytes: u64, known: &Store<Thing>) {
        self.measure(|queue| DeltaQueue::push(queue, delta, bytes, known));
    }

    fn takes_pieces(&self) -> bool {
        self.queue.takes_pieces()
    }

    fn pending(&self) -> Pending<Thing> {
        let pending = DeltaQueue::pending(&self.queue);
        self.longest.fetch_max(pending.len(), Ordering::Relaxed);
        pending
    }

    fn push_piece(&mut self, piece: Piece<Thing>, bytes: u64, known: &Store<Thing>) {
        self.measure(|queue| queue.push_piece(piece, bytes, known));
    }

    fn pop(&mut self) -> Option<Batch<Thing>> {
        DeltaQueue::pop(&mut self.queue)
    }

    fn processed(&mut self) {
        self.queue.processed();
    }

    fn put_back(&mut self, batch: Batch<Thing>) {
        self.queue.put_back(batch);
    }

    fn len(&self) -> usize {
        DeltaQueue::len(&self.queue)
    }

    fn bytes(&self) -> u64 {
        self.queue.bytes()
    }

    fn progress(&self) -> (u64, u64) {
        self.queue.progress()
    }

    fn has_synced(&self) -> bool {
        self.queue.has_synced()
    }
}

fn list(version: &str, objects: impl IntoIterator<Item = String>) -> Delta<Thing> {
    let mark = ListMark { version: Some(version.into()), ..ListMark::default() };
    let objects = objects.into_iter().map(|text| Arc::new(thing(&text))).collect();
    Delta::Replaced(Replacement { mark, objects, undecodable: Vec::new() })
}

/// Returns objects with these numbers and one version.
fn things(numbers: std::ops::Range<usize>, version: u64) -> impl Iterator<Item = String> {
    numbers.map(move |number| format!("web/{number}@{version}"))
}

/// Applies the changes of one object to the store.
fn apply(writer: &mut StoreWriter<Thing>, deltas: Deltas<Thing>) {
    for delta in deltas {
        match delta {
            KeyDelta::Deleted(gone) => drop(writer.remove(&gone.key())),
            delta => drop(writer.put(delta.object().clone())),
        }
    }
}

/// Applies batches until a list or a resync is complete, and returns how many batches came before its mark. Checks that
/// no batch is settled before the mark, and that the queue has not synced before the first list is applied.
async fn apply_to_the_mark(
    changes: &mut Changes<Thing>,
    sink: &ChangesSink<Thing>,
    writer: &mut StoreWriter<Thing>,
    first: bool,
) -> usize {
    let mut batches = 0;
    loop {
        let mut popped = within("the next batch", changes.next()).await;
        let batch = popped.take().unwrap();
        match batch.work {
            Work::Object(_, deltas) => {
                assert!(!batch.settled, "batch {batches} is settled before the list is complete");
                assert!(!first || !sink.has_synced(), "batch {batches} is not processed yet");
                apply(writer, deltas);
                batches += 1;
            }
            Work::Listed(_) | Work::Resynced => {
                assert!(batch.settled);
                return batches;
            }
            work => panic!("unexpected {work:?}"),
        }
        drop(popped);
        // The beginning of the list is applied while the rest of it enters the queue.
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_list_enters_the_queue_in_pieces_and_settles_with_its_mark() {
    let (store, mut writer) = Store::new(0);
    let longest = Arc::new(AtomicUsize::new(0));
    let queue = Measured { queue: DeltaFifo::new().emit_replaced(true), longest: longest.clone() };
    let (sink, mut changes) = Changes::with_sink(queue, store.clone());
    let (_, batches) = tokio::join!(
        sink.push(list("10", things(0..10_000, 1)), 1_000),
        apply_to_the_mark(&mut changes, &sink, &mut writer, true),
    );
    assert_eq!((batches, store.len()), (10_000, 10_000));
    assert!(sink.has_synced());
    // A relist: 5,000 objects are unchanged, 5,000 are missing, 5,000 are new.
    let (_, batches) = tokio::join!(
        sink.push(list("20", things(5_000..15_000, 2)), 1_000),
        apply_to_the_mark(&mut changes, &sink, &mut writer, false),
    );
    assert_eq!((batches, store.len()), (15_000, 10_000));
    assert!(store.iter().all(|object| object.id().version == "2"), "no missing object is left");
    let (_, batches) =
        tokio::join!(sink.push(Delta::Resync, 0), apply_to_the_mark(&mut changes, &sink, &mut writer, false),);
    assert_eq!(batches, 10_000, "every object is queued again");
    let longest = longest.load(Ordering::Relaxed);
    assert!(longest <= 1_000, "{longest} objects were touched under one hold of the lock");
}

#[tokio::test]
async fn a_change_that_is_pushed_while_a_list_enters_the_queue_comes_after_the_list() {
    let (store, mut writer) = Store::new(0);
    writer.put(Arc::new(thing("web/late@1")));
    let (sink, mut changes) = Changes::with_sink(DeltaFifo::new().emit_replaced(true), store.clone());
    let mut listing = Box::pin(sink.push(list("10", things(0..2_000, 2)), 0));
    assert!((&mut listing).now_or_never().is_none(), "the list waits for room");
    let mut late = Box::pin(sink.push(Delta::Updated(Arc::new(thing("web/late@20"))), 0));
    assert!((&mut late).now_or_never().is_none(), "the change waits for the list");
    let mut told = Vec::new();
    let applied = async {
        while store.get("web/late").is_none_or(|late| late.id().version != "20") {
            let batch = within("the next batch", changes.next()).await.take().unwrap();
            told.extend(describe_batch(&batch).into_iter().filter(|text| text.contains("late")));
            if let Work::Object(_, deltas) = batch.work {
                apply(&mut writer, deltas);
            }
        }
    };
    tokio::join!(listing, late, applied);
    assert_eq!(told, ["tombstone web/late@1", "updated web/late@20"]);
    assert_eq!(
        store.get("web/late").unwrap().id().version,
        "20",
        "the list deletes the object, and the change creates it again"
    );
}

#[tokio::test]
async fn a_list_that_is_dropped_half_way_settles_nothing_until_the_next_one_is_complete() {
    let (store, mut writer) = Store::new(0);
    let (sink, mut changes) = Changes::with_sink(DeltaFifo::new().emit_replaced(true), store.clone());
    let mut listing = Box::pin(sink.push(list("10", things(0..2_000, 1)), 0));
    while sink.is_empty() {
        assert!((&mut listing).now_or_never().is_none(), "the list is longer than the queue has room for");
        tokio::task::yield_now().await;
    }
    drop(listing);
    // Other changes go on. None of them is settled, because older changes are missing.
    let mut batches = 0;
    let applied = async {
        while store.get("web/new").is_none() {
            let mut popped = within("the next batch", changes.next()).await;
            let batch = popped.take().unwrap();
            assert!(!batch.settled, "most of the list is missing");
            let Work::Object(_, deltas) = batch.work else { panic!("the list was not completed") };
            apply(&mut writer, deltas);
            batches += 1;
        }
    };
    tokio::join!(sink.push(Delta::Added(Arc::new(thing("web/new@11"))), 0), applied);
    assert!(batches < 2_000 && !sink.has_synced());
    let (_, batches) = tokio::join!(
        sink.push(list("20", things(100..1_000, 20)), 0),
        apply_to_the_mark(&mut changes, &sink, &mut writer, true),
    );
    assert_eq!(
        (batches, store.len()),
        (1_001, 900),
        "the first hundred and the new one are missing from the second list"
    );
    assert!(sink.has_synced());
}
