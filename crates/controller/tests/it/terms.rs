//! A reconcile knows its term, and nothing is written through the request after the term is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Api;
use kube_client::api::PostParams;
use kube_controller::term::SuspendClock;
use kube_controller::{
    Action, Controller, ElectionSettings, LeaderElector, LeadershipLost, Manager, Request, WriteError,
};
use kube_informer::CancellationToken;
use tokio::time::sleep;

use crate::cluster::{Cluster, Notes, Run};

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The machine is suspended during a reconcile. After it wakes up, the reconcile continues before any other task runs.
#[tokio::test(start_paused = true)]
async fn a_reconcile_in_progress_does_not_write_after_its_term() {
    let cluster = Cluster::new();
    let child = cluster.child("child", &cluster.owner("a"), true);
    let child: ConfigMap = serde_json::from_value(child).unwrap();
    let suspended = Arc::new(AtomicU64::new(0));
    let (clock, mut settings) = (suspended.clone(), ElectionSettings::default());
    settings.clock = SuspendClock::new(move || secs(clock.load(Ordering::Relaxed)));
    let elector = LeaderElector::new(cluster.client(), "default/lead", "me", settings).unwrap();
    let (notes, cancel) = (Arc::new(Notes::default()), CancellationToken::new());
    let (client, children, ends) = (cluster.client(), cluster.children.clone(), cancel.clone());
    let reconcile = move |request: Request<Deployment>, notes: Arc<Notes>| {
        let (client, children, suspended) = (client.clone(), children.clone(), suspended.clone());
        let (child, ends) = (child.clone(), ends.clone());
        async move {
            assert!(request.term().check().is_ok() && !request.is_ending());
            suspended.store(20, Ordering::Relaxed);
            let api: Api<ConfigMap> = Api::namespaced(client, "web");
            let write = request.write(&children, api.create(&PostParams::default(), &child)).await;
            let delete = request.delete(&children, &child, api.delete("child", &Default::default())).await;
            let attempted = async {
                notes.note("attempted");
                Ok::<(), String>(())
            };
            let attempt = request.attempt(&children, attempted).await;
            let over = matches!(write, Err(WriteError::LeadershipLost(LeadershipLost)))
                && matches!(delete, Err(WriteError::LeadershipLost(LeadershipLost)))
                && matches!(attempt, Err(WriteError::LeadershipLost(LeadershipLost)));
            notes.note(format!("over: {over}, {}", kube_client::Error::from(write.unwrap_err())));
            ends.cancel();
            Ok::<_, String>(Action::await_change())
        }
    };
    let controller = Controller::new(&cluster.owners).owns(&cluster.children).workers(1);
    let manager = Manager::new(cluster.factory.clone()).elect(elector).control(controller, reconcile, notes.clone());
    let before = cluster.server.requests().len();
    manager.run(cancel).await.unwrap();
    assert_eq!(notes.take(), ["over: true, ServiceError: the term is over: leadership was lost"]);
    let written = cluster.server.requests().into_iter().skip(before).filter(|request| request.resource == "configmaps");
    let verbs: Vec<_> = written.map(|request| request.verb.to_string()).collect();
    assert!(verbs.iter().all(|verb| verb == "list" || verb == "watch"), "{verbs:?}");
}

#[tokio::test(start_paused = true)]
async fn a_long_reconcile_learns_that_the_controller_was_asked_to_end() {
    let cluster = Cluster::new();
    cluster.owner("a");
    let reconcile = |request: Request<Deployment>, notes: Arc<Notes>| async move {
        tokio::select! {
            () = request.term().ending() => notes.note(format!("ending: {}", request.is_ending())),
            () = sleep(secs(3600)) => notes.note("not asked"),
        }
        Ok::<_, String>(Action::await_change())
    };
    let run = Run::of(Controller::new(&cluster.owners), reconcile);
    sleep(secs(10)).await;
    let notes = run.notes.clone();
    run.end().await;
    assert_eq!(notes.take(), ["ending: true"]);
}

#[tokio::test(start_paused = true)]
async fn each_reconcile_has_a_number_of_its_own() {
    let cluster = Cluster::new();
    (0..5).for_each(|number| drop(cluster.owner(&format!("o{number}"))));
    let reconcile = |request: Request<Deployment>, notes: Arc<Notes>| async move {
        notes.note(request.id().to_string());
        Ok::<_, String>(Action::await_change())
    };
    let run = Run::of(Controller::new(&cluster.owners), reconcile);
    let ids: std::collections::BTreeSet<String> = run.noted().await.into_iter().collect();
    assert_eq!(ids.len(), 5);
    run.end().await;
}
