//! A handler of batches receives each list, each resync and all waiting changes in one call.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use kube_informer::{BatchReason, Delivery, Event, InformerError};
use tokio::sync::watch;

use crate::script::{
    Act::{Fail, StayOpen},
    Script, TestInformer, Thing, added, gone, live, modified, on_the_real_clock, quiet, thing, within,
};

/// The reason of a batch, and its events as texts.
type Batch = (BatchReason, Vec<String>);

/// The batches that a handler received. Clones share the record.
#[derive(Clone, Default)]
struct Batches(Arc<watch::Sender<Vec<Batch>>>);

impl Batches {
    fn handler(&self) -> impl FnMut(&[Event<Thing>], BatchReason) + Send + 'static {
        let batches = self.0.clone();
        move |events, reason| {
            let events = events.iter().map(|event| format!("{event:?}")).collect();
            batches.send_modify(|batches| batches.push((reason, events)));
        }
    }

    /// Returns the reason and the size of each batch.
    fn sizes(&self) -> Vec<(BatchReason, usize)> {
        self.0.borrow().iter().map(|(reason, events)| (*reason, events.len())).collect()
    }

    fn events(&self) -> Vec<String> {
        self.0.borrow().iter().flat_map(|(_, events)| events.clone()).collect()
    }

    async fn reaches(&self, count: usize) {
        let mut batches = self.0.subscribe();
        within("the batches", batches.wait_for(|batches| batches.len() >= count)).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn lists_resyncs_and_live_changes_are_batches_with_the_same_events_as_single_calls() {
    let (feed, events) = live();
    let script = Script::new()
        .list("10", ["web/a@1", "web/b@2"])
        .watch([events])
        .list("20", ["web/a@12", "web/c@13", "web/d@14"])
        .watch([StayOpen]);
    let hour = Duration::from_secs(3600);
    let informer = TestInformer::new(script, |options| options.resync_period(hour));
    let (batches, single) = (Batches::default(), Arc::new(watch::Sender::new(Vec::new())));
    let handle = informer.informer.register().on_batch(batches.handler());
    let note = single.clone();
    informer.informer.on_event(move |event| note.send_modify(|events| events.push(format!("{event:?}"))));
    informer.informer.start().unwrap();
    informer.delivered_through("10").await;
    assert!(within("the handler", handle.synced()).await);
    feed.send(modified("web/a@11")).unwrap();
    informer.delivered_through("11").await;
    feed.send(Fail(gone())).unwrap();
    informer.delivered_through("20").await;
    tokio::time::sleep(hour).await;
    quiet().await;
    let expected = [
        (BatchReason::FirstList, 2),
        (BatchReason::Live, 1),
        (BatchReason::Relist, 4), // One object was deleted, one has changed, and two are new.
        (BatchReason::Resync, 3),
    ];
    assert_eq!(batches.sizes(), expected);
    assert_eq!(batches.events(), *single.borrow());
    assert_eq!(handle.backlog(), 0);

    let late = Batches::default();
    informer.informer.register().on_batch(late.handler());
    quiet().await;
    assert_eq!(late.sizes(), [(BatchReason::FirstList, 3)]);
    informer.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn live_events_that_wait_while_the_handler_runs_are_one_batch() {
    on_the_real_clock(async {
        let (feed, events) = live();
        let informer = TestInformer::start(Script::new().list("10", []).watch([events]));
        let (batches, (release, released)) = (Batches::default(), channel::<()>());
        let mut note = batches.handler();
        let handle = informer.informer.register().on_batch(move |events, reason| {
            note(events, reason);
            let _ = tokio::task::block_in_place(|| released.recv());
        });
        informer.synced().await;
        feed.send(added("web/a@11")).unwrap();
        batches.reaches(1).await;
        for version in 12_u64..15 {
            feed.send(added(&format!("web/a{version}@{version}"))).unwrap();
            within("the store", informer.informer.wait_for_version(&version.into())).await.unwrap();
        }
        assert_eq!((batches.sizes(), handle.backlog()), (vec![(BatchReason::Live, 1)], 4));
        release.send(()).unwrap();
        batches.reaches(2).await;
        assert_eq!(batches.sizes(), [(BatchReason::Live, 1), (BatchReason::Live, 3)]);
        drop(release);
        informer.stop().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn folded_mailbox_is_one_live_batch() {
    let things = (1..=200).map(|number| thing(&format!("web/a{number}@{number}")));
    let informer = TestInformer::new(Script::new().list_things("1000", things).watch([StayOpen]), |options| options);
    let batches = Batches::default();
    informer.informer.register().delivery(Delivery::Latest).on_batch(batches.handler());
    informer.informer.start().unwrap();
    informer.delivered_through("1000").await;
    quiet().await;
    assert_eq!(batches.sizes(), [(BatchReason::Live, 200)]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_handler_of_batches_is_reported_and_the_next_batch_is_delivered() {
    let (feed, events) = live();
    let informer =
        TestInformer::new(Script::new().list("10", ["web/a@1", "web/b@2"]).watch([events]), |options| options);
    let batches = Batches::default();
    let mut note = batches.handler();
    let handle = informer.informer.register().name("census").on_batch(move |events, reason| {
        note(events, reason);
        assert!(reason == BatchReason::Live, "oops");
    });
    informer.informer.start().unwrap();
    informer.delivered_through("10").await;
    feed.send(modified("web/a@11")).unwrap();
    informer.delivered_through("11").await;
    quiet().await;
    assert_eq!(batches.sizes(), [(BatchReason::FirstList, 2), (BatchReason::Live, 1)]);
    let errors = informer.errors();
    assert!(
        matches!(&errors[..], [InformerError::HandlerPanicked { handler, .. }] if handler == "census"),
        "{errors:?}"
    );
    assert!(handle.is_synced(), "the batch counts as delivered");
    informer.stop().await;
}
