//! However an informer ends, it reports its end, and no wait on it hangs.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded_apiserver::ApiServer;
use kube_informer::{Event, SharedInformer, SharedInformerFactory, StartError, WaitError};
use serde_json::json;

use crate::script::{Act::StayOpen, Script, TestInformer, Thing, on_the_real_clock, options, quiet, within};

fn script() -> Script {
    Script::new().list("10", ["web/a@1"]).watch([StayOpen])
}

// Decision 29.
#[test]
fn an_informer_whose_runtime_has_shut_down_reports_that_it_is_stopped_and_ends_every_wait() {
    let informer = SharedInformer::<Thing>::builder(script().may_end_early()).options(options()).build();
    let handle = {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _inside = runtime.enter();
        informer.start().unwrap();
        runtime.block_on(informer.synced().into_future()).unwrap();
        informer.on_event(|_| {})
    };
    assert!(informer.health().stopped);
    let health = informer.health();
    assert!(health.stopped && !health.is_live(), "{health}");
    assert_eq!(health.to_string(), "stopped");
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
        let stopped = Err(WaitError::Stopped(informer.name().to_owned()));
        assert_eq!(within("a version", informer.wait_for_version(&"99".into())).await, stopped);
        assert!(within("an object", informer.wait_for("web/b", |thing| thing.is_some())).await.is_err());
        assert!(within("a relist", informer.relist()).await.is_err());
        assert!(!within("a late handler", informer.on_event(|_| {}).synced()).await);
        within("its removal", handle.remove(kube_informer::RemoveMode::Drain)).await.unwrap();
        assert!(matches!(informer.start(), Err(StartError::Stopped(_))));
        assert!(informer.verify().await.is_err());
        within("the stop", informer.stop()).await;
    });
    assert!(informer.store().contains("web/a"), "the cache stays readable");
}

// Hole 16.
#[tokio::test(start_paused = true)]
async fn stop_within_names_the_handlers_that_do_not_return_and_leaves_the_informer_stopped() {
    let informer = SharedInformer::<Thing>::builder(script()).options(options()).build();
    informer.register().name("stuck").on_event_async(|_| std::future::pending());
    informer.register().name("quick").on_event(|_| {});
    informer.start().unwrap();
    within("the list", informer.synced()).await.unwrap();
    quiet().await;
    let error = informer.stop_within(Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(error.handlers, ["stuck"]);
    assert!(informer.health().stopped);
    within("the informer to stop", informer.stop()).await;
}

#[tokio::test(start_paused = true)]
async fn health_shows_a_stopped_informer_while_a_handler_still_runs() {
    let informer = SharedInformer::<Thing>::builder(script()).options(options()).build();
    informer.register().on_event_async(|_| tokio::time::sleep(Duration::from_secs(60)));
    informer.start().unwrap();
    within("the list", informer.synced()).await.unwrap();
    quiet().await;
    let stops = informer.clone();
    let (stopped, ()) = tokio::join!(stops.stop_within(Duration::from_secs(100)), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(informer.health().stopped);
    });
    stopped.unwrap();
}

#[tokio::test]
async fn stop_within_returns_in_time_although_a_handler_blocks_for_ever() {
    on_the_real_clock(async {
        let informer = SharedInformer::<Thing>::builder(script().may_end_early()).options(options()).build();
        let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
        let (release, blocked) = std::sync::mpsc::channel::<()>();
        let blocked = Arc::new(std::sync::Mutex::new(blocked));
        informer.register().name("blocks").on_event_blocking(move |_: Event<Thing>| {
            begun.send(()).unwrap();
            let _ = blocked.lock().unwrap().recv();
        });
        informer.start().unwrap();
        begins.recv().await.unwrap();
        let error = informer.stop_within(Duration::from_millis(50)).await.unwrap_err();
        assert_eq!(error.handlers, ["blocks"]);
        drop(release);
    })
    .await;
}

// Hole 23: it makes no difference whether the informer or its factory is asked to stop.
#[tokio::test]
async fn an_informer_that_is_stopped_directly_leaves_its_factory() {
    on_the_real_clock(async {
        let server = ApiServer::new();
        let factory = SharedInformerFactory::new(server.client());
        let maps = factory.informer::<ConfigMap>().unwrap();
        factory.start().unwrap();
        factory.synced().await.unwrap();
        assert_eq!(factory.informers().len(), 1);
        maps.stop().await;
        assert_eq!(factory.informers().len(), 0);
        let again = factory.informer::<ConfigMap>().unwrap();
        assert!(again != maps && !again.health().stopped);
        factory.stop().await;
        assert!(again.health().stopped && maps.health().stopped);
    })
    .await;
}

// A cache without a reflector must neither look alive nor disappear from the factory.
#[tokio::test]
async fn an_informer_that_ended_by_itself_stays_listed_until_it_is_requested_again() {
    on_the_real_clock(async {
        let server = ApiServer::new();
        server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}})).unwrap();
        let factory = SharedInformerFactory::new(server.client());
        let informers = factory.weak_informers();
        let maps = factory.informer::<ConfigMap>().unwrap();
        let elsewhere = tokio::runtime::Runtime::new().unwrap();
        {
            let _entered = elsewhere.enter();
            factory.start().unwrap();
        }
        factory.synced().await.unwrap();
        let held = Arc::downgrade(&maps.store().get("web/a").unwrap());
        // The runtime of the informer shuts down and drops all its tasks.
        tokio::task::spawn_blocking(move || drop(elsewhere)).await.unwrap();
        drop(maps);
        let [ended] = &informers()[..] else { panic!("the ended informer is listed") };
        assert!(ended.name() == "configmaps" && ended.health().stopped);
        assert!(factory.synced().await == Err(WaitError::Stopped("configmaps".to_owned())));
        assert!(held.upgrade().is_none(), "the ended informer keeps no objects alive");

        let again = factory.informer::<ConfigMap>().unwrap();
        factory.synced().await.unwrap();
        let [running] = &informers()[..] else { panic!("there is one informer") };
        assert!(running.is_running() && !again.health().stopped);
        factory.stop().await;
        assert!(informers().is_empty());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_second_handler_with_the_same_name_gets_a_number_and_leaves_the_list_when_removed() {
    let informer = TestInformer::start(script());
    informer.synced().await;
    let first = informer.informer.register().name("audit").on_event(|_| {});
    let second = informer.informer.register().name("audit").on_event(|_| {});
    assert_eq!((first.name(), second.name()), ("audit", "audit#2"));
    let names = || informer.informer.health().handlers.into_iter().map(|handler| handler.name).collect::<Vec<_>>();
    assert!(names().contains(&"audit#2".to_owned()));
    second.remove(kube_informer::RemoveMode::Discard).await.unwrap();
    assert!(!names().contains(&"audit#2".to_owned()));
    informer.stop().await;
}

// The default name of a handler is the source position of its registration.
#[tokio::test(start_paused = true)]
async fn a_handlers_default_name_is_its_source_position() {
    let informer = TestInformer::start(script());
    informer.script.asks(2).await;
    let handle = informer.informer.on_event(|_| {});
    assert!(handle.name().starts_with("crates/informer/tests/it/stopping.rs:"), "{}", handle.name());
    informer.stop().await;
}
