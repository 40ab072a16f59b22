//! A batch that was popped from a queue and is not applied yet still counts as queued (decision 27).

use std::sync::Arc;

use kube_informer::parts::{Batch, Changes, Delta, DeltaFifo, KeyDelta, ListMark, Replacement, StoreWriter, Work};
use kube_informer::{Deleted, Store};

use crate::script::{Thing, thing};

fn arc(text: &str) -> Arc<Thing> {
    Arc::new(thing(text))
}

fn list(objects: &[&str]) -> Delta<Thing> {
    let objects = objects.iter().map(|text| arc(text)).collect();
    Delta::Replaced(Replacement { mark: ListMark::default(), objects, undecodable: Vec::new() })
}

/// Applies one batch to a store, as an informer does.
fn apply(writer: &mut StoreWriter<Thing>, batch: Batch<Thing>) {
    let Work::Object(key, deltas) = batch.work else { return };
    for delta in deltas {
        match delta {
            KeyDelta::Added(object)
            | KeyDelta::Updated(object)
            | KeyDelta::Replaced(object)
            | KeyDelta::Sync(object) => {
                writer.put(object);
            }
            KeyDelta::Deleted(_) => {
                writer.remove(&key);
            }
        }
    }
}

/// Returns the objects in the store after `meanwhile` was pushed between the pop of `first` and its processing.
async fn pushed_meanwhile(known: &[&str], first: Delta<Thing>, meanwhile: Delta<Thing>) -> Vec<String> {
    let (store, mut writer) = Store::new(0);
    known.iter().for_each(|text| drop(writer.put(arc(text))));
    let (sink, mut changes) = Changes::with_sink(DeltaFifo::new().emit_replaced(true), store.clone());
    sink.push(first, 0).await;
    let mut popped = changes.next().await;
    sink.push(meanwhile, 0).await;
    apply(&mut writer, popped.take().expect("the batch is popped"));
    drop(popped);
    while !sink.is_empty() {
        let mut popped = changes.next().await;
        apply(&mut writer, popped.take().expect("the batch is popped"));
    }
    let mut keys: Vec<String> = store.iter().map(|thing| crate::script::text(&thing)).collect();
    keys.sort();
    keys
}

#[tokio::test]
async fn a_delete_is_not_lost_while_the_add_is_being_processed() {
    let left = pushed_meanwhile(&[], Delta::Added(arc("web/a@1")), Delta::Deleted(arc("web/a@2"))).await;
    assert_eq!(left, [""; 0]);
    let vanished = Delta::Vanished { key: "web/a".parse().unwrap(), version: Some("2".into()) };
    assert_eq!(pushed_meanwhile(&[], Delta::Added(arc("web/a@1")), vanished).await, [""; 0]);
}

#[tokio::test]
async fn a_resync_does_not_restore_an_object_whose_delete_is_being_processed() {
    let left = pushed_meanwhile(&["web/a@1"], Delta::Deleted(arc("web/a@2")), Delta::Resync).await;
    assert_eq!(left, [""; 0]);
}

#[tokio::test]
async fn a_resync_does_not_restore_an_older_state() {
    let left = pushed_meanwhile(&["web/a@1"], Delta::Updated(arc("web/a@2")), Delta::Resync).await;
    assert_eq!(left, ["web/a@2"]);
}

#[tokio::test]
async fn a_list_deletes_an_unlisted_object_whose_add_is_being_processed() {
    let left = pushed_meanwhile(&[], Delta::Added(arc("web/a@1")), list(&["web/b@2"])).await;
    assert_eq!(left, ["web/b@2"]);
}

#[tokio::test]
async fn a_list_does_not_delete_an_object_twice_whose_delete_is_being_processed() {
    let (store, mut writer) = Store::new(0);
    writer.put(arc("web/a@1"));
    let mut queue = DeltaFifo::new();
    queue.delete(Deleted::Final(arc("web/a@2")), &store.snapshot());
    assert!(queue.pop().is_some());
    queue.replace(vec![], &store.snapshot());
    assert!(queue.is_empty(), "its delete is being processed");
    queue.processed();
    queue.replace(vec![], &store.snapshot());
    assert_eq!(queue.len(), 1, "the store still has the object, and the list does not");
}

#[tokio::test]
async fn settled_waits_for_the_batch_that_is_being_processed() {
    let (store, _writer) = Store::new(0);
    let (sink, mut changes) = Changes::with_sink(DeltaFifo::new(), store);
    sink.push(Delta::Added(arc("web/a@1")), 10).await;
    assert_eq!(sink.bytes(), 10);
    let popped = changes.next().await;
    let mut settled = std::pin::pin!(sink.settled());
    assert!(futures_util::poll!(settled.as_mut()).is_pending());
    drop(popped);
    assert!(futures_util::poll!(settled).is_ready());
}
