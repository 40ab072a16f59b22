//! A program does not wait for ever when it starts or ends: each step has a limit, and the error names the cause.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_controller::manager::ManagerError;
use kube_controller::{Action, Controller, ElectionSettings, LeaderElector, Manager, Request, RunError};
use kube_embedded_apiserver::{Fault, Verb};
use kube_informer::{AnyProbe as _, CancellationToken, ObjectKey};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use crate::cluster::{Cluster, Notes, Run, note, quiet};

type Outcome = std::future::Ready<Result<Action, String>>;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_permission_is_missing_ends_with_a_clear_error_and_releases_its_lease() {
    let cluster = Cluster::new();
    let forbidden = |verb| Fault::status(403).verb(verb).resource("configmaps");
    cluster.server.faults().add(forbidden(Verb::List));
    cluster.server.faults().add(forbidden(Verb::Watch));
    let elector = LeaderElector::new(cluster.client(), "default/lead", "me", ElectionSettings::default()).unwrap();
    let controller = Controller::new(&cluster.owners).owns(&cluster.children);
    let manager = Manager::new(cluster.factory.clone());
    let manager = manager.elect(elector).control(controller, note, Arc::new(Notes::default()));
    let probe = manager.probe();
    let meanwhile = async {
        sleep(secs(60)).await;
        let ready: Vec<String> = probe.ready().iter().map(ToString::to_string).collect();
        assert!(ready.iter().any(|why| why.starts_with("configmaps: not synced: ")), "{ready:?}");
        assert!(ready.iter().any(|why| why.starts_with("controller deployments.apps: it waits")), "{ready:?}");
        assert!(probe.is_live(), "a restart does not help");
    };
    let began = Instant::now();
    let (outcome, ()) = tokio::join!(manager.run(CancellationToken::new()), meanwhile);
    assert!((120..130).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    let Err(ManagerError::Controller(error @ RunError::NotSynced { .. })) = outcome else { panic!("{outcome:?}") };
    let text = error.to_string();
    assert!(text.contains("controller \"deployments.apps\" did not sync within 120s"), "{text}");
    assert!(text.contains("configmaps is ") && text.contains("403"), "{text}");
    let lease = cluster.server.get("leases.coordination.k8s.io", Some("default"), "lead").unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], "");
}

/// Blocks the thread that runs a reconcile until the sender is dropped.
fn blocking() -> (mpsc::Sender<()>, impl Fn(Request<Deployment>, Arc<Notes>) -> Outcome) {
    let (unblock, blocked) = mpsc::channel::<()>();
    let blocked = Mutex::new(blocked);
    let reconcile = move |_: Request<Deployment>, notes: Arc<Notes>| {
        notes.note("begun");
        let _ = blocked.lock().recv();
        std::future::ready(Ok(Action::await_change()))
    };
    (unblock, reconcile)
}

/// This test blocks a thread, so it needs several threads and the real clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_reconcile_that_blocks_its_thread_does_not_keep_the_controller_from_ending() {
    let cluster = Cluster::new();
    cluster.owner("a");
    let (unblock, reconcile) = blocking();
    let controller = Controller::new(&cluster.owners).drain_within(Duration::from_millis(100));
    let run = Run::of(controller, reconcile);
    while run.notes.take().is_empty() {
        sleep(Duration::from_millis(5)).await;
    }
    run.cancel.cancel();
    let error = tokio::time::timeout(secs(60), run.task).await.unwrap().unwrap().unwrap_err();
    let a: ObjectKey = "web/a".parse().unwrap();
    assert!(matches!(&error, RunError::StillRunning { keys, .. } if *keys == [a.clone()]), "{error:?}");
    assert!(error.to_string().ends_with("reconciles block their threads: web/a"), "{error}");
    drop(unblock);
}

/// Runs a controller again while its caches do not sync in time: a machine may be busy.
async fn until_synced<R: Future<Output = Result<(), RunError>>>(run: impl Fn() -> R) -> Result<(), RunError> {
    loop {
        match run().await {
            Err(RunError::NotSynced { .. }) => {}
            outcome => return outcome,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_run_does_not_wait_for_ever_for_a_worker_of_the_run_before() {
    let cluster = Cluster::new();
    cluster.owner("a");
    let (unblock, reconcile) = blocking();
    let reconcile = Arc::new(reconcile);
    let controller = Controller::new(&cluster.owners).sync_within(Duration::from_millis(300));
    let controller = Arc::new(controller.drain_within(Duration::ZERO));
    let notes = Arc::new(Notes::default());
    let cancel = CancellationToken::new();
    let first = {
        let first = until_synced(|| {
            let reconcile = reconcile.clone();
            controller.run(cancel.clone(), move |request, notes| reconcile(request, notes), notes.clone())
        });
        let begun = async {
            while notes.take().is_empty() {
                sleep(Duration::from_millis(5)).await;
            }
            cancel.cancel();
        };
        tokio::join!(first, begun).0
    };
    assert!(matches!(first, Err(RunError::StillRunning { .. })), "{first:?}");
    let second = controller.run(CancellationToken::new(), note, notes.clone()).await;
    assert!(matches!(&second, Err(RunError::StillRunning { keys, .. }) if keys.len() == 1), "{second:?}");
    drop(unblock);
    // The worker ends soon, and then the controller can run again.
    let cancel = CancellationToken::new();
    let begun = async {
        while notes.take().is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    };
    let third = async {
        loop {
            match until_synced(|| controller.run(cancel.clone(), note, notes.clone())).await {
                Err(RunError::StillRunning { .. }) => {}
                outcome => return outcome,
            }
        }
    };
    let (third, ()) = tokio::join!(third, begun);
    third.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_hangs_does_not_keep_the_program_from_ending() {
    let cluster = Cluster::new();
    cluster.owner("a");
    let _handler = cluster.owners.register().name("hangs").on_event_async(|_| std::future::pending());
    let controller = Controller::new(&cluster.owners);
    let manager = Manager::new(cluster.factory.clone()).control(controller, note, Arc::new(Notes::default()));
    let cancel = CancellationToken::new();
    let meanwhile = async {
        sleep(secs(5)).await;
        cancel.cancel();
    };
    let began = Instant::now();
    let (outcome, ()) = tokio::join!(manager.run(cancel.clone()), meanwhile);
    let Err(ManagerError::StillRunning(error)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(error.handlers, ["hangs"]);
    assert!((10..12).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_program_ends_within_the_grace_period_of_kubernetes_whatever_hangs() {
    let cluster = Cluster::new();
    cluster.owner("a");
    let _handler = cluster.owners.register().name("hangs").on_event_async(|_| std::future::pending());
    let network = crate::network::Network::default();
    let client = network.client(&cluster.server);
    let elector = LeaderElector::new(client, "default/lead", "me", ElectionSettings::default()).unwrap();
    let reconcile = |_: Request<Deployment>, _: Arc<()>| std::future::pending::<Result<Action, String>>();
    let manager = Manager::new(cluster.factory.clone()).elect(elector);
    let manager = manager.control(Controller::new(&cluster.owners), reconcile, Arc::new(()));
    let cancel = CancellationToken::new();
    let asked = Arc::new(Mutex::new(None));
    let meanwhile = async {
        sleep(secs(5)).await;
        *asked.lock() = Some(Instant::now());
        cancel.cancel();
        // The lease is renewed until the work has ended, and cannot be released after that.
        sleep(Duration::from_millis(14_900)).await;
        network.set(crate::network::Mode::Silent);
    };
    let (outcome, ()) = tokio::join!(manager.run(cancel.clone()), meanwhile);
    let took = asked.lock().unwrap().elapsed();
    assert!(matches!(outcome, Err(ManagerError::StillRunning(_))), "{outcome:?}");
    assert!((20..28).contains(&took.as_secs()), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn when_one_controller_fails_the_others_finish_their_reconciles() {
    let cluster = Cluster::new();
    cluster.child("child", &cluster.owner("a"), true);
    let notes = Arc::new(Notes::default());
    let works = |_: Request<ConfigMap>, notes: Arc<Notes>| async move {
        notes.note("begun");
        sleep(secs(10)).await;
        notes.note("finished");
        Ok::<_, String>(Action::await_change())
    };
    let manager = Manager::new(cluster.factory.clone())
        .control(Controller::new(&cluster.owners), note, Arc::new(Notes::default()))
        .control(Controller::new(&cluster.children), works, notes.clone());
    let meanwhile = async {
        quiet().await;
        assert_eq!(notes.take(), ["begun"]);
        cluster.owners.stop().await;
    };
    let (outcome, ()) = tokio::join!(manager.run(CancellationToken::new()), meanwhile);
    assert!(matches!(outcome, Err(ManagerError::Controller(RunError::CacheLost { .. }))), "{outcome:?}");
    assert_eq!(notes.take(), ["finished"]);
}

#[tokio::test(start_paused = true)]
async fn two_controllers_of_a_manager_must_not_have_the_same_name() {
    let cluster = Cluster::new();
    let notes = Arc::new(Notes::default());
    let twice = |other: Controller<Deployment>| {
        let manager = Manager::new(cluster.factory.clone());
        manager.control(Controller::new(&cluster.owners), note, notes.clone()).control(other, note, notes.clone())
    };
    let cancel = CancellationToken::new();
    cancel.cancel();
    let error = twice(Controller::new(&cluster.owners)).run(cancel.clone()).await.unwrap_err();
    assert!(error.to_string().starts_with("two controllers are named \"deployments.apps\""), "{error}");
    twice(Controller::new(&cluster.owners).name("other")).run(cancel).await.unwrap();
}
