//! The revision of a cache changes with its content, and with nothing else.

use futures_util::FutureExt as _;
use kube_informer::Store;

use crate::script::{
    Act::{Fail, StayOpen},
    Script, TestInformer, Thing, added, bookmark, deleted, gone, live, modified, quiet, thing, within,
};

#[tokio::test(start_paused = true)]
async fn revision_changes_with_the_content_and_with_nothing_else() {
    let ((first, events), (second, later_events)) = (live(), live());
    let script = Script::new()
        .list("10", ["web/a@1", "web/b@2"])
        .watch([events])
        .list("20", ["web/a@1", "web/b@2", "web/c@14"])
        .watch([later_events])
        .list("30", ["web/a@1"])
        .watch([StayOpen]);
    let informer = TestInformer::new(script, |options| options);
    let store = informer.informer.store();
    let mut known = store.revision();
    let mut changes = || {
        let before = std::mem::replace(&mut known, store.revision());
        assert_eq!(store.snapshot().revision(), known);
        assert!(known >= before);
        known != before
    };
    informer.informer.start().unwrap();
    informer.delivered_through("10").await;
    assert!(changes(), "the first list");
    first.send(bookmark("11")).unwrap();
    informer.delivered_through("11").await;
    assert!(!changes(), "a bookmark");
    first.send(modified("web/a@1")).unwrap();
    first.send(bookmark("13")).unwrap();
    informer.delivered_through("13").await;
    assert!(!changes(), "an event with a known state");
    informer.informer.add_index("name", |thing: &Thing| crate::script::text(thing)).unwrap();
    assert!(!changes(), "a new index");
    first.send(added("web/c@14")).unwrap();
    informer.delivered_through("14").await;
    assert!(changes(), "an addition");
    first.send(Fail(gone())).unwrap();
    informer.delivered_through("20").await;
    assert!(!changes(), "a relist that finds nothing new");
    second.send(modified("web/c@21")).unwrap();
    informer.delivered_through("21").await;
    assert!(changes(), "an update");
    second.send(deleted("web/c@22")).unwrap();
    informer.delivered_through("22").await;
    assert!(changes(), "a deletion");
    second.send(Fail(gone())).unwrap();
    informer.delivered_through("30").await;
    assert!(changes(), "a relist in which an object is missing");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn wait_for_a_change_ends_with_the_change_and_not_with_a_bookmark() {
    let (feed, events) = live();
    let script =
        Script::new().list("10", ["web/a@1"]).watch([events]).list("20", ["web/c@14", "web/d@15"]).watch([StayOpen]);
    let informer = TestInformer::start(script);
    informer.synced().await;
    let store = informer.informer.store();
    let listed = store.revision();
    {
        let mut wait = std::pin::pin!(store.changed_since(listed));
        assert_eq!((&mut wait).now_or_never(), None);
        feed.send(bookmark("11")).unwrap();
        informer.delivered_through("11").await;
        assert_eq!((&mut wait).now_or_never(), None);
    }
    // No task waits during this change, because the wait was dropped.
    feed.send(added("web/b@12")).unwrap();
    informer.delivered_through("12").await;
    let added = store.changed_since(listed).now_or_never().unwrap().unwrap();
    assert_eq!(added, store.revision());
    let wait = store.changed_since(added);
    feed.send(Fail(gone())).unwrap();
    let relisted = within("the relist", wait).await.unwrap();
    assert_eq!(informer.keys(), ["web/c", "web/d"]);
    assert_eq!(store.changed_since(relisted).now_or_never(), None, "the relist is one change");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn wait_for_a_change_ends_when_the_informer_stops() {
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([StayOpen]));
    let store = informer.informer.store();
    let empty = store.revision();
    informer.synced().await;
    let listed = store.revision();
    let wait = async { (store.changed_since(listed).await, store.changed_since(empty).await) };
    let stop = async {
        quiet().await;
        informer.informer.stop().await;
    };
    let (ended, ()) = within("the wait to end", async { tokio::join!(wait, stop) }).await;
    assert_eq!(ended, (None, Some(listed)), "a change before the stop is still found");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn wait_for_a_change_ends_when_the_writer_is_dropped() {
    let (store, mut writer) = Store::<Thing>::new(0);
    let empty = store.revision();
    writer.remove("web/a");
    assert_eq!(store.revision(), empty, "the object was not there");
    writer.put(thing("web/a@1").into());
    assert_ne!(store.revision(), empty);
    let (ended, ()) = tokio::join!(store.changed_since(store.revision()), async { drop(writer) });
    assert_eq!(ended, None);
}
