//! A manager runs a whole program: it starts, leads for terms, and ends in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_controller::manager::ManagerError;
use kube_controller::term::SuspendClock;
use kube_controller::{Action, Controller, ElectionSettings, LeaderElector, Manager, Request};
use kube_informer::{AnyProbe as _, CancellationToken};
use tokio::time::sleep;

use crate::cluster::{Cluster, Notes, note, quiet};
use crate::network::{Mode, Network};

/// Settings without a suffix, so that the lease shows the identity as it was given.
fn settings() -> ElectionSettings {
    ElectionSettings { unique_identity: false, ..Default::default() }
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn without_an_election_the_program_lists_once_and_at_the_end_stops_its_informers() {
    let cluster = Cluster::new();
    cluster.owner("a");
    let (notes, cancel) = (Arc::new(Notes::default()), CancellationToken::new());
    let manager = Manager::new(cluster.factory.clone()).control(
        Controller::new(&cluster.owners).owns(&cluster.children),
        note,
        notes.clone(),
    );
    let probe = manager.probe();
    assert!(!probe.is_ready());
    let meanwhile = async {
        quiet().await;
        assert!(probe.is_ready() && probe.is_live() && probe.is_leader());
        assert_eq!(notes.take(), ["a"]);
        assert_eq!(
            cluster.owners.health().counts.lists.values().sum::<u64>(),
            1,
            "it begins with the most recent state"
        );
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(manager.run(cancel.clone()), meanwhile);
    outcome.unwrap();
    assert!(cluster.owners.health().stopped);
}

#[tokio::test(start_paused = true)]
async fn at_the_end_queues_drain_then_the_lease_is_released_then_informers_stop() {
    let cluster = Cluster::new();
    (0..3).for_each(|number| drop(cluster.owner(&format!("o{number}"))));
    let (notes, cancel) = (Arc::new(Notes::default()), CancellationToken::new());
    let server = cluster.server.clone();
    let owners = cluster.owners.clone();
    let reconcile = move |request: Request<Deployment>, notes: Arc<Notes>| {
        let (server, owners) = (server.clone(), owners.clone());
        async move {
            sleep(secs(2)).await;
            let lease = server.get("leases.coordination.k8s.io", Some("default"), "lead").unwrap();
            let holder = lease["spec"]["holderIdentity"].as_str().unwrap().to_owned();
            notes.note(format!("{} led by {holder}, cache {}", request.key().name(), !owners.health().stopped));
            Ok::<_, String>(Action::await_change())
        }
    };
    let elector = LeaderElector::new(cluster.client(), "default/lead", "me", settings()).unwrap();
    let controller = Controller::new(&cluster.owners).workers(1);
    let manager = Manager::new(cluster.factory.clone()).elect(elector).control(controller, reconcile, notes.clone());
    let meanwhile = async {
        sleep(secs(3)).await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(manager.run(cancel.clone()), meanwhile);
    outcome.unwrap();
    assert_eq!(notes.take(), ["o0 led by me, cache true", "o1 led by me, cache true", "o2 led by me, cache true"]);
    let lease = cluster.server.get("leases.coordination.k8s.io", Some("default"), "lead").unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], "");
    assert!(cluster.owners.health().stopped);
}

#[tokio::test(start_paused = true)]
async fn when_leadership_is_lost_work_is_dropped_at_once_and_the_caches_stay_current() {
    let cluster = Cluster::new();
    cluster.owner("a");
    let (notes, cancel, network) = (Arc::new(Notes::default()), CancellationToken::new(), Network::default());
    struct Dropped(Arc<Notes>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.note("dropped");
        }
    }
    let reconcile = |_: Request<Deployment>, notes: Arc<Notes>| async move {
        notes.note("begun");
        let _dropped = Dropped(notes);
        std::future::pending::<Result<Action, String>>().await
    };
    let client = network.client(&cluster.server);
    let elector = LeaderElector::new(client, "default/lead", "me", settings()).unwrap();
    let controller = Controller::new(&cluster.owners);
    let manager = Manager::new(cluster.factory.clone()).elect(elector).control(controller, reconcile, notes.clone());
    let probe = manager.probe();
    let meanwhile = async {
        sleep(secs(5)).await;
        assert!(probe.is_leader());
        assert_eq!(notes.take(), ["begun"]);
        let elections = probe.elections();
        let [election] = elections.as_slice() else { panic!("{elections:?}") };
        assert_eq!((election.lease.as_str(), election.identity.as_str()), ("default/lead", "me"));
        assert!(election.leads && election.leader.as_deref() == Some("me"), "{election:?}");
        assert!(election.term_left.is_some_and(|left| left > secs(5) && left <= secs(10)), "{election:?}");
        network.set(Mode::Silent);
        sleep(secs(11)).await;
        assert!(!probe.is_leader() && probe.is_ready() && probe.is_live());
        let election = &probe.elections()[0];
        assert!(!election.leads && election.term_left.is_none(), "{election:?}");
        assert_eq!(notes.take(), ["dropped"]);
        let lists = cluster.owners.health().counts.lists.values().sum::<u64>();
        network.set(Mode::Open);
        sleep(secs(20)).await;
        assert_eq!(notes.take(), ["begun"], "another term is another run");
        let again = cluster.owners.health().counts.lists.values().sum::<u64>();
        assert!(again <= lists + 1 && cluster.owners.health().is_watching());
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(manager.run(cancel.clone()), meanwhile);
    outcome.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_ends_by_itself_ends_the_program() {
    for elected in [false, true] {
        let cluster = Cluster::new();
        let notes = Arc::new(Notes::default());
        let mut manager = Manager::new(cluster.factory.clone()).control(Controller::new(&cluster.owners), note, notes);
        if elected {
            let elector = LeaderElector::new(cluster.client(), "default/lead", "me", settings());
            manager = manager.elect(elector.unwrap());
        }
        // The manager ends this second controller too, and it does not run any more when the lease is released.
        let server = cluster.server.clone();
        struct Last(kube_embedded_apiserver::ApiServer, bool);
        impl Drop for Last {
            fn drop(&mut self) {
                let lease = self.0.get("leases.coordination.k8s.io", Some("default"), "lead");
                assert!(lease.is_ok_and(|lease| lease["spec"]["holderIdentity"] == "me") || !self.1);
            }
        }
        cluster.child("child", &cluster.owner("a"), true);
        let stuck = move |_: Request<ConfigMap>, _: Arc<()>| {
            let last = Last(server.clone(), elected);
            async move {
                std::future::pending::<()>().await;
                drop(last);
                Ok::<_, String>(Action::await_change())
            }
        };
        manager = manager.control(Controller::new(&cluster.children), stuck, Arc::new(()));
        let meanwhile = async {
            sleep(secs(5)).await;
            cluster.owners.stop().await;
        };
        let (outcome, ()) = tokio::join!(manager.run(CancellationToken::new()), meanwhile);
        assert!(matches!(outcome, Err(ManagerError::Controller(_))), "{elected}: {outcome:?}");
        assert!(cluster.children.health().stopped);
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_checks_the_clock_of_the_term_before_each_key() {
    let cluster = Cluster::new();
    cluster.owner("a");
    let (notes, cancel) = (Arc::new(Notes::default()), CancellationToken::new());
    // The machine is suspended: by this clock the term is over, and no task has noticed yet.
    let suspended = Arc::new(AtomicU64::new(0));
    let (clock, mut settings) = (suspended.clone(), settings());
    settings.clock = SuspendClock::new(move || secs(clock.load(Ordering::Relaxed)));
    let elector = LeaderElector::new(cluster.client(), "default/lead", "me", settings).unwrap();
    let controller = Controller::new(&cluster.owners);
    let manager = Manager::new(cluster.factory.clone()).elect(elector).control(controller, note, notes.clone());
    let meanwhile = async {
        sleep(secs(5)).await;
        assert_eq!(notes.take(), ["a"]);
        cluster.label("deployments.apps", "a", "1");
        quiet().await;
        assert_eq!(notes.take(), ["a"], "the term holds");
        suspended.store(20, Ordering::Relaxed);
        cluster.label("deployments.apps", "a", "2");
        quiet().await;
        assert_eq!(notes.take(), Vec::<String>::new());
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(manager.run(cancel.clone()), meanwhile);
    outcome.unwrap();
}

/// Notes the name of each config map.
async fn note_child(request: Request<ConfigMap>, notes: Arc<Notes>) -> Result<Action, String> {
    notes.note(format!("leader {}", request.key().name()));
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn a_controller_on_every_replica_runs_without_leadership_and_the_others_do_not() {
    let cluster = Cluster::new();
    cluster.child("child", &cluster.owner("a"), true);
    let (notes, cancel, network) = (Arc::new(Notes::default()), CancellationToken::new(), Network::default());
    network.set(Mode::Silent);
    let elector = LeaderElector::new(network.client(&cluster.server), "default/lead", "me", settings()).unwrap();
    let manager = Manager::new(cluster.factory.clone())
        .elect(elector)
        .control_on_every_replica(Controller::new(&cluster.owners), note, notes.clone())
        .control(Controller::new(&cluster.children), note_child, notes.clone());
    let probe = manager.probe();
    let meanwhile = async {
        quiet().await;
        let problems = probe.ready();
        assert!(problems.is_empty() && !probe.is_leader(), "{problems:?}");
        assert_eq!(notes.take(), ["a"]);
        assert_eq!(cluster.owners.health().counts.lists.values().sum::<u64>(), 1);
        network.set(Mode::Open);
        sleep(secs(20)).await;
        assert_eq!(notes.take(), ["leader child"], "the term begins, and the other controller continues");
        network.set(Mode::Silent);
        sleep(secs(20)).await;
        assert!(!probe.is_leader());
        cluster.label("deployments.apps", "a", "1");
        cluster.label("configmaps", "child", "1");
        quiet().await;
        assert_eq!(notes.take(), ["a"], "leadership is lost");
        network.set(Mode::Open);
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(manager.run(cancel.clone()), meanwhile);
    outcome.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_fails_ends_the_controllers_of_the_other_kind() {
    for owners_everywhere in [false, true] {
        let cluster = Cluster::new();
        let (notes, elector) =
            (Arc::new(Notes::default()), LeaderElector::new(cluster.client(), "default/lead", "me", settings()));
        let (owners, children) = (Controller::new(&cluster.owners), Controller::new(&cluster.children));
        let manager = Manager::new(cluster.factory.clone()).elect(elector.unwrap());
        let manager = if owners_everywhere {
            manager.control_on_every_replica(owners, note, notes.clone()).control(children, note_child, notes)
        } else {
            manager.control(owners, note, notes.clone()).control_on_every_replica(children, note_child, notes)
        };
        let meanwhile = async {
            sleep(secs(5)).await;
            cluster.owners.stop().await;
        };
        let (outcome, ()) = tokio::join!(manager.run(CancellationToken::new()), meanwhile);
        assert!(matches!(outcome, Err(ManagerError::Controller(_))), "{owners_everywhere}: {outcome:?}");
        assert!(cluster.children.health().stopped);
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_start_with_synced_caches_and_stop_in_reverse_order_after_the_lease_is_released() {
    let cluster = Cluster::new();
    cluster.owner("a");
    let (notes, cancel) = (Arc::new(Notes::default()), CancellationToken::new());
    let ending = cancel.clone();
    let slow = move |request: Request<Deployment>, notes: Arc<Notes>| {
        ending.cancel();
        async move {
            sleep(secs(2)).await;
            note(request, notes).await
        }
    };
    let elector = LeaderElector::new(cluster.client(), "default/lead", "me", settings()).unwrap();
    let mut manager = Manager::new(cluster.factory.clone()).elect(elector);
    for name in ["webhook", "grpc"] {
        let (notes, server, owners) = (notes.clone(), cluster.server.clone(), cluster.owners.clone());
        manager = manager.task(name, async move |stop: CancellationToken| {
            notes.note(format!("{name} starts, synced: {}", owners.health().synced));
            stop.cancelled().await;
            let lease = server.get("leases.coordination.k8s.io", Some("default"), "lead").unwrap();
            sleep(Duration::from_millis(500)).await;
            notes.note(format!(
                "{name} stops, released: {}, cache: {}",
                lease["spec"]["holderIdentity"] == "",
                !owners.health().stopped
            ));
            Ok::<_, std::io::Error>(())
        });
    }
    let manager = manager.control(Controller::new(&cluster.owners), slow, notes.clone());
    manager.run(cancel).await.unwrap();
    let expected = [
        "webhook starts, synced: true",
        "grpc starts, synced: true",
        "a",
        "grpc stops, released: true, cache: true",
        "webhook stops, released: true, cache: true",
    ];
    assert_eq!(notes.take(), expected);
    assert!(cluster.owners.health().stopped);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_or_panics_ends_the_program_and_one_that_returns_does_not() {
    for ends in ["returns", "fails", "panics"] {
        let cluster = Cluster::new();
        let (notes, cancel) = (Arc::new(Notes::default()), CancellationToken::new());
        let manager = Manager::new(cluster.factory.clone())
            .control(Controller::new(&cluster.owners), note, notes.clone())
            .task("webhook", async move |_stop| match ends {
                "returns" => Ok(()),
                "fails" => Err("the port is in use"),
                _ => panic!("no certificate"),
            });
        let meanwhile = async {
            quiet().await;
            cluster.owner("a");
            sleep(secs(5)).await;
            cancel.cancel();
        };
        let (outcome, ()) = tokio::join!(manager.run(cancel.clone()), meanwhile);
        let why = outcome.map_err(|error| {
            let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            (error.to_string(), source.contains("the port is in use") || source.contains("no certificate"))
        });
        match ends {
            "returns" => assert_eq!(why, Ok(())),
            "fails" => assert_eq!(why, Err(("task \"webhook\" has failed".to_owned(), true))),
            _ => assert_eq!(why, Err(("task \"webhook\" panicked".to_owned(), true))),
        }
        assert_eq!(notes.take().len(), usize::from(ends == "returns"), "{ends}: the controllers run on or have ended");
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_that_do_not_stop_are_aborted_at_the_limit() {
    let cluster = Cluster::new();
    let (cancel, dropped) = (CancellationToken::new(), CancellationToken::new());
    let guard = dropped.clone().drop_guard();
    let manager = Manager::new(cluster.factory.clone())
        .stop_tasks_within(secs(7))
        .task("first", async |stop: CancellationToken| {
            stop.cancelled().await;
            Ok::<_, String>(())
        })
        .task("stuck", async move |_stop| {
            let _guard = guard;
            std::future::pending::<Result<(), String>>().await
        });
    let meanwhile = async {
        quiet().await;
        cancel.cancel();
        tokio::time::Instant::now()
    };
    let (outcome, asked) = tokio::join!(manager.run(cancel.clone()), meanwhile);
    let Err(ManagerError::TasksAborted { within, names }) = outcome else { panic!("{outcome:?}") };
    assert_eq!((within, names), (secs(7), vec!["stuck".to_owned(), "first".to_owned()]));
    assert_eq!(asked.elapsed().as_secs(), 7);
    assert!(dropped.is_cancelled() && !cluster.owners.health().is_watching(), "nothing runs any more");
}

#[tokio::test(start_paused = true)]
async fn tasks_do_not_start_without_synced_caches() {
    for cancelled in [false, true] {
        let (network, server) = (Network::default(), kube_embedded_apiserver::ApiServer::builder().seed(1).build());
        network.set(Mode::Silent);
        let cluster = Cluster::with(network.client(&server), server);
        let (notes, cancel) = (Arc::new(Notes::default()), CancellationToken::new());
        let noting = notes.clone();
        let manager = Manager::new(cluster.factory.clone()).sync_within(secs(30)).task("webhook", async move |_stop| {
            noting.note("started");
            Ok::<_, String>(())
        });
        let meanwhile = async {
            sleep(secs(10)).await;
            if cancelled {
                cancel.cancel();
            }
        };
        let (outcome, ()) = tokio::join!(manager.run(cancel.clone()), meanwhile);
        assert_eq!(notes.take(), Vec::<String>::new());
        match outcome {
            Ok(()) => assert!(cancelled),
            Err(ManagerError::NotSynced(error)) => {
                assert!(!cancelled && error.to_string().contains("configmaps"), "{error}")
            }
            Err(error) => panic!("{error}"),
        }
    }
}
