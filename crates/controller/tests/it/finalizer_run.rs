//! The finalizer in a reconcile: it is stored before `apply`, and removed after `cleanup`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use k8s_openapi::api::apps::v1::Deployment;
use kube_client::Api;
use kube_controller::controller::BoxError;
use kube_controller::finalizer::FinalizerError;
use kube_controller::{Action, Controller, Finalizer, Request, WatchSource, predicate};
use kube_embedded_apiserver::{Action as FaultAction, Fault, Status, Verb};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::cluster::{Cluster, Notes, Run, quiet};

const NAME: &str = "example.com/cleanup";

type Reconciled = BoxFuture<'static, Result<Action, BoxError>>;

/// Notes calls of `apply` and `cleanup`, with the finalizers that the server has then. `cleanup` returns the result of
/// `next`.
fn noting(
    cluster: &Cluster,
    next: impl Fn() -> Result<Action, BoxError> + Clone + Send + Sync + 'static,
) -> impl Fn(Request<Deployment>, Arc<Notes>) -> Reconciled + Send + Sync + 'static {
    let (server, owners) = (cluster.server.clone(), cluster.owners.clone());
    move |request, notes| {
        let (server, owners, next) = (server.clone(), owners.clone(), next.clone());
        async move {
            let api: Api<Deployment> = Api::namespaced(server.client(), "web");
            let finalizer = Finalizer::new(api, NAME)?;
            let note = |call: &str, object: &Deployment| {
                let stored = server.get("deployments.apps", Some("web"), "a").unwrap_or_default();
                notes.note(format!("{call} {}", stored["metadata"]["finalizers"]));
                assert!(finalizer.is_on(object), "{call}");
            };
            let apply = async |object: Arc<Deployment>| {
                note("apply", &object);
                Ok(Action::await_change())
            };
            let cleanup = async |object: Arc<Deployment>| {
                note("cleanup", &object);
                next()
            };
            let outcome = finalizer.run(&request, &owners, apply, cleanup).await;
            outcome.inspect_err(|error: &BoxError| notes.note(error.to_string()))
        }
        .boxed()
    }
}

/// Creates a deployment that passes validation, because the finalizer is added by a patch over the network.
fn owner(cluster: &Cluster) {
    let (labels, container) = (json!({"app": "a"}), json!({"name": "a", "image": "a"}));
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
    let spec = json!({"selector": {"matchLabels": labels}, "template": template});
    let object = json!({"metadata": {"name": "a"}, "spec": spec});
    cluster.server.create("deployments.apps", Some("web"), object).unwrap();
}

fn stored(cluster: &Cluster) -> Option<Value> {
    cluster.server.get("deployments.apps", Some("web"), "a").ok()
}

#[tokio::test(start_paused = true)]
async fn the_finalizer_is_stored_before_apply_and_removed_after_cleanup() {
    for only_generations in [false, true] {
        let cluster = Cluster::new();
        let mut owners = WatchSource::from(&cluster.owners);
        if only_generations {
            // A finalizer does not change the generation.
            owners = owners.when(predicate::generation_changed);
        }
        let run = Run::of(Controller::new(owners).workers(1), noting(&cluster, || Ok(Action::await_change())));
        quiet().await;
        owner(&cluster);
        let noted = run.noted().await;
        assert_eq!(noted[0], r#"apply ["example.com/cleanup"]"#);
        // Predicates are true for changes of finalizers.
        assert_eq!(noted.len(), 2, "{noted:?}");
        cluster.server.delete("deployments.apps", Some("web"), "a").unwrap();
        assert_eq!(run.noted().await, [r#"cleanup ["example.com/cleanup"]"#]);
        assert!(stored(&cluster).is_none());
        run.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_until_the_cache_shows_that_the_finalizer_was_removed() {
    let cluster = Cluster::new();
    let controller = Controller::new(&cluster.owners).workers(1);
    let handle = controller.handle();
    let run = Run::of(controller, noting(&cluster, || Ok(Action::await_change())));
    quiet().await;
    owner(&cluster);
    quiet().await;
    // The object stays, because it has another finalizer.
    let finalizers = json!({"metadata": {"finalizers": [NAME, "example.com/other"]}});
    cluster.server.patch("deployments.apps", Some("web"), "a", finalizers).unwrap();
    quiet().await;
    run.notes.take();
    // The first event of the next watch arrives at once, the second one after 20 s.
    let late = Fault::new(FaultAction::DelayEvent { nth: 2, delay: Duration::from_secs(20) }).verb(Verb::Watch);
    cluster.server.faults().add(late.resource("deployments.apps"));
    cluster.server.disconnect_watches();
    sleep(Duration::from_secs(3)).await;
    cluster.server.delete("deployments.apps", Some("web"), "a").unwrap();
    quiet().await;
    assert_eq!(run.notes.take().len(), 1, "cleanup");
    assert_eq!(stored(&cluster).unwrap()["metadata"]["finalizers"], json!(["example.com/other"]));
    let cached = cluster.owners.store().get(("web", "a")).unwrap();
    assert_eq!(cached.metadata.finalizers.as_ref().map(Vec::len), Some(2), "the cache is behind");
    for _ in 0..5 {
        handle.enqueue("web/a");
        quiet().await;
    }
    sleep(Duration::from_secs(60)).await;
    assert_eq!(run.noted().await, Vec::<String>::new(), "cleanup has run once");
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_finalizer_stays_until_cleanup_is_done() {
    let results: [fn() -> Result<Action, BoxError>; 3] = [
        || Ok(Action::requeue(Duration::from_secs(5))),
        || Ok(Action::terminal_error("the bucket is not empty")),
        || Err("no connection".into()),
    ];
    for result in results {
        let cluster = Cluster::new();
        let run = Run::of(Controller::new(&cluster.owners).workers(1), noting(&cluster, result));
        quiet().await;
        owner(&cluster);
        quiet().await;
        cluster.server.delete("deployments.apps", Some("web"), "a").unwrap();
        sleep(Duration::from_secs(12)).await;
        assert_eq!(stored(&cluster).unwrap()["metadata"]["finalizers"], json!([NAME]));
        assert!(run.notes.take().iter().any(|note| note.starts_with("cleanup")));
        run.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_applied_if_the_finalizer_is_refused() {
    let refuse = |write: &mut kube_embedded_apiserver::Admission<'_>| match write.before {
        Some(_) if write.verb != Verb::Delete => Err(Status::failure(422, "Invalid", "not today")),
        _ => Ok(()),
    };
    let server = kube_embedded_apiserver::ApiServer::builder().seed(1).admission(refuse).build();
    let cluster = Cluster::with(server.client(), server);
    let run = Run::of(Controller::new(&cluster.owners).workers(1), noting(&cluster, || Ok(Action::await_change())));
    quiet().await;
    owner(&cluster);
    sleep(Duration::from_secs(1)).await;
    let noted = run.notes.take();
    let refused = "the server refused to change the finalizers of a";
    assert!(noted.len() > 1 && noted.iter().all(|note| note == refused), "{noted:?}");
    run.end().await;
}

#[tokio::test]
async fn an_object_that_is_being_deleted_without_the_finalizer_is_left_alone() {
    let cluster = Cluster::new();
    let metadata = json!({"name": "a", "finalizers": ["example.com/other"]});
    cluster.server.create("deployments.apps", Some("web"), json!({"metadata": metadata})).unwrap();
    cluster.server.delete("deployments.apps", Some("web"), "a").unwrap();
    let run = Run::of(Controller::new(&cluster.owners).workers(1), noting(&cluster, || Ok(Action::await_change())));
    assert_eq!(run.noted().await, Vec::<String>::new());
    run.end().await;
}

#[test]
fn an_error_type_of_the_program_is_made_from_the_error_of_the_finalizer() {
    #[derive(Debug)]
    struct Own;
    impl From<FinalizerError> for Own {
        fn from(_: FinalizerError) -> Self {
            Self
        }
    }
    // This test only has to compile.
    let _ = async |finalizer: Finalizer<Deployment>,
                   request: Request<Deployment>,
                   cluster: Cluster|
           -> Result<Action, Own> {
        finalizer.run(&request, &cluster.owners, async |_| Err(Own), async |_| Ok(Action::await_change())).await
    };
}
