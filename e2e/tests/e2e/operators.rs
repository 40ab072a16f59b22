//! Operators that use server-side apply, with kube-rs's `Controller` and with ours, lead to the same state on both
//! servers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube_client::api::{Api, Patch, PatchParams};
use kube_client::{Client, Config, Resource as _};
use kube_controller::Request;
use kube_embedded_apiserver::ApiServer;
use kube_informer::{CancellationToken, SharedInformerFactory};
use kube_informer_e2e::{Assets, Cluster};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

const NAMESPACE: &str = "default";
/// The time limit for an operator.
const LIMIT: Duration = Duration::from_secs(60);

/// For each config map with the label, applies a child and an annotation on the config map itself.
async fn reconcile(client: &Client, map: &ConfigMap) -> Result<(), kube_client::Error> {
    let wants = map.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key("wants"));
    let Some(name) = map.metadata.name.as_deref().filter(|_| wants) else { return Ok(()) };
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let parameters = PatchParams::apply("operator").force();
    let child = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("{name}-child"), "ownerReferences": [map.controller_owner_ref(&())]},
        "data": {"from": name, "size": map.data.as_ref().and_then(|data| data.get("size")).cloned().unwrap_or_default()}});
    maps.patch(&format!("{name}-child"), &parameters, &Patch::Apply(&child)).await?;
    let note =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "annotations": {"seen": "yes"}}});
    maps.patch(name, &parameters, &Patch::Apply(&note)).await?;
    Ok(())
}

async fn kube_rs(client: Client) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let reconciled = |map: Arc<ConfigMap>, client: Arc<Client>| async move {
        reconcile(&client, &map).await.map(|()| Action::await_change())
    };
    let again = |_: Arc<ConfigMap>, _: &kube_client::Error, _: Arc<Client>| Action::requeue(Duration::from_millis(200));
    let controller = Controller::new(maps.clone(), watcher::Config::default()).owns(maps, watcher::Config::default());
    controller.run(reconciled, again, Arc::new(client)).for_each(|_| async {}).await;
}

async fn ours(client: Client) {
    async fn reconciled(
        request: Request<ConfigMap>,
        client: Arc<Client>,
    ) -> Result<kube_controller::Action, kube_client::Error> {
        if let Some(map) = request.object() {
            reconcile(&client, &map).await?;
        }
        Ok(kube_controller::Action::await_change())
    }
    let factory = SharedInformerFactory::new(client.clone());
    let maps = factory.informer::<ConfigMap>().unwrap();
    factory.start().unwrap();
    let controller = kube_controller::Controller::new(&maps).owns(&maps);
    controller.run(CancellationToken::new(), reconciled, Arc::new(client)).await.unwrap();
}

/// Creates, changes and deletes objects, and returns the objects after the operator is done.
async fn story(client: &Client) -> Vec<Value> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let parameters = PatchParams::apply("user").force();
    let wanted = |name: &str, size: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"wants": "one"}}, "data": {"size": size}});
    for (name, size) in [("a", "1"), ("b", "1"), ("a", "2")] {
        maps.patch(name, &parameters, &Patch::Apply(&wanted(name, size))).await.unwrap();
    }
    let child = async |name: &str, size: &str| {
        let started = Instant::now();
        loop {
            let found = maps.get_opt(name).await.unwrap();
            if found
                .as_ref()
                .and_then(|map| map.data.as_ref())
                .and_then(|data| data.get("size"))
                .is_some_and(|found| found == size)
            {
                return;
            }
            assert!(started.elapsed() < LIMIT, "{name} never has size {size}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    child("a-child", "2").await;
    child("b-child", "1").await;
    // Another client changes the child: the operator restores its own fields, and other fields stay.
    let meddled = json!({"data": {"size": "9", "extra": "mine"}});
    maps.patch("a-child", &PatchParams::default(), &Patch::Merge(&meddled)).await.unwrap();
    child("a-child", "2").await;
    maps.delete("b-child", &Default::default()).await.unwrap();
    child("b-child", "1").await;
    let mut left: Vec<Value> = Vec::new();
    for map in maps
        .list(&Default::default())
        .await
        .unwrap()
        .items
        .iter()
        .filter(|map| map.metadata.name.as_deref() != Some("kube-root-ca.crt"))
    {
        let mut map = serde_json::to_value(map).unwrap();
        cut(&mut map);
        left.push(map);
    }
    left
}

/// Removes values that differ on every server.
fn cut(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for name in ["uid", "resourceVersion", "creationTimestamp", "time"] {
                members.remove(name);
            }
            if let Some(Value::Array(entries)) = members.get_mut("managedFields") {
                entries.sort_by_key(|entry| (entry["manager"].to_string(), entry["operation"].to_string()));
            }
            // Field paths contain uids too.
            let renamed: Vec<String> = members.keys().filter(|name| name.starts_with("k:{\"uid\"")).cloned().collect();
            for name in renamed {
                let below = members.remove(&name);
                members.insert("k:uid".into(), below.unwrap_or_default());
            }
            members.values_mut().for_each(cut);
        }
        Value::Array(items) => items.iter_mut().for_each(cut),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_with_server_side_apply_lead_to_the_same_state() {
    let assets = Assets::ready().unwrap();
    let mut ends = Vec::new();
    for operator in ["kube-rs", "ours"] {
        let cluster = Cluster::start_plain(&assets).await.unwrap();
        let embedded = ApiServer::new().serve("127.0.0.1:0").await.unwrap();
        for (server, config) in [
            ("kube-apiserver", cluster.operator().await.unwrap()),
            ("the embedded server", Config::new(embedded.url().parse().unwrap())),
        ] {
            let client = kube_informer::client_from(config).unwrap();
            let acting = client.clone();
            let mut running = JoinSet::new();
            match operator {
                "ours" => running.spawn(ours(acting)),
                _ => running.spawn(kube_rs(acting)),
            };
            let end = tokio::time::timeout(2 * LIMIT, story(&client)).await.expect("the operator finishes in time");
            running.shutdown().await;
            println!("operators: {operator} on {server}: {} objects", end.len());
            ends.push((format!("{operator} on {server}"), end));
        }
        embedded.stop().await;
    }
    let (first, truth) = &ends[0];
    for (other, end) in &ends[1..] {
        assert_eq!(end, truth, "{other} and {first}");
    }
}
