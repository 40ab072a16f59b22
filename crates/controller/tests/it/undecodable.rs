//! An object that exists and cannot be decoded is not mistaken for one that does not exist.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube_client::api::{Patch, PatchParams};
use kube_client::core::{ApiResource, DynamicObject};
use kube_client::{Api, Client};
use kube_controller::{Action, Controller, ControllerHandle, Request, Term};
use kube_embedded_apiserver::ApiServer;
use kube_informer::{CancellationToken, SharedInformerFactory};
use serde_json::{Value, json};

use crate::cluster::{Cluster, Notes, Run, quiet};
use crate::own_writes::creating;

/// Makes an object undecodable: its labels are not a map of strings.
fn break_object(cluster: &Cluster, resource: &str, name: &str) {
    let mut object = cluster.server.get(resource, Some("web"), name).unwrap();
    object["metadata"]["labels"] = json!(5);
    cluster.server.put_as_is(resource, Some("web"), object).unwrap();
}

fn repair_object(cluster: &Cluster, resource: &str, name: &str) {
    let mut object = cluster.server.get(resource, Some("web"), name).unwrap();
    object["metadata"]["labels"] = json!({"repaired": "yes"});
    cluster.server.put_as_is(resource, Some("web"), object).unwrap();
}

fn last_error(handle: &ControllerHandle<Deployment>) -> String {
    handle.status().last_error.map(|last| last.error).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn reconcile_is_not_called_for_an_undecodable_object() {
    for known_before in [true, false] {
        let cluster = Cluster::new();
        let a = cluster.owner("a");
        if !known_before {
            break_object(&cluster, "deployments.apps", "a");
        }
        let controller = Controller::new(&cluster.owners).owns(&cluster.children);
        let handle = controller.handle();
        let run = Run::noting(controller);
        assert_eq!(run.noted().await.is_empty(), !known_before);
        if known_before {
            break_object(&cluster, "deployments.apps", "a");
        }
        // A change of its child reconciles its key.
        cluster.child("child", &a, true);
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert_eq!(run.notes.take(), Vec::<String>::new(), "known before: {known_before}");
        let error = last_error(&handle);
        assert!(error.starts_with("web/a exists but cannot be decoded, so reconcile was not called"), "{error}");
        repair_object(&cluster, "deployments.apps", "a");
        assert_eq!(run.noted().await, ["a"]);
        assert!(handle.status().last_error.is_none());
        run.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_whose_undecodable_object_is_deleted_is_reconciled_without_an_object() {
    let cluster = Cluster::new();
    let a = cluster.owner("a");
    break_object(&cluster, "deployments.apps", "a");
    let controller = Controller::new(&cluster.owners).owns(&cluster.children);
    let handle = controller.handle();
    let run = Run::noting(controller);
    quiet().await;
    cluster.child("child", &a, true);
    // After this many failures the limiter alone would delay the key for 1,000 seconds.
    tokio::time::sleep(Duration::from_secs(3000)).await;
    assert!(handle.status().failures > 90, "{}", handle.status().failures);
    cluster.server.delete("deployments.apps", Some("web"), "a").unwrap();
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(run.notes.take(), ["a is gone"]);
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_child_that_cannot_be_decoded_is_not_created_a_second_time() {
    for ignored in [false, true] {
        let cluster = Cluster::new();
        let controller = Controller::new(&cluster.owners);
        let controller = if ignored { controller.ignore_undecodable() } else { controller };
        let controller = controller.owns(&cluster.children);
        let handle = controller.handle();
        let run = Run::of(controller, creating(cluster.client(), cluster.children.clone()));
        cluster.owner("a");
        quiet().await;
        let child = cluster.names("configmaps")[0].clone();
        break_object(&cluster, "configmaps", &child);
        while cluster.children.health().undecodable.is_empty() {
            quiet().await;
        }
        cluster.label("deployments.apps", "a", "1");
        tokio::time::sleep(Duration::from_secs(60)).await;
        let error = last_error(&handle);
        if ignored {
            assert_eq!(error, "");
        } else {
            assert!(error.contains(&format!("cannot be decoded, so reconcile was not called: web/{child}")), "{error}");
            assert_eq!(cluster.names("configmaps"), [child.as_str()]);
        }
        repair_object(&cluster, "configmaps", &child);
        quiet().await;
        assert_eq!(last_error(&handle), "");
        run.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_child_stops_reconciles_of_its_owner_only() {
    let cluster = Cluster::new();
    let (a, _) = (cluster.owner("a"), cluster.owner("b"));
    cluster.child("child", &a, true);
    break_object(&cluster, "configmaps", "child");
    let run = Run::noting(Controller::new(&cluster.owners).owns(&cluster.children));
    assert_eq!(run.noted().await, ["b"]);
    // Its owner references cannot be decoded either, so it may belong to any owner in its namespace.
    let mut child = cluster.server.get("configmaps", Some("web"), "child").unwrap();
    child["metadata"]["ownerReferences"] = json!("none");
    cluster.server.put_as_is("configmaps", Some("web"), child).unwrap();
    quiet().await;
    cluster.label("deployments.apps", "b", "1");
    assert_eq!(run.noted().await, Vec::<String>::new());
    let elsewhere: Value = json!({"metadata": {"name": "c"}});
    cluster.server.create("deployments.apps", Some("elsewhere"), elsewhere).unwrap();
    assert_eq!(run.noted().await, ["c"]);
    run.end().await;
}

/// The reconcile deletes the children of an object that does not exist any more.
#[tokio::test(start_paused = true)]
async fn the_children_of_an_undecodable_object_are_not_deleted() {
    let cluster = Cluster::new();
    let a = cluster.owner("a");
    cluster.child("a", &a, true);
    let client = cluster.client();
    let reconcile = move |request: Request<Deployment>, _: Arc<Notes>| {
        let client = client.clone();
        async move {
            if request.object().is_none() {
                let api: kube_client::Api<k8s_openapi::api::core::v1::ConfigMap> =
                    kube_client::Api::namespaced(client, "web");
                api.delete(request.key().name(), &Default::default()).await?;
            }
            Ok::<_, kube_client::Error>(Action::await_change())
        }
    };
    break_object(&cluster, "deployments.apps", "a");
    let run = Run::of(Controller::new(&cluster.owners).owns(&cluster.children), reconcile);
    for number in 0..20 {
        cluster.label("configmaps", "a", &number.to_string());
        tokio::time::sleep(Duration::from_secs(5)).await;
        cluster.server.disconnect_watches();
    }
    assert_eq!(cluster.names("configmaps"), ["a"]);
    run.end().await;
}

/// The schema of its CRD accepts any spec, but this type does not.
#[derive(kube::CustomResource, Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[kube(group = "test.example", version = "v1", kind = "Gadget", namespaced, status = "GadgetStatus")]
struct GadgetSpec {
    size: u32,
}

#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct GadgetStatus {
    observed_generation: i64,
}

/// Returns a server with the CRD of gadgets.
fn server_with_gadgets() -> ApiServer {
    let server = ApiServer::builder().seed(1).build();
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}},
    });
    let names = json!({"plural": "gadgets", "kind": "Gadget"});
    let spec = json!({"group": "test.example", "scope": "Namespaced", "names": names, "versions": [version]});
    let crd = json!({"metadata": {"name": "gadgets.test.example"}, "spec": spec});
    server.create("customresourcedefinitions.apiextensions.k8s.io", None, crd).unwrap();
    server
}

/// Notes whether the object is invalid and whether a state is known, and writes the generation into its status.
async fn observe(request: Request<Gadget>, context: Arc<(Client, Notes)>) -> Result<Action, kube_client::Error> {
    let (client, notes) = &*context;
    let Some(invalid) = request.invalid() else {
        notes.note(format!("valid {}", request.object().is_some()));
        return Ok(Action::await_change());
    };
    assert!(invalid.uid.is_some() && invalid.version.is_some() && !invalid.error.contains("huge"), "{invalid}");
    let generation = invalid.generation.unwrap();
    notes.note(format!("invalid {generation} {}", request.object().is_some()));
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), "web", &ApiResource::erase::<Gadget>(&()));
    let patch = Patch::Merge(json!({"status": {"observedGeneration": generation}}));
    api.patch_status("a", &PatchParams::default(), &patch).await?;
    Ok(Action::await_change())
}

// Issue 22, item 3.
#[tokio::test(start_paused = true)]
async fn a_controller_may_reconcile_invalid_objects_and_patch_their_status() {
    const GADGETS: &str = "gadgets.test.example";
    for known_before in [true, false] {
        let server = server_with_gadgets();
        let set_size = |size: Value| {
            let gadget = json!({"spec": {"size": size}});
            server.patch(GADGETS, Some("web"), "a", gadget).unwrap();
        };
        let first = if known_before { json!(1) } else { json!("huge") };
        let gadget = json!({"metadata": {"name": "a"}, "spec": {"size": first}});
        server.create(GADGETS, Some("web"), gadget).unwrap();
        let gadgets = SharedInformerFactory::new(server.client()).informer::<Gadget>().unwrap();
        let context = Arc::new((server.client(), Notes::default()));
        let (cancel, noted) = (CancellationToken::new(), context.clone());
        let noted = async || {
            quiet().await;
            noted.1.take()
        };
        let controller = Controller::new(&gadgets).reconcile_invalid();
        let mut run = tokio::task::JoinSet::new();
        let term = Term::from(cancel.clone());
        run.spawn(async move { controller.run(term, observe, context).await });
        let mut generation = 1;
        if known_before {
            assert_eq!(noted().await, ["valid true"]);
            set_size(json!("huge"));
            generation = 2;
        }
        assert_eq!(noted().await, [format!("invalid {generation} {known_before}")]);
        let status = server.get(GADGETS, Some("web"), "a").unwrap()["status"].clone();
        assert_eq!(status["observedGeneration"], generation);
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert_eq!(noted().await, [""; 0], "its own write is no reason to reconcile");
        set_size(json!("very huge"));
        assert_eq!(noted().await, [format!("invalid {} {known_before}", generation + 1)]);
        set_size(json!(2));
        let repaired = noted().await;
        assert!(!repaired.is_empty() && repaired.iter().all(|note| note == "valid true"), "{repaired:?}");
        set_size(json!("huge"));
        noted().await;
        server.delete(GADGETS, Some("web"), "a").unwrap();
        let deleted = noted().await;
        assert!(!deleted.is_empty() && deleted.iter().all(|note| note == "valid false"), "{deleted:?}");
        cancel.cancel();
        run.join_next().await.unwrap().unwrap().unwrap();
    }
}
