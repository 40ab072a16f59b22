//! A controller sees its own writes: it does not write twice although its cache lags behind the API server.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::PostParams;
use kube_client::{Api, Client, Resource as _};
use kube_controller::{Action, Controller, Request};
use kube_embedded_apiserver::{Action as FaultAction, Fault, Verb};
use kube_informer::SharedInformer;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::cluster::{Cluster, Notes, Run, quiet};

/// Creates a child for each owner that has none in the cache. The name is generated, so the API server never refuses
/// it.
pub(crate) fn creating(
    client: Client,
    children: SharedInformer<ConfigMap>,
) -> impl Fn(Request<Deployment>, Arc<Notes>) -> futures_util::future::BoxFuture<'static, Result<Action, kube_client::Error>>
{
    move |request, notes| {
        let (client, children) = (client.clone(), children.clone());
        Box::pin(async move {
            notes.note("called");
            let Some(owner) = request.object() else { return Ok(Action::await_change()) };
            let uid = owner.metadata.uid.as_deref().unwrap_or_default();
            let has = |child: &ConfigMap| {
                child.metadata.owner_references.iter().flatten().any(|reference| reference.uid == uid)
            };
            if !children.store().iter().any(|child| has(&child)) {
                let mut child = ConfigMap::default();
                child.metadata.generate_name = Some("child-".to_owned());
                child.metadata.owner_references = Some(owner.controller_owner_ref(&()).into_iter().collect());
                let api = Api::namespaced(client, "web");
                request.write(&children, api.create(&PostParams::default(), &child)).await?;
                notes.note("created");
            }
            Ok(Action::await_change())
        })
    }
}

/// Delays the watches of children by this time from now on.
async fn delay_watches(cluster: &Cluster, delay: Duration) {
    quiet().await;
    let late = Fault::new(FaultAction::DelayEvent { nth: 1, delay }).verb(Verb::Watch).resource("configmaps");
    cluster.server.faults().add(late);
    cluster.server.disconnect_watches();
    // An informer whose watch ends before the first event waits before it watches again.
    tokio::time::sleep(Duration::from_secs(3)).await;
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_until_the_cache_shows_the_writes_for_it() {
    let cluster = Cluster::new();
    let controller = Controller::new(&cluster.owners).owns(&cluster.children).workers(1);
    let handle = controller.handle();
    let run = Run::of(controller, creating(cluster.client(), cluster.children.clone()));
    delay_watches(&cluster, Duration::from_secs(20)).await;
    cluster.owner("a");
    assert_eq!(run.noted().await, ["called", "created"]);
    // The key is added several times, and other keys do not wait for it.
    for number in 0..5 {
        cluster.label("deployments.apps", "a", &number.to_string());
        quiet().await;
    }
    assert_eq!((run.notes.take().len(), handle.status().parked), (0, 1));
    cluster.owner("b");
    assert_eq!(run.noted().await, ["called", "created"]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    // Both keys are reconciled: the parked key was added meanwhile, and the children caused events for their owners.
    let noted = run.notes.take();
    assert!(noted.len() >= 2 && noted.iter().all(|note| note == "called"), "{noted:?}");
    assert_eq!((cluster.names("configmaps").len(), handle.status().parked), (2, 0));
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_lost_answer_the_key_waits_until_the_cache_has_caught_up() {
    let cluster = Cluster::new();
    // The server carries out the write, and the answer is lost.
    let lose = Arc::new(Mutex::new(true));
    let (inner, losing) = (cluster.client(), lose.clone());
    let client = Client::new(
        tower::service_fn(move |request: http::Request<kube_client::client::Body>| {
            let (inner, losing) = (inner.clone(), losing.clone());
            async move {
                let write = request.method() == http::Method::POST;
                let answer = inner.send(request).await.map_err(std::io::Error::other);
                if write && std::mem::take(&mut *losing.lock()) { Err(std::io::Error::other("lost")) } else { answer }
            }
        }),
        "default",
    );
    let run =
        Run::of(Controller::new(&cluster.owners).owns(&cluster.children), creating(client, cluster.children.clone()));
    delay_watches(&cluster, Duration::from_secs(20)).await;
    cluster.owner("a");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!*lose.lock());
    assert_eq!(cluster.names("configmaps").len(), 1);
    assert!(!run.notes.take().contains(&"created".to_owned()));
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_reconcile_was_dropped_during_a_write_the_key_waits_until_the_cache_has_caught_up() {
    let cluster = Cluster::new();
    let inner = cluster.client();
    let slow = Client::new(
        tower::service_fn(move |request: http::Request<kube_client::client::Body>| {
            let inner = inner.clone();
            async move {
                let write = request.method() == http::Method::POST;
                let answer = inner.send(request).await.map_err(std::io::Error::other);
                if write {
                    tokio::time::sleep(Duration::from_secs(10)).await;
                }
                answer
            }
        }),
        "default",
    );
    let controller = Controller::new(&cluster.owners).owns(&cluster.children).timeout(Duration::from_secs(2));
    let run = Run::of(controller, creating(slow, cluster.children.clone()));
    delay_watches(&cluster, Duration::from_secs(20)).await;
    cluster.owner("a");
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert_eq!(cluster.names("configmaps").len(), 1);
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn after_the_write_deadline_the_key_is_reconciled_and_the_status_counts_it() {
    let cluster = Cluster::new();
    let controller = Controller::new(&cluster.owners).owns(&cluster.children).write_deadline(Duration::from_secs(30));
    let handle = controller.handle();
    let run = Run::of(controller, creating(cluster.client(), cluster.children.clone()));
    delay_watches(&cluster, Duration::from_secs(100_000)).await;
    cluster.owner("a");
    assert_eq!(run.noted().await, ["called", "created"]);
    cluster.label("deployments.apps", "a", "1");
    let began = Instant::now();
    while handle.status().unseen_writes == 0 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!((25..35).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    assert_eq!(run.noted().await.first().map(String::as_str), Some("called"));
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn another_object_of_the_same_name_does_not_wait_for_the_writes_of_its_predecessor() {
    let cluster = Cluster::new();
    let controller = Controller::new(&cluster.owners).owns(&cluster.children);
    let run = Run::of(controller, creating(cluster.client(), cluster.children.clone()));
    delay_watches(&cluster, Duration::from_secs(1000)).await;
    cluster.owner("a");
    assert_eq!(run.noted().await, ["called", "created"]);
    cluster.server.delete("deployments.apps", Some("web"), "a").unwrap();
    quiet().await;
    cluster.owner("a");
    assert_eq!(run.noted().await, ["called", "created"]);
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_until_the_cache_shows_that_an_object_was_deleted() {
    let cluster = Cluster::new();
    let a = cluster.owner("a");
    cluster.child("child", &a, true);
    let (client, children) = (cluster.client(), cluster.children.clone());
    let reconcile = move |request: Request<Deployment>, notes: Arc<Notes>| {
        let (client, children) = (client.clone(), children.clone());
        async move {
            if let Some(child) = children.store().get("web/child") {
                notes.note("deleted");
                let api: Api<ConfigMap> = Api::namespaced(client, "web");
                api.delete("child", &Default::default()).await?;
                request.deleted(&children, &*child);
            }
            Ok::<_, kube_client::Error>(Action::requeue(Duration::from_secs(1)))
        }
    };
    cluster.factory.start().unwrap();
    delay_watches(&cluster, Duration::from_secs(20)).await;
    let run = Run::of(Controller::new(&cluster.owners).owns(&cluster.children), reconcile);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(run.notes.take(), ["deleted"]);
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_begins_after_a_filled_cache_that_lags_behind_has_caught_up() {
    let cluster = Cluster::new();
    let a = cluster.owner("a");
    cluster.factory.start().unwrap();
    cluster.factory.synced().await.unwrap();
    // From now on the cache receives no events about children for 1000 s. An earlier leader creates a child.
    delay_watches(&cluster, Duration::from_secs(1000)).await;
    cluster.child("child", &a, true);
    quiet().await;
    assert!(cluster.children.store().is_empty());
    let controller = Controller::new(&cluster.owners).owns(&cluster.children);
    let run = Run::of(controller, creating(cluster.client(), cluster.children.clone()));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(!run.notes.take().contains(&"created".to_owned()));
    assert_eq!(cluster.names("configmaps"), ["child"]);
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_owner_is_reconciled_after_its_child_was_created_and_deleted_unseen_by_the_cache() {
    let cluster = Cluster::new();
    let controller = Controller::new(&cluster.owners).owns(&cluster.children);
    let run = Run::of(controller, creating(cluster.client(), cluster.children.clone()));
    delay_watches(&cluster, Duration::from_secs(1000)).await;
    cluster.owner("a");
    assert_eq!(run.noted().await, ["called", "created"]);
    // No handler receives an event about this child: it is deleted before the cache receives events about children
    // again.
    cluster.server.delete("configmaps", Some("web"), &cluster.names("configmaps")[0]).unwrap();
    cluster.server.faults().clear();
    cluster.children.relist().await.unwrap();
    assert_eq!(run.noted().await, ["called", "created", "called"]);
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_keeps_failing_is_retried_with_the_delays_of_the_limiter() {
    let cluster = Cluster::new();
    cluster.server.faults().add(Fault::status(500).verb(Verb::Create));
    let limiter = kube_controller::limiter::ItemExponential::new(Duration::from_secs(1), Duration::from_secs(1000));
    let controller = Controller::new(&cluster.owners).owns(&cluster.children).limiter(limiter);
    let run = Run::of(controller, creating(cluster.client(), cluster.children.clone()));
    cluster.owner("a");
    tokio::time::sleep(Duration::from_secs(100)).await;
    // At 0, 1, 3, 7, 15, 31 and 63 seconds, or a little later, since the cache has to catch up first.
    assert_eq!(run.notes.take().len(), 7);
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn after_an_unnoticed_restore_of_the_server_at_most_two_children_are_created() {
    let cluster = Cluster::new();
    let saved = cluster.server.save();
    let run = Run::of(
        Controller::new(&cluster.owners).owns(&cluster.children),
        creating(cluster.client(), cluster.children.clone()),
    );
    quiet().await;
    for number in 0..500 {
        cluster.label_new(number);
    }
    quiet().await;
    delay_watches(&cluster, Duration::from_secs(1000)).await;
    // After the restore the server has lower versions than the cache of children.
    cluster.server.restore(&saved);
    cluster.owner("a");
    tokio::time::sleep(Duration::from_secs(120)).await;
    let created = run.notes.take().iter().filter(|note| *note == "created").count();
    assert!(created <= 2, "{created} were created, {:?} are there", cluster.names("configmaps").len());
    run.task.abort();
}

/// Makes an informer of config maps with a label, and a controller that owns these config maps.
fn selecting() -> (Cluster, SharedInformer<ConfigMap>, Controller<Deployment>) {
    let cluster = Cluster::new();
    let selection = kube_informer::Selection::new().labels("app=x").unwrap();
    let some: SharedInformer<ConfigMap> =
        cluster.factory.informer_with(kube_informer::InformerRequest::new().select(selection)).unwrap();
    let limiter = kube_controller::limiter::ItemExponential::new(Duration::from_secs(1), Duration::from_secs(1000));
    let controller = Controller::new(&cluster.owners).owns(&some).limiter(limiter);
    (cluster, some, controller)
}

#[tokio::test(start_paused = true)]
async fn a_write_of_an_object_that_the_informer_does_not_select_fails_for_good() {
    let (cluster, some, controller) = selecting();
    let handle = controller.handle();
    let run = Run::of(controller, creating(cluster.client(), some));
    cluster.owner("a");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(run.notes.take(), ["called"], "it is not tried again");
    assert_eq!(cluster.names("configmaps").len(), 1);
    let status = handle.status();
    let error = status.last_error.unwrap().error;
    assert!(error.contains("will never show it: its labels do not match \"app=x\""), "{error}");
    assert_eq!((status.failures, status.parked), (1, 0));
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_for_a_write_after_which_the_informer_does_not_select_the_object() {
    let (cluster, some, controller) = selecting();
    let a = cluster.owner("a");
    cluster.child("child", &a, true);
    cluster
        .server
        .patch("configmaps", Some("web"), "child", serde_json::json!({"metadata": {"labels": {"app": "x"}}}))
        .unwrap();
    let client = cluster.client();
    let reconcile = move |request: Request<Deployment>, notes: Arc<Notes>| {
        let (client, some) = (client.clone(), some.clone());
        async move {
            if some.store().get("web/child").is_some() {
                let api: Api<ConfigMap> = Api::namespaced(client, "web");
                let release = serde_json::json!({"metadata": {"labels": {"app": null}}});
                let patch = kube_client::api::Patch::Merge(&release);
                request.write(&some, api.patch("child", &Default::default(), &patch)).await?;
                notes.note("released");
            }
            Ok::<_, kube_client::Error>(Action::await_change())
        }
    };
    let handle = controller.handle();
    let run = Run::of(controller, reconcile);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(run.notes.take(), ["released"]);
    assert_eq!((handle.status().failures, handle.status().unseen_writes), (0, 0));
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_write_to_the_informer_of_another_kind_fails_at_once() {
    let cluster = Cluster::new();
    let secrets: SharedInformer<k8s_openapi::api::core::v1::Secret> = cluster.factory.informer().unwrap();
    let controller = Controller::new(&cluster.owners).owns(&cluster.children).waits_for(&secrets);
    let handle = controller.handle();
    let (client, wrong) = (cluster.client(), secrets.clone());
    let reconcile = move |request: Request<Deployment>, notes: Arc<Notes>| {
        let (client, wrong) = (client.clone(), wrong.clone());
        async move {
            let api: Api<ConfigMap> = Api::namespaced(client, "web");
            let mut map = ConfigMap::default();
            map.metadata.name = Some("m".to_owned());
            let delete = request.delete(&wrong, &map, api.delete("m", &Default::default())).await;
            notes.note(delete.unwrap_err().to_string());
            // The reconcile fails even if it ignores this error.
            let _ = request.write(&wrong, api.create(&PostParams::default(), &map)).await;
            Ok::<_, String>(Action::await_change())
        }
    };
    let run = Run::of(controller, reconcile);
    cluster.owner("a");
    tokio::time::sleep(Duration::from_secs(600)).await;
    let expected = ["m is not of kind Secret, which informer secrets caches; name the informer of its own kind"];
    assert_eq!(run.notes.take(), expected);
    assert_eq!(handle.status().failures, 1);
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_a_cache_never_shows_is_written_with_growing_delays_and_counted() {
    let (cluster, _, controller) = selecting();
    // The cache shows other objects than the API server writes: a proxy, or a selector that only the server can
    // evaluate.
    let (shown, handle) =
        (cluster.factory.informer::<k8s_openapi::api::core::v1::Secret>().unwrap(), controller.handle());
    let controller = controller.waits_for(&shown);
    let client = cluster.client();
    let reconcile = move |request: Request<Deployment>, notes: Arc<Notes>| {
        let (client, shown) = (client.clone(), shown.clone());
        async move {
            let api: Api<ConfigMap> = Api::namespaced(client, "web");
            let mut map = ConfigMap::default();
            map.metadata.generate_name = Some("m-".to_owned());
            // Reports the write by name and version only, so that its kind is not compared.
            let written = api.create(&PostParams::default(), &map).await?;
            let identity = kube_informer::Identity::of(&written);
            request.wrote(&shown, &identity);
            notes.note("created");
            Ok::<_, kube_client::Error>(Action::await_change())
        }
    };
    let run = Run::of(controller, reconcile);
    cluster.owner("a");
    for number in 0..600 {
        let object = serde_json::json!({"metadata": {"name": format!("s{number}")}});
        cluster.server.create("secrets", Some("web"), object).unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let created = run.notes.take().iter().filter(|note| *note == "created").count();
    assert!((2..=12).contains(&created), "{created}");
    let unseen = handle.status().unseen_writes;
    assert!(unseen >= created as u64 - 1, "{unseen} of {created}");
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_final_failure_after_a_write_with_an_unknown_outcome_is_retried_with_the_delays_of_the_limiter() {
    let cluster = Cluster::new();
    cluster.server.faults().add(Fault::status(500).verb(Verb::Create));
    let limiter = kube_controller::limiter::ItemExponential::new(Duration::from_secs(1), Duration::from_secs(1000));
    let controller = Controller::new(&cluster.owners).owns(&cluster.children).limiter(limiter);
    let create = creating(cluster.client(), cluster.children.clone());
    let reconcile = move |request: Request<Deployment>, notes: Arc<Notes>| {
        let created = create(request, notes);
        async move { Ok::<_, String>(created.await.unwrap_or_else(Action::terminal_error)) }
    };
    let run = Run::of(controller, reconcile);
    cluster.owner("a");
    tokio::time::sleep(Duration::from_secs(600)).await;
    let writes = run.notes.take().len();
    assert!((5..=12).contains(&writes), "{writes}");
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn failures_are_counted_with_a_limiter_that_does_not_count() {
    struct Fixed;
    impl kube_controller::RateLimiter<kube_informer::ObjectKey> for Fixed {
        fn when(&self, _: &kube_informer::ObjectKey) -> Duration {
            Duration::from_secs(1)
        }
        fn forget(&self, _: &kube_informer::ObjectKey) {}
        fn num_requeues(&self, _: &kube_informer::ObjectKey) -> u32 {
            0
        }
    }
    let cluster = Cluster::new();
    cluster.owner("a");
    let reconcile = |request: Request<Deployment>, notes: Arc<Notes>| async move {
        notes.note(request.failures().to_string());
        if request.failures() < 3 { Err("not yet") } else { Ok(Action::requeue(Duration::from_secs(60))) }
    };
    let run = Run::of(Controller::new(&cluster.owners).limiter(Fixed), reconcile);
    tokio::time::sleep(Duration::from_secs(65)).await;
    assert_eq!(run.notes.take(), ["0", "1", "2", "3", "0", "1"]);
    run.end().await;
}
