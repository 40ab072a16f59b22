//! What was taken out of a queue and is not yet applied still counts as queued (decision 27).

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

/// Makes the changes of one batch to a store, as an informer does.
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

/// What the store holds if `meanwhile` is pushed while `first` is in hand.
async fn pushed_meanwhile(known: &[&str], first: Delta<Thing>, meanwhile: Delta<Thing>) -> Vec<String> {
    let (store, mut writer) = Store::new(0);
    known.iter().for_each(|text| drop(writer.put(arc(text))));
    let (sink, mut changes) = Changes::with_sink(DeltaFifo::new().emit_replaced(true), store.clone());
    sink.push(first, 0).await;
    let mut in_hand = changes.next().await;
    sink.push(meanwhile, 0).await;
    apply(&mut writer, in_hand.take().expect("it is in hand"));
    drop(in_hand);
    while !sink.is_empty() {
        let mut in_hand = changes.next().await;
        apply(&mut writer, in_hand.take().expect("it is in hand"));
    }
    let mut keys: Vec<String> = store.iter().map(|thing| crate::script::text(&thing)).collect();
    keys.sort();
    keys
}

#[tokio::test]
async fn a_deletion_is_not_lost_while_the_addition_is_in_hand() {
    let left = pushed_meanwhile(&[], Delta::Added(arc("web/a@1")), Delta::Deleted(arc("web/a@2"))).await;
    assert_eq!(left, [""; 0]);
    let vanished = Delta::Vanished { key: "web/a".parse().unwrap(), version: Some("2".into()) };
    assert_eq!(pushed_meanwhile(&[], Delta::Added(arc("web/a@1")), vanished).await, [""; 0]);
}

#[tokio::test]
async fn a_resync_does_not_revive_what_is_about_to_be_deleted() {
    let left = pushed_meanwhile(&["web/a@1"], Delta::Deleted(arc("web/a@2")), Delta::Resync).await;
    assert_eq!(left, [""; 0]);
}

#[tokio::test]
async fn a_resync_does_not_bring_back_an_older_state() {
    let left = pushed_meanwhile(&["web/a@1"], Delta::Updated(arc("web/a@2")), Delta::Resync).await;
    assert_eq!(left, ["web/a@2"]);
}

#[tokio::test]
async fn a_list_buries_what_is_about_to_be_added_and_is_not_in_it() {
    let left = pushed_meanwhile(&[], Delta::Added(arc("web/a@1")), list(&["web/b@2"])).await;
    assert_eq!(left, ["web/b@2"]);
}

#[tokio::test]
async fn a_list_does_not_bury_twice_what_is_about_to_be_deleted() {
    let (store, mut writer) = Store::new(0);
    writer.put(arc("web/a@1"));
    let mut queue = DeltaFifo::new();
    queue.delete(Deleted::Final(arc("web/a@2")), &store.snapshot());
    assert!(queue.pop().is_some());
    queue.replace(vec![], &store.snapshot());
    assert!(queue.is_empty(), "its deletion is in hand");
    queue.processed();
    queue.replace(vec![], &store.snapshot());
    assert_eq!(queue.len(), 1, "now it is known and missing");
}

#[tokio::test]
async fn whoever_waits_for_all_to_be_processed_waits_for_what_is_in_hand_too() {
    let (store, _writer) = Store::new(0);
    let (sink, mut changes) = Changes::with_sink(DeltaFifo::new(), store);
    sink.push(Delta::Added(arc("web/a@1")), 10).await;
    assert_eq!(sink.bytes(), 10);
    let in_hand = changes.next().await;
    let mut settled = std::pin::pin!(sink.settled());
    assert!(futures_util::poll!(settled.as_mut()).is_pending());
    drop(in_hand);
    assert!(futures_util::poll!(settled).is_ready());
}
