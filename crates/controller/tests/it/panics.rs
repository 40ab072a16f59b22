//! After a panic in a function of the program no key is lost, and the status shows the panic.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_controller::{Action, Controller, Request, WatchSource};
use kube_informer::ObjectKey;
use tokio::time::sleep;

use crate::cluster::{Cluster, Notes, Run, quiet};

#[tokio::test(start_paused = true)]
async fn a_mapping_that_panics_is_counted_and_everything_is_reconciled() {
    for waits in [false, true] {
        let cluster = Cluster::new();
        ["a", "b"].iter().for_each(|name| drop(cluster.owner(name)));
        let owner = |map: &ConfigMap| -> ObjectKey {
            assert!(map.data.is_some(), "no data");
            "web/a".parse().unwrap()
        };
        let controller = Controller::new(&cluster.owners).workers(1);
        let controller = match waits {
            false => controller.watches(&cluster.children, move |map: &ConfigMap| [owner(map)]),
            true => {
                controller.watches_async(&cluster.children, move |map: Arc<ConfigMap>| async move { [owner(&map)] })
            }
        };
        let handle = controller.handle();
        let run = Run::noting(controller);
        assert_eq!(run.noted().await, ["a", "b"]);
        cluster.label_new(1);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(run.notes.take(), ["a", "b"]);
        assert_eq!(handle.status().mapping_panics, 1);
        // The mapping panics often, but everything is reconciled only every ten seconds.
        for number in 2..102 {
            cluster.label_new(number);
            sleep(Duration::from_millis(200)).await;
        }
        sleep(Duration::from_secs(15)).await;
        let reconciles = run.notes.take().len();
        assert!((4..=8).contains(&reconciles), "{reconciles}");
        assert_eq!(handle.status().mapping_panics, 101);
        run.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_predicate_that_panics_counts_as_true() {
    let cluster = Cluster::new();
    cluster.owner("a");
    let panics = Arc::new(AtomicBool::new(false));
    let (own, all) = (panics.clone(), panics.clone());
    let watched = WatchSource::from(&cluster.owners).when(move |_| {
        assert!(!own.load(Ordering::Relaxed), "the predicate");
        true
    });
    let controller = Controller::new(watched).when(move |_| {
        assert!(!all.load(Ordering::Relaxed), "the predicate of the controller");
        true
    });
    let handle = controller.handle();
    let run = Run::noting(controller);
    assert_eq!(run.noted().await, ["a"]);
    panics.store(true, Ordering::Relaxed);
    // A deletion: reconciling everything in the cache would not bring this key back.
    cluster.server.delete("deployments.apps", Some("web"), "a").unwrap();
    assert_eq!(run.noted().await, ["a is gone"]);
    assert_eq!(handle.status().mapping_panics, 2);
    run.end().await;
}

/// Panics when it is displayed, and when it is dropped.
#[derive(Debug)]
struct Nasty;

impl fmt::Display for Nasty {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("display")
    }
}

impl std::error::Error for Nasty {}

struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("drop")
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_that_cannot_be_displayed_and_a_future_that_panics_when_dropped_are_failed_attempts() {
    let cluster = Cluster::new();
    cluster.owner("a");
    let controller = Controller::new(&cluster.owners).timeout(Duration::from_secs(5));
    let handle = controller.handle();
    let own_handle = handle.clone();
    let reconcile = move |request: Request<Deployment>, notes: Arc<Notes>| {
        notes.note(own_handle.status().last_error.map(|last| last.error).unwrap_or_default());
        async move {
            match request.failures() {
                0 => Err(Nasty),
                1 => Ok(Action::terminal_error(Nasty)),
                2 => {
                    let _last = PanicsOnDrop;
                    std::future::pending().await
                }
                _ => Ok(Action::await_change()),
            }
        }
    };
    let run = Run::of(controller, reconcile);
    quiet().await;
    // A final failure is not tried again by itself.
    cluster.label("deployments.apps", "a", "1");
    sleep(Duration::from_secs(20)).await;
    let undisplayed = "an error that panicked while it was displayed: display";
    assert_eq!(run.notes.take(), ["", undisplayed, undisplayed, "took longer than 5s"]);
    assert!(handle.status().last_error.is_none());
    run.end().await;
}
