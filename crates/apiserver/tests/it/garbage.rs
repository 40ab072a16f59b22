//! Garbage collection: the server deletes objects whose owners are deleted.

use crate::support::*;
use kube_embedded_apiserver::ApiServer;
use serde_json::{Value, json};
use std::time::Duration;

fn server() -> ApiServer {
    ApiServer::builder().seed(1).garbage_collection(true).build()
}

/// Creates a config map with these owners, and returns it.
fn owned_by(server: &ApiServer, name: &str, owners: &[(&Value, bool)]) -> Value {
    let reference = |(owner, blocks): &(&Value, bool)| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": blocks})
    };
    let owners: Vec<Value> = owners.iter().map(reference).collect();
    let object = json!({"metadata": {"name": name, "ownerReferences": owners}});
    server.create("configmaps", Some("default"), object).unwrap()
}

fn names(server: &ApiServer) -> Vec<String> {
    let objects = server.list("configmaps").unwrap().1;
    objects.iter().map(|object| object["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

async fn delete_as(server: &ApiServer, name: &str, policy: &str) -> Value {
    let body = json!({"propagationPolicy": policy}).to_string();
    let answer = send_as(server, "DELETE", &format!("{CONFIG_MAPS}/{name}"), "application/json", &body).await;
    assert_eq!(answer.code, 200, "{}", answer.text);
    answer.json()
}

async fn let_garbage_collection_run() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn background_deletion_deletes_the_owner_first_and_then_its_dependents() {
    let server = server();
    let top = owned_by(&server, "top", &[]);
    let middle = owned_by(&server, "middle", &[(&top, false)]);
    owned_by(&server, "bottom", &[(&middle, false)]);
    owned_by(&server, "other", &[]);
    delete_as(&server, "top", "Background").await;
    assert_eq!(names(&server), ["bottom", "middle", "other"]);
    let_garbage_collection_run().await;
    assert_eq!(names(&server), ["other"]);
}

#[tokio::test(start_paused = true)]
async fn foreground_deletion_waits_for_blocking_dependents() {
    let server = server();
    let top = owned_by(&server, "top", &[]);
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"], "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "top", "uid": top["metadata"]["uid"], "blockOwnerDeletion": true}]}});
    server.create("configmaps", Some("default"), held).unwrap();
    owned_by(&server, "free", &[(&top, true)]);
    let marked = delete_as(&server, "top", "Foreground").await;
    assert_eq!(marked["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    let_garbage_collection_run().await;
    assert_eq!(names(&server), ["held", "top"]);
    merge(&server, &format!("{CONFIG_MAPS}/held"), &json!({"metadata": {"finalizers": null}})).await;
    let_garbage_collection_run().await;
    assert_eq!(names(&server), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn orphans_stay_without_their_owner_reference() {
    let server = server();
    let top = owned_by(&server, "top", &[]);
    owned_by(&server, "child", &[(&top, true)]);
    delete_as(&server, "top", "Orphan").await;
    let_garbage_collection_run().await;
    assert_eq!(names(&server), ["child"]);
    let child = server.get("configmaps", Some("default"), "child").unwrap();
    assert_eq!(child["metadata"].get("ownerReferences"), None);
}

#[tokio::test(start_paused = true)]
async fn a_dependent_with_another_owner_stays_and_one_of_an_unknown_owner_is_deleted() {
    let server = server();
    let (one, two) = (owned_by(&server, "one", &[]), owned_by(&server, "two", &[]));
    owned_by(&server, "both", &[(&one, false), (&two, false)]);
    delete_as(&server, "one", "Background").await;
    let_garbage_collection_run().await;
    let both = server.get("configmaps", Some("default"), "both").unwrap();
    assert_eq!(both["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(1));
    let missing_owner = json!({"metadata": {"name": "missing", "uid": "00000000-0000-4000-8000-000000000000"}});
    owned_by(&server, "lost", &[(&missing_owner, false)]);
    assert_eq!(names(&server), ["both", "two"]);
}

#[tokio::test(start_paused = true)]
async fn without_garbage_collection_dependents_stay_and_owners_keep_the_finalizer_of_the_policy() {
    let server = ApiServer::builder().seed(1).build();
    for (owner, policy, finalizer) in
        [("above", "Foreground", "foregroundDeletion"), ("before", "Orphan", "orphan"), ("gone", "Background", "")]
    {
        let top = owned_by(&server, owner, &[]);
        owned_by(&server, &format!("child-of-{owner}"), &[(&top, true)]);
        let deleted = delete_as(&server, owner, policy).await;
        if finalizer.is_empty() {
            assert_eq!(deleted["status"], "Success");
        } else {
            assert_eq!(deleted["metadata"]["finalizers"], json!([finalizer]), "{policy}");
            assert!(deleted["metadata"]["deletionTimestamp"].is_string(), "{policy}");
        }
    }
    let_garbage_collection_run().await;
    assert_eq!(names(&server), ["above", "before", "child-of-above", "child-of-before", "child-of-gone"]);
    merge(&server, &format!("{CONFIG_MAPS}/above"), &json!({"metadata": {"finalizers": null}})).await;
    assert!(!names(&server).contains(&"above".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_delete_of_a_job_without_a_policy_orphans_its_pods() {
    let server = ApiServer::builder().seed(1).build();
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    for name in ["kept", "gone"] {
        server
            .create("jobs", Some("default"), json!({"metadata": {"name": name}, "spec": {"template": template}}))
            .unwrap();
    }
    let path = "/apis/batch/v1/namespaces/default/jobs";
    assert_eq!(delete(&server, &format!("{path}/kept")).await.json()["metadata"]["finalizers"], json!(["orphan"]));
    let deleted = delete(&server, &format!("{path}/gone?propagationPolicy=Background")).await.json();
    assert_eq!(deleted["status"], "Success");
}

#[tokio::test(start_paused = true)]
async fn events_are_deleted_whatever_the_policy() {
    let server = ApiServer::builder().seed(1).build();
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}});
    server.create("events", Some("default"), event).unwrap();
    let path = "/api/v1/namespaces/default/events/e?propagationPolicy=Foreground";
    assert_eq!(delete(&server, path).await.json()["status"], "Success");
    assert_eq!(get(&server, "/api/v1/namespaces/default/events/e").await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_long_chain_of_owners_is_deleted_in_one_call() {
    let server = server();
    let mut last = owned_by(&server, "c0", &[]);
    for index in 1..2_000 {
        last = owned_by(&server, &format!("c{index}"), &[(&last, true)]);
    }
    server.delete("configmaps", Some("default"), "c0").unwrap();
    assert_eq!(names(&server), [""; 0]);
}

/// Returns the owner reference to an object.
fn reference(owner: &Value, kind: &str, blocks: bool) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": blocks})
}

/// Sets the owners of a config map.
async fn set_owners(server: &ApiServer, name: &str, owners: &[Value]) {
    let patched =
        merge(server, &format!("{CONFIG_MAPS}/{name}"), &json!({"metadata": {"ownerReferences": owners}})).await;
    assert_eq!(patched.code, 200, "{}", patched.text);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_owns_itself_or_its_owner_can_be_deleted() {
    let server = server();
    let own_owner = owned_by(&server, "self", &[]);
    set_owners(&server, "self", &[reference(&own_owner, "ConfigMap", true)]).await;
    delete_as(&server, "self", "Foreground").await;
    let circle = ["a", "b", "c"].map(|name| owned_by(&server, name, &[]));
    for (name, owner) in [("a", &circle[2]), ("b", &circle[0]), ("c", &circle[1])] {
        set_owners(&server, name, &[reference(owner, "ConfigMap", true)]).await;
    }
    delete_as(&server, "a", "Foreground").await;
    let_garbage_collection_run().await;
    assert_eq!(names(&server), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_cycle_that_cannot_be_deleted_is_not_written_repeatedly() {
    let server = server();
    let top = owned_by(&server, "top", &[]);
    let middle = owned_by(&server, "middle", &[(&top, false)]);
    set_owners(&server, "top", &[reference(&middle, "ConfigMap", false)]).await;
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"],
        "ownerReferences": [reference(&top, "ConfigMap", true)]}});
    server.create("configmaps", Some("default"), held).unwrap();
    let start = server.revision();
    let mut watch = Watch::open(&server, &format!("{CONFIG_MAPS}?watch=1&resourceVersion={start}")).await;
    delete_as(&server, "top", "Foreground").await;
    let_garbage_collection_run().await;
    assert_eq!(names(&server), ["held", "top"]);
    let mut told = Vec::new();
    while let Seen::Event(event) = watch.next_within(Duration::from_secs(1)).await {
        told.push(crate::support::told(&event));
    }
    assert_eq!(told, ["MODIFIED top", "MODIFIED held", "MODIFIED middle", "DELETED middle"]);
}

#[tokio::test(start_paused = true)]
async fn a_long_chain_with_a_finalizer_at_its_end_waits_and_is_then_deleted() {
    let server = server();
    let mut last = owned_by(&server, "c0", &[]);
    for index in 1..20_000 {
        last = owned_by(&server, &format!("c{index}"), &[(&last, true)]);
    }
    let end = format!("{CONFIG_MAPS}/c19999");
    merge(&server, &end, &json!({"metadata": {"finalizers": ["example.com/hold"]}})).await;
    delete_as(&server, "c0", "Foreground").await;
    let_garbage_collection_run().await;
    assert_eq!(merge(&server, &format!("{CONFIG_MAPS}/c0"), &json!({"data": {"x": "y"}})).await.code, 200);
    let_garbage_collection_run().await;
    assert_eq!(server.list("configmaps").unwrap().1.len(), 20_000);
    merge(&server, &end, &json!({"metadata": {"finalizers": null}})).await;
    let_garbage_collection_run().await;
    assert_eq!(names(&server), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_owner_does_not_wait_for_a_dependent_that_no_longer_refers_to_it_or_blocks_it() {
    for released in [json!(null), json!([{"blocks": false}])] {
        let server = server();
        let top = owned_by(&server, "top", &[]);
        let mut held = json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
        held["metadata"]["ownerReferences"] = json!([reference(&top, "ConfigMap", true)]);
        server.create("configmaps", Some("default"), held).unwrap();
        delete_as(&server, "top", "Foreground").await;
        let_garbage_collection_run().await;
        assert_eq!(names(&server), ["held", "top"]);
        let owners: Vec<Value> =
            released.as_array().into_iter().flatten().map(|_| reference(&top, "ConfigMap", false)).collect();
        set_owners(&server, "held", &owners).await;
        let_garbage_collection_run().await;
        assert_eq!(names(&server), ["held"], "{released}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reference_to_a_deleted_owner_counts_as_none() {
    let server = server();
    let gone = owned_by(&server, "gone", &[]);
    delete_as(&server, "gone", "Background").await;
    let_garbage_collection_run().await;
    owned_by(&server, "late", &[]);
    set_owners(&server, "late", &[reference(&gone, "ConfigMap", false)]).await;
    let_garbage_collection_run().await;
    assert_eq!(names(&server), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_owner_must_match_by_kind_name_and_namespace_besides_its_uid() {
    let server = server();
    let owner = owned_by(&server, "owner", &[]);
    let wrong = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut object =
            json!({"metadata": {"name": name, "ownerReferences": [reference(&owner, "ConfigMap", false)]}});
        change(&mut object["metadata"]["ownerReferences"][0]);
        object
    };
    let of_other_kind = wrong("kind", &|owner| owner["kind"] = "Secret".into());
    let of_other_name = wrong("name", &|owner| owner["name"] = "other".into());
    server.create("configmaps", Some("default"), of_other_kind).unwrap();
    server.create("configmaps", Some("default"), of_other_name).unwrap();
    server.create("configmaps", Some("far"), wrong("far", &|_| {})).unwrap();
    assert_eq!(names(&server), ["owner"]);
    // The server keeps objects whose owner it cannot check: an unknown kind, or an owner in another scope.
    let of_no_kind = wrong("unknown", &|owner| owner["kind"] = "Nonsense".into());
    server.create("configmaps", Some("default"), of_no_kind).unwrap();
    server.create("nodes", None, wrong("node", &|_| {})).unwrap();
    server.create("configmaps", Some("default"), wrong("owned", &|_| {})).unwrap();
    assert_eq!(names(&server), ["owned", "owner", "unknown"]);
    assert!(server.get("nodes", None, "node").is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_dependent_with_another_owner_drops_an_owner_that_waits_for_it() {
    let server = server();
    let (one, two) = (owned_by(&server, "one", &[]), owned_by(&server, "two", &[]));
    owned_by(&server, "both", &[(&one, true), (&two, true)]);
    delete_as(&server, "one", "Foreground").await;
    let_garbage_collection_run().await;
    assert_eq!(names(&server), ["both", "two"]);
    let both = server.get("configmaps", Some("default"), "both").unwrap();
    assert_eq!(both["metadata"]["ownerReferences"], json!([reference(&two, "ConfigMap", true)]));
}

#[tokio::test(start_paused = true)]
async fn garbage_collection_continues_after_a_restore() {
    let server = server();
    let top = owned_by(&server, "top", &[]);
    owned_by(&server, "child", &[(&top, false)]);
    delete_as(&server, "top", "Background").await;
    let saved = server.save();
    let_garbage_collection_run().await;
    server.restore(&saved);
    assert_eq!(names(&server), ["child"]);
    let_garbage_collection_run().await;
    assert_eq!(names(&server), [""; 0]);
}
