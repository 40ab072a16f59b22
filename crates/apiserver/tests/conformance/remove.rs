use super::cluster::{Answer, Case, Cluster, case, config_map, told, version};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

/// Waits until a GET of the path returns 404.
async fn gone(cluster: &Cluster, path: &str) {
    for _ in 0..300 {
        if cluster.get(path).await.code == 404 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{path} is still there");
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case(73, |cluster| async move {
            let uid = cluster.make("a").await["metadata"]["uid"].clone();
            let deleted = cluster.delete(&cluster.config_map("a")).await;
            let expected = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                "details": {"name": "a", "kind": "configmaps", "uid": uid}});
            assert_eq!((deleted.code, deleted.json()), (200, expected));
            assert_eq!(cluster.get(&cluster.config_map("a")).await.code, 404);
        }),
        case(74, |cluster| async move {
            let mut held = config_map("a");
            held["metadata"]["finalizers"] = json!(["example.com/hold"]);
            let created = cluster.post(&cluster.config_maps(), &held).await;
            let path = cluster.config_map("a");
            let mut watch =
                cluster.watch(&cluster.own(&format!("watch=1&resourceVersion={}", created.version()))).await;
            let marked = cluster.delete(&path).await;
            assert_eq!((marked.code, marked.at("/metadata/deletionGracePeriodSeconds")), (200, json!(0)));
            assert!(marked.at("/metadata/deletionTimestamp").is_string());
            let more = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}});
            cluster.merge(&path, &more).await.is(422, "Invalid");
            assert_eq!(cluster.merge(&path, &json!({"metadata": {"finalizers": null}})).await.code, 200);
            assert_eq!([watch.told().await, watch.told().await], ["MODIFIED a", "DELETED a"]);
        }),
        case(75, |cluster| async move {
            cluster.make("a").await;
            let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "other"}});
            let refused = cluster.write("DELETE", &cluster.config_map("a"), "application/json", &options).await;
            refused.is(409, "Conflict");
            assert_eq!(refused.at("/details/kind"), "ConfigMap");
        }),
        case(76, |cluster| async move {
            cluster.make("a").await;
            cluster.make("b").await;
            let start = cluster.now().await;
            let mut watch = cluster.watch(&cluster.own(&format!("watch=1&resourceVersion={start}"))).await;
            let deleted = cluster.delete(&cluster.own("")).await;
            assert_eq!((deleted.code, deleted.at("/kind")), (200, json!("ConfigMapList")));
            let events: [Value; 2] = [watch.event().await, watch.event().await];
            assert!(events.iter().all(|event| event["type"] == "DELETED"));
            assert!(version(&events[0]["object"]) < version(&events[1]["object"]));
        }),
        case(96, |cluster| async move {
            let space = format!("{}-in", cluster.namespace);
            let path = format!("/api/v1/namespaces/{space}");
            cluster.post("/api/v1/namespaces", &json!({"metadata": {"name": space}})).await;
            let mut held = config_map("a");
            held["metadata"]["finalizers"] = json!(["example.com/hold"]);
            let created = cluster.post(&format!("{path}/configmaps"), &held).await;
            let watch = format!("{path}/configmaps?watch=1&labelSelector=t%3D1&resourceVersion={}", created.version());
            let mut watch = cluster.watch(&watch).await;
            let deleted = cluster.delete(&path).await;
            assert_eq!((deleted.code, deleted.at("/status/phase")), (200, json!("Terminating")));
            let refused = cluster.post(&format!("{path}/configmaps"), &config_map("b")).await;
            refused.is(403, "Forbidden");
            assert_eq!(refused.at("/details/causes/0/reason"), "NamespaceTerminating");
            assert_eq!(told(&watch.event().await), "MODIFIED a");
            cluster.merge(&format!("{path}/configmaps/a"), &json!({"metadata": {"finalizers": null}})).await;
            assert_eq!(told(&watch.event().await), "DELETED a");
            gone(&cluster, &path).await;
            cluster.delete("/api/v1/namespaces/default").await.is(403, "Forbidden");
        }),
        case(135, |cluster| async move {
            let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n1", "terminationGracePeriodSeconds": 600,
                "containers": [{"name": "c", "image": "i"}]}});
            assert_eq!(cluster.post(&cluster.pods(), &pod).await.code, 201);
            let path = format!("{}/p", cluster.pods());
            let seconds = |answer: &Answer| answer.at("/metadata/deletionGracePeriodSeconds");
            let first = cluster.delete(&format!("{path}?gracePeriodSeconds=900")).await;
            assert_eq!((first.code, seconds(&first)), (200, json!(900)));
            // A delete without a grace period or with a longer one changes nothing, not even for a pod that has ended.
            for again in [path.clone(), format!("{path}?gracePeriodSeconds=1200")] {
                assert_eq!(cluster.delete(&again).await.version(), first.version());
            }
            let ended = cluster.merge(&format!("{path}/status"), &json!({"status": {"phase": "Succeeded"}})).await;
            assert_eq!(cluster.delete(&path).await.version(), ended.version());
            let policy = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"});
            let pending = cluster.write("DELETE", &path, "application/json", &policy).await;
            assert_eq!((pending.version(), pending.at("/metadata/finalizers")), (ended.version(), Value::Null));
            // A shorter grace period counts from the first delete.
            let sooner = cluster.delete(&format!("{path}?gracePeriodSeconds=300")).await;
            assert_eq!(seconds(&sooner), 300);
            let at = |answer: &Answer| {
                let text = answer.at("/metadata/deletionTimestamp");
                text.as_str().unwrap().parse::<Timestamp>().unwrap()
            };
            assert_eq!(at(&first).duration_since(at(&sooner)).as_secs(), 600);
            assert_eq!(cluster.delete(&format!("{path}?gracePeriodSeconds=0")).await.code, 200);
            assert_eq!(cluster.get(&path).await.code, 404);
        }),
        case(132, |cluster| async move {
            // Without a garbage collector the object waits for a client.
            for (policy, finalizer) in [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")] {
                cluster.make("a").await;
                let path = cluster.config_map("a");
                let marked = cluster.delete(&format!("{path}?propagationPolicy={policy}")).await;
                assert_eq!(
                    (marked.code, marked.at("/metadata/finalizers")),
                    (200, json!([finalizer])),
                    "{}",
                    marked.text
                );
                assert!(marked.at("/metadata/deletionTimestamp").is_string());
                assert_eq!(cluster.merge(&path, &json!({"metadata": {"finalizers": null}})).await.code, 200);
                assert_eq!(cluster.get(&path).await.code, 404);
            }
        }),
    ]
}
