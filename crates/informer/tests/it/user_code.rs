//! The informer holds no lock while it calls user code.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kube_informer::{Event, IndexError, SharedInformer};
use parking_lot::Mutex;

use crate::script::{
    Act::{Fail, StayOpen},
    Script, TestInformer, Thing, gone, live, modified, on_the_real_clock, within,
};

/// A place for the informer, which is set after its callbacks exist.
type Later = Arc<Mutex<Option<SharedInformer<Thing>>>>;

#[tokio::test(start_paused = true)]
async fn an_index_function_may_use_its_own_informer() {
    let (feed, events) = live();
    let informer = TestInformer::new(Script::new().list("10", ["web/a@1"]).watch([events]), |options| options);
    let own: Later = Arc::new(Mutex::new(Some(informer.informer.clone())));
    let asked = own.clone();
    let index = informer.informer.add_index("phase", move |_: &Thing| {
        let informer = asked.lock().clone();
        informer.map(|informer| informer.health().to_string() + &informer.store().len().to_string())
    });
    let index = index.unwrap();
    informer.informer.start().unwrap();
    informer.synced().await;
    feed.send(modified("web/a@11")).unwrap();
    informer.delivered_through("11").await;
    assert_eq!(index.values(), ["watching1"]);
    own.lock().take();
    informer.stop().await;
}

// One thread holds the program's lock and waits for a lock of the informer. If another did the reverse, they would
// deadlock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_function_and_a_registration_may_share_a_lock_of_the_program() {
    on_the_real_clock(async {
        let (feed, events) = live();
        let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([events]));
        informer.synced().await;
        let program = Arc::new(Mutex::new(()));
        let inside = program.clone();
        let index = informer.informer.add_index("all", move |_: &Thing| {
            drop(inside.lock());
            "all"
        });
        let (own, lock) = (informer.informer.clone(), program.clone());
        let registering = tokio::task::spawn_blocking(move || {
            for _ in 0..200 {
                let _held = lock.lock();
                drop(own.on_event(|_: Event<Thing>| {}));
                drop(own.health());
            }
        });
        for version in 11..411 {
            feed.send(modified(&format!("web/a@{version}"))).unwrap();
        }
        within("the registrations", registering).await.unwrap();
        informer.delivered_through("410").await;
        assert_eq!(index.unwrap().count("all"), 1);
        informer.informer.stop().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_relist_that_changes_nothing_calls_no_index_function() {
    let script = Script::new().list("10", ["web/a@1", "web/b@2"]).watch([Fail(gone())]);
    let script = script.list("20", ["web/a@1", "web/b@12"]).watch([StayOpen]);
    let informer = TestInformer::new(script, |options| options);
    let (calls, reported) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
    let (noted, count) = (calls.clone(), reported.clone());
    informer.informer.on_error(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let failing = move |thing: &Thing| -> Option<String> {
        noted.lock().push(crate::script::text(thing));
        panic!("the index function always panics");
    };
    informer.informer.add_index("failing", failing).unwrap();
    informer.informer.start().unwrap();
    informer.delivered_through("20").await;
    assert_eq!(*calls.lock(), ["web/a@1", "web/b@2", "web/b@12"]);
    assert_eq!(reported.load(Ordering::Relaxed), 3 + 1, "one error for each object, and one for the expired watch");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_index_function_with_captures_equals_no_other_function() {
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([StayOpen]));
    let prefixed = |prefix: &'static str| move |thing: &Thing| format!("{prefix}{}", crate::script::text(thing));
    let first = informer.informer.add_index("name", prefixed("first ")).unwrap();
    let second = informer.informer.add_index("name", prefixed("second "));
    assert_eq!(second.unwrap_err(), IndexError::Exists("name".to_owned()));
    let plain = || informer.informer.add_index("plain", |thing: &Thing| crate::script::text(thing));
    assert!(plain().is_ok() && plain().is_ok(), "a function without captures equals itself");
    informer.synced().await;
    assert_eq!(first.values(), ["first web/a@1"]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_held_health_value_blocks_nothing() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([events]));
    let mut changes = informer.informer.health_changes();
    let held = within("health", changes.wait_for(|health| health.is_watching())).await.unwrap();
    feed.send(modified("web/a@11")).unwrap();
    informer.delivered_through("11").await;
    assert!(informer.informer.health().counts.events > held.counts.events);
    informer.informer.stop().await;
    let last = within("the end", changes.wait_for(|health| health.stopped)).await.unwrap();
    assert_eq!(last.to_string(), "stopped");
    assert!(within("the end", changes.changed()).await.is_none());
    informer.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_a_handler_has_synced_its_informer_is_ready() {
    on_the_real_clock(async {
        for _ in 0..100 {
            let informer =
                TestInformer::new(Script::new().list("10", ["web/a@1"]).watch([StayOpen]), |options| options);
            let handle = informer.informer.on_event(|_| {});
            informer.informer.start().unwrap();
            assert!(within("the handler", handle.synced()).await);
            assert!(informer.informer.health().is_ready());
            informer.informer.stop().await;
        }
    })
    .await;
}
