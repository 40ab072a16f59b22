//! An undecodable object costs as little as possible: the cache keeps its state, and no object counts as deleted.

use std::time::Duration;

use kube_informer::parts::{Decoded, WatchEvent};
use kube_informer::{InformerError, QueueOrder, ReflectorError};

use crate::script::{
    Act::{Event, Fail, StayOpen},
    Script, TestInformer, added, bad, gone, live, quiet, thing, within,
};

const ORDERS: [QueueOrder; 2] = [QueueOrder::Ordered, QueueOrder::PerObject];

fn start(script: Script, order: QueueOrder) -> TestInformer {
    TestInformer::start_with(script, |options| options.queue_order(order))
}

// Decision 5.
#[tokio::test(start_paused = true)]
async fn a_list_with_an_unknown_key_is_inconclusive_and_repeated_later() {
    for order in ORDERS {
        let script = Script::new()
            .list("10", ["web/a@1", "web/b@2"])
            .watch([Fail(gone())])
            .list_items("20", [Decoded::Object(thing("web/b@12")), Decoded::Bad(bad(""))])
            .watch([StayOpen])
            .list("30", ["web/b@12"])
            .watch([StayOpen]);
        let informer = start(script, order);
        informer.delivered_through("20").await;
        assert_eq!(informer.contents(), ["web/a@1", "web/b@12"], "{order:?}: no deletes");
        assert!(informer.informer.health().parts[0].inconclusive, "{order:?}");
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(informer.script.asked().len(), 4, "{order:?}: not at once");
        informer.delivered_through("30").await;
        assert_eq!(informer.told("web/a"), ["initial add 1", "delete 1 (tombstone)"], "{order:?}");
        assert!(!informer.informer.health().parts[0].inconclusive, "{order:?}: the next list is conclusive");
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn after_an_inconclusive_list_a_cache_has_caught_up_only_after_another_list() {
    let in_part = || [Decoded::Object(thing("web/b@12")), Decoded::Bad(bad(""))];
    let script = Script::new()
        .list_items("20", in_part())
        .watch([StayOpen])
        .list("20", ["web/a@11", "web/b@12"])
        .watch([StayOpen])
        .list("20", []);
    let informer = start(script, QueueOrder::Ordered);
    informer.synced().await;
    informer.script.asks(2).await;
    within("another list", informer.informer.wait_for_latest()).await.unwrap();
    assert_eq!(informer.contents(), ["web/a@11", "web/b@12"]);
    informer.script.asks(4).await;
    within("the version request alone", informer.informer.wait_for_latest()).await.unwrap();
    assert_eq!(informer.script.asked().len(), 5);
    informer.stop().await;

    // If every list is inconclusive, `caught_up` still returns, and does not list each time.
    let script = Script::new().list_items("20", in_part()).watch([StayOpen]);
    let script = script.list_items("20", in_part()).watch([StayOpen]).list("20", []);
    let informer = start(script, QueueOrder::Ordered);
    informer.synced().await;
    informer.script.asks(2).await;
    within("another list", informer.informer.wait_for_latest()).await.unwrap();
    informer.script.asks(4).await;
    within("the version request alone", informer.informer.wait_for_latest()).await.unwrap();
    assert_eq!(informer.script.asked().len(), 5);
    assert!(informer.informer.health().parts[0].inconclusive);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_event_without_a_key_leads_to_a_relist() {
    for order in ORDERS {
        let script = Script::new()
            .list("10", ["web/a@1"])
            .watch([Event(WatchEvent::Modified(Decoded::Bad(bad(""))))])
            .list("20", ["web/b@12"])
            .watch([StayOpen]);
        let informer = start(script, order);
        informer.delivered_through("20").await;
        assert_eq!(informer.contents(), ["web/b@12"], "{order:?}");
        let errors = informer.errors();
        let unreadable =
            |error: &InformerError| matches!(error, InformerError::Reflector { error: ReflectorError::Unreadable, .. });
        assert!(errors.iter().any(unreadable), "{order:?}: {errors:?}");
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_delete_with_a_key_deletes_the_object() {
    for order in ORDERS {
        let (feed, events) = live();
        let informer = start(Script::new().list("10", ["web/a@1", "web/b@2"]).watch([events]), order);
        informer.synced().await;
        feed.send(Event(WatchEvent::Deleted(Decoded::Bad(bad("web/a@11"))))).unwrap();
        informer.delivered_through("11").await;
        assert_eq!(informer.told("web/a"), ["initial add 1", "delete 1 (tombstone)"], "{order:?}");
        assert_eq!(informer.keys(), ["web/b"], "{order:?}");
        // An undecodable delete does not delete an object that was created again after it.
        feed.send(Event(WatchEvent::Deleted(Decoded::Bad(bad("web/b@12"))))).unwrap();
        feed.send(added("web/b@13")).unwrap();
        informer.delivered_through("13").await;
        quiet().await;
        assert_eq!(informer.contents(), ["web/b@13"], "{order:?}");
        informer.stop().await;
    }
}
