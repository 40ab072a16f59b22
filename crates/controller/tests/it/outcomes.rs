//! The outcome hook sees every reconcile: key, result, attempt, duration, and when the key is reconciled again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube_controller::controller::{Outcome, ReconcileFailure};
use kube_controller::limiter::ItemExponential;
use kube_controller::{Action, Controller, Request};
use serde_json::json;

use crate::cluster::{Cluster, Notes, Run, quiet};

const SECOND: Duration = Duration::from_secs(1);

/// Notes each outcome in one line.
fn noting(controller: Controller<Deployment>) -> (Controller<Deployment>, Arc<Notes>) {
    let notes = Arc::new(Notes::default());
    let own = notes.clone();
    let note = move |outcome: &Outcome| {
        let result = outcome.result.as_ref().map_or_else(ToString::to_string, |()| "ok".to_owned());
        let seconds = outcome.duration.as_secs();
        let again = outcome.requeue_after.map_or("on change".to_owned(), |delay| format!("after {delay:?}"));
        own.note(format!("{} {}: {result} in {seconds}s, again {again}", outcome.key, outcome.attempt));
    };
    (controller.on_outcome(note).limiter(ItemExponential::new(SECOND, SECOND * 60)), notes)
}

#[tokio::test(start_paused = true)]
async fn hook_sees_key_result_attempt_duration_and_next_run_of_each_reconcile() {
    let cluster = Cluster::new();
    cluster.owner("a");
    let (controller, outcomes) = noting(Controller::new(&cluster.owners).timeout(SECOND * 5));
    let calls = AtomicU32::new(0);
    let reconcile = move |_: Request<Deployment>, _: Arc<Notes>| {
        let call = calls.fetch_add(1, Ordering::Relaxed);
        async move {
            match call {
                0 => Err("not yet"),
                1 => panic!("oops"),
                2 => std::future::pending().await,
                3 => {
                    tokio::time::sleep(SECOND * 2).await;
                    Ok(Action::requeue(SECOND * 30))
                }
                4 => Ok(Action::await_change()),
                _ => Ok(Action::terminal_error("no such flavour")),
            }
        }
    };
    let run = Run::of(controller, reconcile);
    tokio::time::sleep(SECOND * 60).await;
    let expected = [
        "web/a 1: not yet in 0s, again after 1s",
        "web/a 2: panicked: oops in 0s, again after 2s",
        "web/a 3: took longer than 5s in 5s, again after 4s",
        "web/a 4: ok in 2s, again after 30s",
        "web/a 1: ok in 0s, again on change",
    ];
    assert_eq!(outcomes.take(), expected);
    cluster.label("deployments.apps", "a", "1");
    quiet().await;
    assert_eq!(outcomes.take(), ["web/a 1: no such flavour in 0s, again on change"]);
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn hook_sees_an_attempt_that_was_not_called_because_an_object_cannot_be_decoded() {
    let cluster = Cluster::new();
    let mut a = cluster.owner("a");
    a["metadata"]["labels"] = json!(5);
    cluster.server.put_as_is("deployments.apps", Some("web"), a).unwrap();
    let failures = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let own = failures.clone();
    let controller =
        Controller::new(&cluster.owners).on_outcome(move |outcome| own.lock().push(outcome.result.clone()));
    let handle = controller.handle();
    let run = Run::noting(controller);
    quiet().await;
    handle.enqueue("web/a");
    assert_eq!(run.noted().await, Vec::<String>::new());
    assert!(matches!(&failures.lock()[..], [Err(ReconcileFailure::Undecodable(_)), ..]), "{:?}", failures.lock());
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_hook_is_counted_and_the_worker_goes_on() {
    let cluster = Cluster::new();
    ["a", "b"].iter().for_each(|name| drop(cluster.owner(name)));
    let controller = Controller::new(&cluster.owners).workers(1);
    let handle = controller.handle();
    let own = handle.clone();
    let controller = controller.on_outcome(move |outcome| {
        // No lock is held: the handle works. The worker has the key until the hook returns.
        assert_eq!(own.status().active, 1);
        panic!("hook for {}", outcome.key)
    });
    let run = Run::noting(controller);
    assert_eq!(run.noted().await, ["a", "b"]);
    cluster.label("deployments.apps", "a", "1");
    assert_eq!(run.noted().await, ["a"]);
    let status = handle.status();
    assert_eq!((status.hook_panics, status.failures, status.active), (3, 0, 0));
    run.end().await;
}
