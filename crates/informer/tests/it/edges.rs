//! Edge cases: refused version requests, streams that are polled after their end, informers that never start,
//! concurrent stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::stream::FusedStream as _;
use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_embedded_apiserver::ApiServer;
use kube_informer::parts::{
    Decoded, ListEnd, ListOptions, ListStream, ListWatch, ListWatchFns, WatchEvent, WatchOptions, WatchStream,
};
use kube_informer::{
    BackoffOptions, Event, InformerOptions, InformerRequest, QueueOrder, RemoveError, RemoveMode, ResourceVersion,
    SharedInformer, SharedInformerFactory, SourceError, WaitError,
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinSet;

use crate::script::{
    Act::{Fail, StayOpen},
    Script, TestInformer, Thing, added, deleted, initial_end, interrupted, live, modified, on_the_real_clock, options,
    pause, quiet, status, thing, within,
};

/// A script whose source refuses to tell the server's version.
struct NoVersionSource(Script);

impl ListWatch<Thing> for NoVersionSource {
    async fn list(&self, options: ListOptions) -> Result<ListStream<Thing>, SourceError> {
        ListWatch::list(&self.0, options).await
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<Thing>, SourceError> {
        ListWatch::watch(&self.0, options).await
    }

    async fn newest_version(&self) -> Result<Option<ResourceVersion>, SourceError> {
        Err(status(403, "Forbidden"))
    }

    fn supports_streaming_lists(&self) -> bool {
        false
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_version_request_does_not_stop_the_watch() {
    let script = Script::new().list("10", ["web/a@1"]).watch([modified("web/a@11"), pause(5.0), Fail(interrupted())]);
    let script = script.watch([modified("web/a@12"), StayOpen]);
    let informer = SharedInformer::builder(NoVersionSource(script.clone())).options(options()).build();
    informer.start().unwrap();
    within("the second watch", informer.wait_for_version(&"12".into())).await.unwrap();
    assert_eq!(script.asked(), ["list 0 limit=500 not older", "watch 10", "watch 11"]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_events_may_be_polled_after_its_end() {
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([StayOpen]));
    let (mut typed, any) = (informer.informer.events(), informer.informer.any());
    let (mut events, mut changes) = (any.events(), any.changes());
    assert!(!typed.is_terminated());
    informer.synced().await;
    informer.informer.stop().await;
    for _ in 0..3 {
        while typed.next().await.is_some() {}
        assert!(typed.is_terminated());
        while events.next().await.is_some() {}
        assert!(changes.next().await.is_none());
    }
    informer.stop().await;
}

#[tokio::test]
async fn waiting_for_a_factory_fails_at_once_when_one_of_its_informers_stops() {
    on_the_real_clock(async {
        let server = ApiServer::new();
        let factory = SharedInformerFactory::new(server.client());
        let maps = factory.informer::<ConfigMap>().unwrap();
        let _never_synced = factory.informer::<Secret>().unwrap();
        let waiting = factory.synced();
        maps.stop().await;
        assert_eq!(within("the wait to fail", waiting).await, Err(WaitError::Stopped("configmaps".to_owned())));
    })
    .await;
}

#[tokio::test]
async fn a_source_that_fails_at_once_without_delay_lets_other_tasks_run() {
    on_the_real_clock(async {
        let refused = || std::future::ready(Err(status(500, "InternalError")));
        let source = ListWatchFns::new(
            move |_: ListOptions| refused(),
            |_: WatchOptions| async { Ok(WatchStream::<Thing>::new(stream::pending())) },
        );
        let none = BackoffOptions { initial: Duration::ZERO, max: Duration::ZERO, ..BackoffOptions::default() };
        let informer = SharedInformer::builder(source).options(InformerOptions::new().backoff(none)).build();
        informer.on_error(|_| {});
        informer.start().unwrap();
        tokio::task::yield_now().await;
        assert!(informer.health().counts.failures > 0);
        informer.stop().await;
    })
    .await;
}

// Without versions a reflector cannot distinguish a new state from a known one.
fn unversioned() -> SharedInformer<Thing> {
    let source = ListWatchFns::new(
        |_: ListOptions| async { Ok(ListStream::complete([thing("web/a"), thing("web/b")], ListEnd::default())) },
        |_: WatchOptions| async { Ok(WatchStream::new(stream::pending())) },
    );
    let options = options().queue_order(QueueOrder::PerObject).resync_period(Duration::from_secs(2));
    SharedInformer::builder(source).options(options).build()
}

#[tokio::test(start_paused = true)]
async fn a_resync_sends_resynced_events_in_either_queue_order_and_without_versions() {
    let informer = unversioned();
    let (two, three) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    for (period, seen) in [(2, &two), (3, &three)] {
        let seen = seen.clone();
        let note = move |event: Event<Thing>| seen.lock().push(format!("{event:?}"));
        informer.register().resync_period(Duration::from_secs(period)).on_event(note);
    }
    informer.start().unwrap();
    tokio::time::sleep(Duration::from_millis(6500)).await;
    let all = |seen: &Mutex<Vec<String>>| {
        let mut seen = seen.lock().clone();
        seen.sort();
        seen
    };
    let expected = |times: usize| {
        let added = ["Added(web/a@, initial)", "Added(web/b@, initial)"].map(str::to_owned);
        let resynced = ["Resynced(web/a@)", "Resynced(web/b@)"].map(str::to_owned);
        let resynced = resynced.iter().flat_map(|one| std::iter::repeat_n(one.clone(), times));
        added.into_iter().chain(resynced).collect::<Vec<_>>()
    };
    assert_eq!(all(&two), expected(3));
    assert_eq!(all(&three), expected(1), "at 4 s, because the resync timer fires every 2 s");
    assert_eq!(informer.store().version(), None, "without versions the store has none");
    informer.stop().await;
}

#[tokio::test]
async fn errors_and_health_do_not_show_messages_of_user_code_that_may_quote_a_secret() {
    on_the_real_clock(async {
        let server = ApiServer::new();
        let secret = |name: &str| json!({"metadata": {"name": name}, "stringData": {"password": "hunter2"}});
        server.create("secrets", Some("web"), secret("refused")).unwrap();
        server.create("secrets", Some("web"), secret("panics")).unwrap();
        let factory = SharedInformerFactory::new(server.client());
        let text = |secret: &Secret| format!("cannot take {:?}", secret.data);
        let request = InformerRequest::<Secret>::new().transform("refuses", move |secret: Secret| {
            if secret.metadata.name.as_deref() == Some("refused") { Err(text(&secret)) } else { Ok(secret) }
        });
        let secrets = factory.informer_with(request).unwrap();
        let errors = Arc::new(Mutex::new(Vec::new()));
        let noted = errors.clone();
        secrets.on_error(move |error| noted.lock().push(format!("{error} {error:?}")));
        let panics = move |secret: &Secret| -> Option<String> { panic!("{}", text(secret)) };
        secrets.add_index("panics", panics).unwrap();
        let handle = secrets.on_event(move |event| panic!("{}", text(event.object())));
        factory.start().unwrap();
        assert!(within("the handler", handle.synced()).await);
        let health = secrets.health();
        assert_eq!(health.undecodable.len(), 1);
        let shown = format!("{:?} {health:?}", errors.lock());
        // The value itself, in base64, and as bytes.
        for value in ["hunter2", "aHVudGVyMg", "104, 117, 110", "cannot take"] {
            assert!(!shown.contains(value), "{shown}");
        }
        assert_eq!(errors.lock().len(), 3, "{shown}");
        factory.stop().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn stop_within_gives_up_a_handler_although_another_task_is_stopping_already() {
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([StayOpen]));
    let entered = Arc::new(AtomicBool::new(false));
    let inside = entered.clone();
    informer.informer.register().name("stuck").on_event_async(move |_: Event<Thing>| {
        inside.store(true, Ordering::Relaxed);
        std::future::pending()
    });
    while !entered.load(Ordering::Relaxed) {
        tokio::task::yield_now().await;
    }
    let other = informer.informer.clone();
    let mut stopping = JoinSet::new();
    stopping.spawn(async move { other.stop().await });
    quiet().await;
    let outcome = informer.informer.stop_within(Duration::from_secs(1)).await;
    assert_eq!(outcome.unwrap_err().handlers, ["stuck"]);
    within("the other stop", stopping.join_next()).await.unwrap().unwrap();
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_streams_of_an_informer_that_never_starts_end_with_it() {
    let script = Script::new();
    let informer = SharedInformer::builder(script.clone()).build();
    let (mut typed, mut any) = (informer.events(), informer.any().events());
    let another = informer.clone();
    drop(informer);
    assert!(
        tokio::time::timeout(Duration::from_secs(60), typed.next()).await.is_err(),
        "the informer may still be started"
    );
    drop(another);
    assert!(within("the end of the stream", typed.next()).await.is_none());
    assert!(within("the end of the stream", any.next()).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_health_of_a_stopped_informer_is_stopped() {
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([StayOpen]));
    let any = informer.informer.any();
    informer.synced().await;
    let before = informer.informer.any();
    informer.informer.stop().await;
    assert_eq!(informer.informer.health().to_string(), "stopped");
    informer.stop().await;
    quiet().await;
    assert_eq!((any.health().to_string(), before.health().to_string()), ("stopped".into(), "stopped".into()));
}

#[tokio::test(start_paused = true)]
async fn one_delete_removes_an_object_that_an_initial_stream_added_twice() {
    let twice = [added("web/a@1"), added("web/b@2"), added("web/a@3"), deleted("web/a@4"), initial_end("5"), StayOpen];
    let informer = TestInformer::start(Script::streaming().watch(twice));
    informer.synced().await;
    assert_eq!(informer.keys(), ["web/b"]);
    informer.stop().await;
}

/// Sets a flag when it is dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_was_removed_is_dropped() {
    on_the_real_clock(async {
        for started in [false, true] {
            let script = Script::new().list("10", ["web/a@1"]).watch([StayOpen]).may_end_early();
            let informer = TestInformer::new(script, |options| options);
            if started {
                informer.informer.start().unwrap();
            }
            let gone = Arc::new(AtomicBool::new(false));
            let dropped = Dropped(gone.clone());
            let handle = informer.informer.on_event(move |_| {
                let _ = &dropped;
            });
            within("the removal", handle.remove(RemoveMode::Discard)).await.unwrap();
            assert!(gone.load(Ordering::SeqCst), "started: {started}");
            informer.informer.stop().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removing_a_handler_waits_for_its_blocking_call_also_after_the_informer_is_dropped() {
    on_the_real_clock(async {
        let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([StayOpen]).may_end_early());
        let (entered, returned) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (release, wait) = std::sync::mpsc::channel::<()>();
        let (inside, after) = (entered.clone(), returned.clone());
        let handle = informer.informer.register().on_event_blocking(move |_: Event<Thing>| {
            inside.store(true, Ordering::SeqCst);
            let _ = wait.recv();
            after.store(true, Ordering::SeqCst);
        });
        while !entered.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(informer);
        let mut removing = std::pin::pin!(handle.remove(RemoveMode::Discard));
        let soon = tokio::time::timeout(Duration::from_millis(50), removing.as_mut()).await;
        assert!(soon.is_err(), "the call has not returned");
        release.send(()).unwrap();
        within("the removal", removing).await.unwrap();
        assert!(returned.load(Ordering::SeqCst));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_handle_whose_removal_failed_inside_its_own_callback_can_be_used_again() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", []).watch([events]));
    let handle = Arc::new(Mutex::new(None::<kube_informer::HandlerHandle>));
    let (own, outcome) = (handle.clone(), Arc::new(Mutex::new(None)));
    let noted = outcome.clone();
    let registered = informer.informer.register().name("own").on_event_async(move |_: Event<Thing>| {
        let (own, noted) = (own.clone(), noted.clone());
        async move {
            let handle = own.lock().take();
            if let Some(handle) = handle {
                *noted.lock() = Some(handle.remove(RemoveMode::Discard).await);
                *own.lock() = Some(handle);
            }
        }
    });
    *handle.lock() = Some(registered);
    feed.send(modified("web/a@11")).unwrap();
    informer.delivered_through("11").await;
    quiet().await;
    assert_eq!(outcome.lock().clone(), Some(Err(RemoveError::FromItself("own".to_owned()))));
    let handle = handle.lock().take().unwrap();
    within("the removal", handle.remove(RemoveMode::Discard)).await.unwrap();
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_list_without_a_version_the_store_has_no_version() {
    let source = ListWatchFns::new(
        |_: ListOptions| async { Ok(ListStream::complete([thing("web/a@5")], ListEnd::default())) },
        |_: WatchOptions| async {
            let events = [WatchEvent::Added(Decoded::Object(thing("web/b@3")))].map(Ok);
            Ok(WatchStream::new(stream::iter(events).chain(stream::pending())))
        },
    );
    let informer = SharedInformer::builder(source).options(options()).build();
    informer.start().unwrap();
    within("the event", informer.wait_for("web/b", |thing| thing.is_some())).await.unwrap();
    assert_eq!(informer.store().version(), None, "an older state may still arrive");
    informer.stop().await;
}

// If a round is dropped while it reports a restored server, the next round must report it.
#[tokio::test(start_paused = true)]
async fn an_interrupted_restart_is_reported_by_the_next_round() {
    use kube_informer::parts::{Delta, Reflector, Sink};

    #[derive(Clone, Default)]
    struct Slow(Arc<Mutex<Vec<String>>>, Arc<AtomicUsize>);

    impl Sink<Thing> for Slow {
        async fn push(&mut self, delta: Delta<Thing>, _: u64) {
            self.0.lock().push(format!("{delta:?}"));
        }

        async fn settled(&mut self) {
            // The second call is inside the restart. It takes longer than the timeout of the test.
            if self.1.fetch_add(1, Ordering::Relaxed) == 1 {
                tokio::time::sleep(Duration::from_secs(3600)).await;
            }
        }
    }

    let script = Script::new()
        .list("100", ["web/a@50"])
        .watch([modified("web/a@101"), pause(5.0), Fail(interrupted())])
        .list("20", []) // The server's version is older: it was restored.
        .list("20", ["web/a@7"])
        .watch([StayOpen]);
    let sink = Slow::default();
    let mut reflector = Reflector::new(script.clone(), sink.clone(), &options());
    assert!(tokio::time::timeout(Duration::from_secs(60), reflector.round()).await.is_err());
    let _ = tokio::time::timeout(Duration::from_secs(60), reflector.round()).await;
    let pushed = sink.0.lock().clone();
    let restarted = pushed.iter().position(|delta| delta == "Restarted");
    assert!(restarted.is_some_and(|at| at < pushed.len() - 1), "the restart is pushed before the new list: {pushed:?}");
}
