//! The promises of a controller: which keys it reconciles and when, and how it handles failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube_controller::controller::ControllerPhase;
use kube_controller::limiter::ItemExponential;
use kube_controller::{Action, Controller, Request, RunError, WatchSource, predicate};
use kube_informer::{AnyQueue as _, CancellationToken, ObjectKey};
use serde_json::json;
use tokio::time::Instant;

use crate::cluster::{Cluster, Notes, Run, note, quiet};
use crate::ms;

#[tokio::test(start_paused = true)]
async fn a_change_or_a_deletion_of_an_object_reconciles_its_key() {
    let cluster = Cluster::new();
    cluster.owner("a");
    let run = Run::noting(Controller::new(&cluster.owners));
    assert_eq!(run.noted().await, ["a"]);
    cluster.label("deployments.apps", "a", "1");
    assert_eq!(run.noted().await, ["a"]);
    cluster.server.delete("deployments.apps", Some("web"), "a").unwrap();
    assert_eq!(run.noted().await, ["a is gone"]);
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_change_of_an_owned_object_reconciles_its_old_and_its_new_owner() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.owner("a"), cluster.owner("b"));
    let run = Run::noting(Controller::new(&cluster.owners).owns(&cluster.children).workers(1));
    assert_eq!(run.noted().await, ["a", "b"]);
    cluster.child("child", &a, true);
    assert_eq!(run.noted().await, ["a"]);
    // The child gets another owner: both owners are reconciled.
    let mut child = cluster.server.get("configmaps", Some("web"), "child").unwrap();
    child["metadata"]["ownerReferences"][0]["name"] = b["metadata"]["name"].clone();
    child["metadata"]["ownerReferences"][0]["uid"] = b["metadata"]["uid"].clone();
    cluster.server.update("configmaps", Some("web"), child).unwrap();
    assert_eq!(run.noted().await, ["a", "b"]);
    cluster.server.delete("configmaps", Some("web"), "child").unwrap();
    assert_eq!(run.noted().await, ["b"]);
    // This owner is not marked as the controller of the child.
    cluster.child("other", &a, false);
    assert_eq!(run.noted().await, Vec::<String>::new());
    run.end().await;

    let run = Run::noting(Controller::new(&cluster.owners).owns_any(&cluster.children));
    // The caches were filled before, so they have to catch up with the server first.
    tokio::time::sleep(Duration::from_secs(5)).await;
    run.notes.take();
    cluster.label("configmaps", "other", "1");
    assert_eq!(run.noted().await, ["a"]);
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_mapping_returns_any_number_of_keys_and_an_informer_that_is_only_read_reconciles_none() {
    let cluster = Cluster::new();
    let (pods, nodes) = (cluster.factory.informer::<Pod>().unwrap(), cluster.factory.informer::<Node>().unwrap());
    let users = |pod: &Pod| {
        let name = pod.metadata.name.clone().unwrap_or_default();
        name.split('-').map(|name| format!("web/{name}").parse::<ObjectKey>().unwrap()).collect::<Vec<_>>()
    };
    let run = Run::noting(Controller::new(&cluster.owners).watches(&pods, users).waits_for(&nodes).workers(1));
    let containers = json!({"containers": [{"name": "main", "image": "i"}]});
    let pod = json!({"metadata": {"name": "x-y"}, "spec": containers});
    assert_eq!(run.noted().await, Vec::<String>::new());
    cluster.server.create("pods", Some("web"), pod).unwrap();
    assert_eq!(run.noted().await, ["x is gone", "y is gone"]);
    assert!(nodes.health().is_ready(), "the controller starts the informer and waits for it");
    cluster.server.create("nodes", None, json!({"metadata": {"name": "n"}})).unwrap();
    assert_eq!(run.noted().await, Vec::<String>::new());
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn predicates_ignore_updates_that_do_not_matter() {
    let cluster = Cluster::new();
    let spec = json!({"metadata": {"name": "a"}, "spec": {"replicas": 1}});
    cluster.server.create("deployments.apps", Some("web"), spec).unwrap();
    let generation = WatchSource::from(&cluster.owners).when(predicate::generation_changed);
    let labels = WatchSource::from(&cluster.owners).when(predicate::labels_changed(&["l"]));
    let (generation, labels) =
        (Run::noting(Controller::new(generation)), Run::noting(Controller::new(labels).name("labels")));
    assert_eq!(
        (generation.noted().await.len(), labels.noted().await.len()),
        (1, 1),
        "an object that exists at the start is always reconciled"
    );
    cluster.label("deployments.apps", "a", "1");
    assert_eq!((generation.noted().await.len(), labels.noted().await.len()), (0, 1));
    cluster.server.patch("deployments.apps", Some("web"), "a", json!({"spec": {"replicas": 2}})).unwrap();
    assert_eq!((generation.noted().await.len(), labels.noted().await.len()), (1, 0));
    cluster.server.delete("deployments.apps", Some("web"), "a").unwrap();
    assert_eq!(
        (generation.noted().await, labels.noted().await),
        (vec!["a is gone".to_owned()], vec!["a is gone".to_owned()])
    );
    generation.end().await;
    labels.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_key_is_retried_with_backoff_and_next_after_reconciles_it_later() {
    let cluster = Cluster::new();
    cluster.owner("a");
    let began = Instant::now();
    let reconcile = move |request: Request<Deployment>, notes: Arc<Notes>| async move {
        notes.note(format!("{} after {}s", request.failures(), began.elapsed().as_secs()));
        match request.failures() {
            0 | 1 => Err("not yet"),
            2 => Ok(Action::requeue(Duration::from_secs(60))),
            _ => Ok(Action::await_change()),
        }
    };
    let limiter = ItemExponential::new(Duration::from_secs(1), Duration::from_secs(60));
    let run = Run::of(Controller::new(&cluster.owners).limiter(limiter), reconcile);
    tokio::time::sleep(Duration::from_secs(62)).await;
    // The key is retried after one second and after two seconds. Then it succeeds, and is reconciled a minute later.
    assert_eq!(run.notes.take(), ["0 after 0s", "1 after 1s", "2 after 3s"]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(run.notes.take(), ["0 after 63s"]);
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_final_failure_is_not_retried_and_the_status_shows_it() {
    let cluster = Cluster::new();
    cluster.owner("a");
    let controller = Controller::new(&cluster.owners);
    let handle = controller.handle();
    let reconcile = |_: Request<Deployment>, notes: Arc<Notes>| async move {
        notes.note("called");
        Ok::<_, String>(Action::terminal_error("no such flavour"))
    };
    let run = Run::of(controller, reconcile);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(run.notes.take(), ["called"]);
    let status = handle.status();
    assert_eq!((status.failures, status.last_error.unwrap().error), (1, "no such flavour".to_owned()));
    let health = kube_informer::AnyQueue::health(&handle);
    assert_eq!((health.worked, health.failures, health.waiting), (1, 1, 0));
    assert_eq!(health.last_error.as_deref(), Some("web/a: no such flavour"));
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_and_a_timeout_are_one_failed_attempt_each() {
    let cluster = Cluster::new();
    cluster.owner("a");
    let controller = Controller::new(&cluster.owners).timeout(Duration::from_secs(5));
    let handle = controller.handle();
    let own_handle = handle.clone();
    let reconcile = move |request: Request<Deployment>, notes: Arc<Notes>| {
        let last = own_handle.status().last_error.map(|last| last.error);
        notes.note(format!("{}: {last:?}", request.failures()));
        // It also panics before the first await.
        assert!(request.failures() > 0, "before the first await");
        async move {
            match request.failures() {
                1 => std::future::pending().await,
                2 => panic!("after an await"),
                _ => Ok::<_, String>(Action::await_change()),
            }
        }
    };
    let run = Run::of(controller, reconcile);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let said = [
        "0: None",
        r#"1: Some("panicked: before the first await")"#,
        r#"2: Some("took longer than 5s")"#,
        r#"3: Some("panicked: after an await")"#,
    ];
    assert_eq!(run.notes.take(), said);
    let status = handle.status();
    assert_eq!((status.failures, status.reconciles, status.active), (3, 4, 0));
    assert!(status.last_error.is_none(), "the key was reconciled since then");
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn one_worker_at_a_time_has_a_key_and_each_worker_has_one_key() {
    let cluster = Cluster::new();
    (0..10).for_each(|number| drop(cluster.owner(&format!("o{number}"))));
    let (active, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, peak) = (active.clone(), most.clone());
    let busy = Arc::new(parking_lot::Mutex::new(std::collections::HashSet::new()));
    let reconcile = move |request: Request<Deployment>, _: Arc<Notes>| {
        let (now, peak, busy, key) = (now.clone(), peak.clone(), busy.clone(), request.key().clone());
        async move {
            assert!(busy.lock().insert(key.clone()), "{key} is reconciled by two workers");
            peak.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            tokio::time::sleep(ms(50)).await;
            now.fetch_sub(1, Ordering::Relaxed);
            busy.lock().remove(&key);
            Ok::<_, String>(Action::await_change())
        }
    };
    let controller = Controller::new(&cluster.owners).workers(3);
    let handle = controller.handle();
    let run = Run::of(controller, reconcile);
    for round in 0..20 {
        (0..10).for_each(|number| cluster.label("deployments.apps", &format!("o{number}"), &round.to_string()));
        tokio::time::sleep(ms(20)).await;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((most.load(Ordering::Relaxed), handle.status().failures), (3, 0));
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_new_change_comes_before_objects_that_existed_at_the_start() {
    let cluster = Cluster::new();
    (0..100).for_each(|number| drop(cluster.owner(&format!("o{number:02}"))));
    let reconcile = |request: Request<Deployment>, notes: Arc<Notes>| async move {
        notes.note(request.key().name());
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok::<_, String>(Action::await_change())
    };
    let run = Run::of(Controller::new(&cluster.owners).workers(1), reconcile);
    tokio::time::sleep(ms(4500)).await;
    run.notes.take();
    cluster.label("deployments.apps", "o77", "now");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(run.notes.take(), ["o77"]);
    run.task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_handle_enqueues_a_key_and_reconciles_everything() {
    let cluster = Cluster::new();
    cluster.owner("a");
    let controller = Controller::new(&cluster.owners).workers(1);
    let handle = controller.handle();
    assert!(!handle.enqueue("web/x") && !handle.reconcile_all(), "the controller does not run");
    let run = Run::noting(controller);
    run.noted().await;
    assert!(handle.enqueue("web/x"));
    assert_eq!(run.noted().await, ["x is gone"]);
    assert!(handle.reconcile_all());
    assert_eq!(run.noted().await, ["a"]);
    assert_eq!(handle.status().phase, ControllerPhase::Running);
    run.end().await;
    assert_eq!(handle.status().phase, ControllerPhase::Idle);
}

#[tokio::test(start_paused = true)]
async fn a_controller_can_run_again_but_not_twice_at_the_same_time() {
    let cluster = Cluster::new();
    cluster.owner("a");
    let controller = Arc::new(Controller::new(&cluster.owners));
    for _ in 0..2 {
        let (notes, cancel) = (Arc::new(Notes::default()), CancellationToken::new());
        let both = async {
            quiet().await;
            assert_eq!(cluster.owners.health().handlers.len(), 1);
            let second = controller.run(cancel.clone(), note, notes.clone()).await;
            assert!(matches!(second, Err(RunError::AlreadyRunning(_))), "{second:?}");
            cancel.cancel();
        };
        let (outcome, ()) = tokio::join!(controller.run(cancel.clone(), note, notes.clone()), both);
        outcome.unwrap();
        assert_eq!(notes.take(), ["a"]);
        assert_eq!(cluster.owners.health().handlers.len(), 0, "the run removes its handlers");
    }
}

#[tokio::test(start_paused = true)]
async fn at_the_end_waiting_keys_are_finished_and_no_new_keys_are_accepted() {
    let cluster = Cluster::new();
    (0..6).for_each(|number| drop(cluster.owner(&format!("o{number}"))));
    let reconcile = |request: Request<Deployment>, notes: Arc<Notes>| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        notes.note(request.key().name());
        Ok::<_, String>(Action::requeue(Duration::from_secs(1)))
    };
    let run = Run::of(Controller::new(&cluster.owners).workers(2), reconcile);
    tokio::time::sleep(ms(500)).await;
    run.cancel.cancel();
    tokio::time::sleep(ms(1)).await;
    cluster.owner("late");
    run.task.await.unwrap().unwrap();
    let mut noted = run.notes.take();
    noted.sort_unstable();
    assert_eq!(noted, ["o0", "o1", "o2", "o3", "o4", "o5"]);
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_does_not_finish_in_time_is_dropped() {
    let cluster = Cluster::new();
    cluster.owner("a");
    let reconcile = |_: Request<Deployment>, _: Arc<Notes>| std::future::pending::<Result<Action, String>>();
    let run = Run::of(Controller::new(&cluster.owners).drain_within(Duration::from_secs(7)), reconcile);
    quiet().await;
    let began = Instant::now();
    run.end().await;
    assert_eq!(began.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_informer_ends_the_run_and_an_informer_without_a_kind_cannot_own_objects() {
    let cluster = Cluster::new();
    let run = Run::noting(Controller::new(&cluster.owners).owns(&cluster.children));
    quiet().await;
    cluster.children.stop().await;
    let error = run.task.await.unwrap().unwrap_err();
    assert!(matches!(error, RunError::CacheLost { .. }), "{error:?}");

    let fns = kube_informer::parts::ListWatchFns::new(
        |_| async { Ok(kube_informer::parts::ListStream::complete(Vec::<Deployment>::new(), Default::default())) },
        |_| std::future::pending(),
    );
    let nameless = kube_informer::SharedInformer::builder(fns).build();
    let pods = cluster.factory.informer::<Pod>().unwrap();
    let run = Run::noting(Controller::new(&nameless).owns(&pods));
    assert!(matches!(run.task.await.unwrap(), Err(RunError::UnknownKind(_))));
}

#[tokio::test(start_paused = true)]
async fn a_limiter_that_panics_ends_the_run_with_an_error() {
    struct Panics;
    impl kube_controller::RateLimiter<ObjectKey> for Panics {
        fn when(&self, _: &ObjectKey) -> Duration {
            panic!("the limiter panics")
        }
        fn forget(&self, _: &ObjectKey) {}
        fn num_requeues(&self, _: &ObjectKey) -> u32 {
            0
        }
    }
    let cluster = Cluster::new();
    cluster.owner("a");
    let reconcile = |_: Request<Deployment>, _: Arc<Notes>| async { Err::<Action, _>("again") };
    let run = Run::of(Controller::new(&cluster.owners).limiter(Panics), reconcile);
    let error = run.task.await.unwrap().unwrap_err();
    assert!(matches!(&error, RunError::WorkerPanicked { message, .. } if message == "the limiter panics"), "{error}");
}

#[tokio::test]
async fn a_new_change_does_not_wait_for_reconciles_that_never_yield() {
    let cluster = Cluster::new();
    (0..2000).for_each(|number| drop(cluster.owner(&format!("o{number:04}"))));
    let reconcile = |request: Request<Deployment>, notes: Arc<Notes>| {
        notes.note(request.key().name());
        std::future::ready(Ok::<_, String>(Action::await_change()))
    };
    let controller = Controller::new(&cluster.owners).workers(1);
    let handle = controller.handle();
    let run = Run::of(controller, reconcile);
    while handle.status().reconciles < 300 {
        tokio::task::yield_now().await;
    }
    cluster.owner("fresh");
    while !run.notes.take().contains(&"fresh".to_owned()) {
        tokio::task::yield_now().await;
    }
    let done = handle.status().reconciles;
    assert!(done < 1900, "the change waited for {done} other reconciles");
    run.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_run_that_was_dropped_leaves_no_worker_beside_the_next() {
    let cluster = Cluster::new();
    cluster.owner("a");
    let controller = Controller::new(&cluster.owners);
    let [now, most, calls] = [(); 3].map(|()| Arc::new(AtomicUsize::new(0)));
    let (busy, peak, called) = (now.clone(), most.clone(), calls.clone());
    let reconcile = Arc::new(move |_: Request<Deployment>, _: Arc<Notes>| {
        let (busy, peak, called) = (busy.clone(), peak.clone(), called.clone());
        async move {
            called.fetch_add(1, Ordering::SeqCst);
            peak.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_secs(2)); // It blocks its thread.
            busy.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, String>(Action::await_change())
        }
    });
    for round in 0..2 {
        let (reconcile, cancel) = (reconcile.clone(), CancellationToken::new());
        let run = controller.run(cancel, move |request, notes| reconcile(request, notes), Arc::new(Notes::default()));
        let begun = async {
            while calls.load(Ordering::SeqCst) <= round {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            ended = run => panic!("{ended:?}"),
            () = begun => {}
        }
        // This change gives the next run a key to reconcile at once.
        cluster.label("deployments.apps", "a", "1");
    }
    assert_eq!(most.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn failing_keys_have_attempts_and_the_time_of_the_next_try() {
    let cluster = Cluster::new();
    ["a", "b", "c"].iter().for_each(|name| drop(cluster.owner(name)));
    let reconcile = |request: Request<Deployment>, _: Arc<Notes>| async move {
        tokio::time::sleep(Duration::from_millis(if request.key().name() == "c" { 500 } else { 20 })).await;
        match (request.key().name(), request.failures()) {
            ("a", _) => Err("a fails"),
            ("b", 0) => Ok(Action::terminal_error("b cannot succeed")),
            _ => Ok(Action::await_change()),
        }
    };
    let limiter = ItemExponential::new(Duration::from_secs(10), Duration::from_secs(40));
    let controller = Controller::new(&cluster.owners).workers(3).limiter(limiter);
    let handle = controller.handle();
    let run = Run::of(controller, reconcile);
    tokio::time::sleep(Duration::from_secs(12)).await;
    let health = handle.health();
    let failing: Vec<(&str, u32, &str)> =
        health.failing.iter().map(|item| (item.item.as_str(), item.attempts, item.error.as_str())).collect();
    assert_eq!(failing, [("web/a", 2, "a fails"), ("web/b", 1, "b cannot succeed")]);
    assert_eq!(health.failing_items, 2);
    let next = health.failing[0].next_try.unwrap();
    assert!((Duration::from_secs(15)..Duration::from_secs(20)).contains(&next), "{next:?}");
    assert_eq!(health.failing[1].next_try, None, "it is not tried again by itself");
    let times = health.times.unwrap();
    assert!(times.median >= ms(20) && times.median < ms(100) && times.longest >= ms(500), "{times:?}");
    handle.enqueue("web/b");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(handle.health().failing_items, 1, "a success removes the key");
    run.end().await;
    assert_eq!(handle.health().failing_items, 0, "and so does the end of the run");
}
