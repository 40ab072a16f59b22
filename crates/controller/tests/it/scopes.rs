//! Controllers whose informers follow other namespaces from now on (issue 22, item 8).

use std::sync::Arc;
use std::time::Duration;

use kube_controller::{Action, Controller};
use kube_embedded_apiserver::{ApiServer, Fault, Verb};
use kube_informer::{InformerOptions, InformerRequest, Selection, SharedInformerFactory};
use tokio::sync::Notify;

use crate::cluster::{Cluster, Run, quiet};

/// Returns a cluster whose informers follow the namespace `web`.
fn scoped() -> Cluster {
    let server = ApiServer::builder().seed(1).build();
    let web = Selection::new().namespace("web").unwrap();
    let options = InformerOptions::new().seed(1);
    let factory = SharedInformerFactory::builder(server.client()).options(options).select(web).build();
    let (owners, children) = (factory.informer().unwrap(), factory.informer_with(InformerRequest::new()).unwrap());
    Cluster { server, factory, owners, children }
}

/// Merges equal notes: a key may be reconciled for several reasons.
fn distinct(mut notes: Vec<String>) -> Vec<String> {
    notes.dedup();
    notes
}

#[tokio::test(start_paused = true)]
async fn an_object_that_left_the_scope_is_never_reconciled_as_gone() {
    let cluster = scoped();
    let a = cluster.owner("a");
    let controller = Controller::new(&cluster.owners).owns(&cluster.children);
    let handle = controller.handle();
    let run = Run::noting(controller);
    assert_eq!(run.noted().await, ["a"]);
    cluster.owners.set_namespaces(["shop"]).unwrap().await.unwrap();
    // A change of its child, or the program itself, names the key.
    cluster.child("child", &a, true);
    assert!(handle.enqueue("web/a"));
    assert_eq!(run.noted().await, [""; 0]);
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(run.notes.take(), [""; 0]);
    // After it has come back, a delete is a delete.
    cluster.owners.set_namespaces(["web"]).unwrap().await.unwrap();
    assert_eq!(run.noted().await, ["a"]);
    cluster.server.delete("deployments.apps", Some("web"), "a").unwrap();
    assert_eq!(run.noted().await, ["a is gone"]);
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_until_the_cache_of_its_children_holds_the_namespace() {
    let cluster = scoped();
    drop(cluster.children.set_namespaces([""; 0]).unwrap());
    cluster.owner("a");
    let run = Run::noting(Controller::new(&cluster.owners).owns(&cluster.children));
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(run.notes.take(), [""; 0], "its children are not followed");
    cluster.server.faults().add(Fault::status(403).verb(Verb::List).resource("configmaps").times(3));
    cluster.server.faults().add(Fault::status(403).verb(Verb::Watch).resource("configmaps").times(3));
    let change = cluster.children.set_namespaces(["web"]).unwrap();
    quiet().await;
    assert_eq!(run.notes.take(), [""; 0], "its children are not listed yet");
    change.within(Duration::from_secs(900)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(distinct(run.notes.take()), ["a"]);
    run.end().await;
}

// No event says that a child was deleted while its namespace was not followed.
#[tokio::test(start_paused = true)]
async fn everything_is_reconciled_after_an_informer_follows_other_namespaces() {
    for owned in [true, false] {
        let cluster = scoped();
        let a = cluster.owner("a");
        cluster.child("child", &a, true);
        let controller = Controller::new(&cluster.owners);
        let controller = match owned {
            true => controller.owns(&cluster.children),
            false => controller.watches(&cluster.children, |_: &_| ["web/a".parse().unwrap()]),
        };
        let run = Run::noting(controller);
        tokio::time::sleep(Duration::from_secs(10)).await;
        run.notes.take();
        cluster.children.set_namespaces(["shop"]).unwrap().await.unwrap();
        cluster.server.delete("configmaps", Some("web"), "child").unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
        run.notes.take();
        cluster.children.set_namespaces(["web"]).unwrap().await.unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(distinct(run.notes.take()), ["a"], "owned: {owned}");
        run.end().await;
    }
}

// Objects of other namespaces are often read, for example from one shared namespace.
#[tokio::test(start_paused = true)]
async fn a_key_does_not_wait_for_a_watched_kind_in_other_namespaces() {
    let cluster = scoped();
    drop(cluster.children.set_namespaces(["config"]).unwrap());
    cluster.owner("a");
    let keys = |_: &_| ["web/a".parse().unwrap()];
    let run = Run::noting(Controller::new(&cluster.owners).watches(&cluster.children, keys));
    assert_eq!(run.noted().await, ["a"]);
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_stays_in_all_caches_until_its_reconcile_has_returned() {
    let cluster = scoped();
    let a = cluster.owner("a");
    cluster.child("child", &a, true);
    let (proceed, waits) = (Arc::new(Notify::new()), cluster.children.clone());
    let go = proceed.clone();
    let controller = Controller::new(&cluster.owners).owns(&cluster.children);
    let run = Run::of(controller, move |request, notes| {
        let (go, children) = (go.clone(), waits.clone());
        async move {
            notes.note(format!("{} of {}", children.store().len(), request.key().name()));
            go.notified().await;
            notes.note(format!("{} of {}", children.store().len(), request.key().name()));
            Ok::<_, String>(Action::await_change())
        }
    });
    assert_eq!(run.noted().await, ["1 of a"]);
    let (owners, children) = (cluster.owners.set_namespaces(["shop"]), cluster.children.set_namespaces(["shop"]));
    let (mut owners, mut children) = (owners.unwrap().into_future(), children.unwrap().into_future());
    quiet().await;
    assert!(futures_util::poll!(&mut owners).is_pending());
    assert!(futures_util::poll!(&mut children).is_pending());
    proceed.notify_one();
    let (left, also) = tokio::join!(owners, children);
    left.and(also).unwrap();
    assert_eq!(run.noted().await, ["1 of a"]);
    assert!(cluster.children.store().is_empty() && cluster.owners.store().is_empty());
    run.end().await;
}
