use crate::support::*;
use serde_json::{Value, json};
use std::time::Duration;

const PODS: &str = "/api/v1/namespaces/default/pods";

fn held(name: &str) -> Value {
    let mut object = config_map(name);
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    object
}

#[tokio::test(start_paused = true)]
async fn finalizers_keep_an_object_until_they_are_removed() {
    let server = server();
    post(&server, CONFIG_MAPS, &held("a")).await;
    let start = server.revision();
    let mut watch = Watch::open(&server, &format!("{CONFIG_MAPS}?watch=1&resourceVersion={start}")).await;
    let path = format!("{CONFIG_MAPS}/a");
    let marked = delete(&server, &path).await;
    assert_eq!((marked.code, &marked.json()["metadata"]["deletionGracePeriodSeconds"]), (200, &json!(0)));
    assert!(marked.json()["metadata"]["deletionTimestamp"].is_string());
    let again = delete(&server, &path).await;
    assert_eq!((again.code, again.json()), (200, marked.json()));
    assert_eq!(server.revision(), start + 1);
    let more =
        merge(&server, &path, &json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}})).await;
    assert_eq!((more.code, more.text.contains("no new finalizers")), (422, true));
    let taken = post(&server, CONFIG_MAPS, &config_map("a")).await;
    assert!(taken.json()["message"].as_str().unwrap().starts_with("object is being deleted: "));
    let released = merge(&server, &path, &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!((released.code, version(&released.json())), (200, start + 2));
    assert_eq!(get(&server, &path).await.code, 404);
    assert_eq!([watch.told().await, watch.told().await], ["MODIFIED a", "DELETED a"]);
}

#[tokio::test(start_paused = true)]
async fn a_running_pod_gets_a_grace_period() {
    let server = server();
    let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n1", "containers": []}});
    server.create("pods", Some("default"), pod.clone()).unwrap();
    let path = format!("{PODS}/p");
    let marked = delete(&server, &path).await.json();
    let metadata = &marked["metadata"];
    assert_eq!(metadata["deletionTimestamp"], "2026-01-01T00:00:30Z");
    assert_eq!((&metadata["deletionGracePeriodSeconds"], &metadata["generation"]), (&json!(30), &json!(2)));
    let revision = server.revision();
    assert_eq!(delete(&server, &path).await.json(), marked);
    assert_eq!(server.revision(), revision);
    let gone = delete(&server, &format!("{path}?gracePeriodSeconds=0")).await;
    assert_eq!((gone.code, &gone.json()["kind"]), (200, &json!("Pod")));
    assert_eq!(version(&gone.json()), revision + 1);
    assert_eq!(get(&server, &path).await.code, 404);
    for unhurried in [json!({"containers": []}), json!({"nodeName": "n1", "containers": []})] {
        let finished = unhurried.get("nodeName").is_some();
        let mut pod = json!({"metadata": {"name": "q"}, "spec": unhurried});
        if finished {
            pod["status"] = json!({"phase": "Succeeded"});
        }
        server.create("pods", Some("default"), pod).unwrap();
        delete(&server, &format!("{PODS}/q")).await;
        assert_eq!(get(&server, &format!("{PODS}/q")).await.code, 404);
    }
}

#[tokio::test(start_paused = true)]
async fn a_grace_period_can_only_be_shortened() {
    let server = server();
    let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n1", "containers": []}});
    server.create("pods", Some("default"), pod).unwrap();
    let path = format!("{PODS}/p");
    let until = async |grace: i64| {
        let marked = delete(&server, &format!("{path}?gracePeriodSeconds={grace}")).await.json();
        let metadata = &marked["metadata"];
        (metadata["deletionTimestamp"].as_str().unwrap().to_owned(), metadata["deletionGracePeriodSeconds"].clone())
    };
    assert_eq!(until(100).await, ("2026-01-01T00:01:40Z".into(), json!(100)));
    let revision = server.revision();
    assert_eq!(until(200).await, ("2026-01-01T00:01:40Z".into(), json!(100)));
    merge(&server, &format!("{path}/status"), &json!({"status": {"phase": "Failed"}})).await;
    assert_eq!(delete(&server, &path).await.code, 200);
    assert_eq!(server.revision(), revision + 1, "no delete had a shorter grace period");
    // A shorter grace period counts from the first delete.
    tokio::time::advance(Duration::from_secs(20)).await;
    assert_eq!(until(40).await, ("2026-01-01T00:00:40Z".into(), json!(40)));
    // The grace period is over. The kubelet still has to confirm with a period of zero.
    assert_eq!(until(10).await, ("2026-01-01T00:00:20Z".into(), json!(1)));
    assert_eq!(until(-1).await, ("2026-01-01T00:00:20Z".into(), json!(1)));
    let generation = get(&server, &path).await.json()["metadata"]["generation"].clone();
    assert_eq!(generation, 2, "only the first mark counts");
    assert_eq!(until(0).await, ("2026-01-01T00:00:20Z".into(), json!(0)));
    assert_eq!(get(&server, &path).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn preconditions_guard_a_delete() {
    let server = server();
    let stored = put_config_map(&server, "a");
    let path = format!("{CONFIG_MAPS}/a");
    let with = async |options: Value| send(&server, request("DELETE", &path, Some(&options))).await;
    let wrong = with(json!({"preconditions": {"uid": "other"}})).await;
    assert_eq!((wrong.code, &wrong.json()["details"]["kind"]), (409, &json!("ConfigMap")));
    assert!(wrong.text.contains("the UID in the precondition (other)"));
    let wrong = with(json!({"preconditions": {"resourceVersion": "1"}})).await;
    assert!(wrong.text.contains("The object might have been modified"));
    assert_eq!(with(json!({"propagationPolicy": "Sideways"})).await.code, 422);
    let right = with(
        json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"resourceVersion": stored.to_string()}}),
    )
    .await;
    assert_eq!(right.code, 200);
}

#[tokio::test(start_paused = true)]
async fn options_may_be_protobuf_and_some_are_answered_with_202() {
    let server = server();
    post(&server, CONFIG_MAPS, &held("a")).await;
    let orphan =
        send(&server, request("DELETE", &format!("{CONFIG_MAPS}/a"), Some(&json!({"orphanDependents": false})))).await;
    assert_eq!(orphan.code, 202);
    put_config_map(&server, "b");
    let body = "k8s\0\x0a\x00\x12\x0c\x22\x0aBackground\x1a\x00\x22\x00";
    let protobuf = "application/vnd.kubernetes.protobuf";
    assert_eq!(send_as(&server, "DELETE", &format!("{CONFIG_MAPS}/b"), protobuf, body).await.code, 200);
    assert_eq!(get(&server, &format!("{CONFIG_MAPS}/b")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_object_by_object() {
    let server = server();
    for (name, label) in [("a", "1"), ("b", "2"), ("c", "1")] {
        let mut object = config_map(name);
        object["metadata"]["labels"] = json!({"t": label});
        server.create("configmaps", Some("default"), object).unwrap();
    }
    let start = server.revision();
    let mut watch = Watch::open(&server, &format!("{CONFIG_MAPS}?watch=1&resourceVersion={start}")).await;
    let deleted = delete(&server, &format!("{CONFIG_MAPS}?labelSelector=t%3D1")).await;
    assert_eq!((deleted.code, &deleted.json()["kind"]), (200, &json!("ConfigMapList")));
    assert_eq!(deleted.names(), ["a", "c"]);
    assert_eq!(deleted.json()["items"][0].get("kind"), None);
    let events = [watch.next().await, watch.next().await];
    assert_eq!(events.each_ref().map(told), ["DELETED a", "DELETED c"]);
    assert_eq!(events.each_ref().map(|event| version(&event["object"])), [start + 1, start + 2]);
    assert_eq!(delete(&server, "/api/v1/configmaps").await.code, 405);
}
