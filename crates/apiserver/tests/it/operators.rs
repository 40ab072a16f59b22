//! Kinds, subresources and objects that operators' tests expect in a cluster.

use crate::support::*;
use kube_embedded_apiserver::ApiServer;
use serde_json::{Value, json};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

fn signing_request() -> Value {
    let spec = json!({"request": "LS0t", "signerName": "example.com/signer", "usages": ["client auth"], "username": "mallory"});
    json!({"metadata": {"name": "r"}, "spec": spec, "status": {"certificate": "LS0t"}})
}

fn condition(kind: &str) -> Value {
    json!({"type": kind, "status": "True", "reason": "Test"})
}

/// Returns the body of an update of the stored request: `change` is merged into its status.
async fn with_status(server: &ApiServer, change: Value) -> Value {
    let mut object = get(server, &format!("{REQUESTS}/r")).await.json();
    for (member, value) in change.as_object().unwrap() {
        object["status"][member.as_str()] = value.clone();
    }
    object
}

#[tokio::test(start_paused = true)]
async fn a_certificate_signing_request_is_approved_and_then_issued() {
    let server = server();
    let created = post(&server, REQUESTS, &signing_request()).await.json();
    assert_eq!((&created["spec"]["username"], &created["status"]), (&json!("kubernetes-admin"), &json!({})));
    let approved = with_status(&server, json!({"conditions": [condition("Approved")]})).await;
    let refused = put(&server, &format!("{REQUESTS}/r/status"), &approved).await;
    assert_eq!(refused.code, 422, "{}", refused.text);
    let mut approval = approved.clone();
    approval["spec"]["signerName"] = json!("example.com/other");
    let answer = put(&server, &format!("{REQUESTS}/r/approval"), &approval).await;
    assert_eq!(answer.code, 200, "{}", answer.text);
    let answer = answer.json();
    assert_eq!(answer["spec"]["signerName"], "example.com/signer");
    let decided = &answer["status"]["conditions"][0];
    assert!(decided["lastUpdateTime"].is_string() && decided["lastTransitionTime"].is_string(), "{decided}");
    let issued = with_status(&server, json!({"certificate": "Y2VydA=="})).await;
    assert_eq!(
        put(&server, &format!("{REQUESTS}/r/approval"), &issued).await.json()["status"]["certificate"],
        Value::Null
    );
    let answer = put(&server, &format!("{REQUESTS}/r/status"), &issued).await;
    assert_eq!((answer.code, &answer.json()["status"]["certificate"]), (200, &json!("Y2VydA==")), "{}", answer.text);
    let removed = with_status(&server, json!({"conditions": []})).await;
    assert_eq!(put(&server, &format!("{REQUESTS}/r/approval"), &removed).await.code, 422);
    let both = with_status(&server, json!({"conditions": [condition("Approved"), condition("Denied")]})).await;
    assert_eq!(put(&server, &format!("{REQUESTS}/r/approval"), &both).await.code, 422);
    let unsigned = json!({"metadata": {"name": "s"}, "spec": {"request": "LS0t"}});
    assert!(post(&server, REQUESTS, &unsigned).await.text.contains("spec.signerName"));
}

#[tokio::test(start_paused = true)]
async fn a_debug_container_is_added_through_its_subresource() {
    const POD: &str = "/api/v1/namespaces/default/pods/p";
    let server = server();
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    server.create("pods", Some("default"), pod).unwrap();
    let path = format!("{POD}/ephemeralcontainers");
    let debugger = json!({"name": "debug", "image": "busybox"});
    let patch = json!({"spec": {"ephemeralContainers": [debugger], "nodeName": "other"}});
    let answer = send_as(&server, "PATCH", &path, "application/strategic-merge-patch+json", &patch.to_string()).await;
    assert_eq!(answer.code, 200, "{}", answer.text);
    let pod = get(&server, &path).await.json();
    assert_eq!(pod["spec"]["ephemeralContainers"][0]["image"], "busybox");
    assert_eq!((&pod["spec"]["nodeName"], &pod["metadata"]["generation"]), (&Value::Null, &json!(2)));
    for containers in [json!([]), json!([{"name": "debug", "image": "alpine"}])] {
        let mut pod = pod.clone();
        pod["spec"]["ephemeralContainers"] = containers;
        let refused = put(&server, &path, &pod).await;
        assert_eq!(refused.code, 422, "{}", refused.text);
    }
    let born = json!({"metadata": {"name": "q"}, "spec": {"containers": [{"name": "c", "image": "i"}], "ephemeralContainers": [debugger]}});
    let refused = post(&server, "/api/v1/namespaces/default/pods", &born).await;
    assert!(refused.code == 422 && refused.text.contains("cannot be set on create"), "{}", refused.text);
}

#[tokio::test(start_paused = true)]
async fn stored_kinds_have_their_defaults_and_rules() {
    let server = server();
    let policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    let spec = json!({"validations": [{"expression": "true"}], "matchConstraints": {}});
    let created = post(&server, policies, &json!({"metadata": {"name": "a"}, "spec": spec})).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let created = created.json();
    let constraints = &created["spec"]["matchConstraints"];
    assert_eq!((&constraints["matchPolicy"], &created["metadata"]["generation"]), (&json!("Equivalent"), &json!(1)));
    let class = json!({"metadata": {"name": "gvisor"}, "handler": "runsc"});
    let classes = "/apis/node.k8s.io/v1/runtimeclasses";
    assert_eq!(post(&server, classes, &class).await.code, 201);
    let changed = merge(&server, &format!("{classes}/gvisor"), &json!({"handler": "other"})).await;
    assert_eq!(changed.code, 422, "{}", changed.text);
}

#[tokio::test(start_paused = true)]
async fn a_server_starts_with_the_objects_of_a_cluster_if_it_is_told_its_address() {
    let address = ([127, 0, 0, 1], 8001).into();
    let server = ApiServer::builder().cluster_objects(address).build();
    let service = server.get("services", Some("default"), "kubernetes").unwrap();
    assert_eq!(
        (&service["spec"]["clusterIP"], &service["spec"]["ports"][0]["port"]),
        (&json!("10.0.0.1"), &json!(443))
    );
    let endpoints = server.get("endpoints", Some("default"), "kubernetes").unwrap();
    assert_eq!(endpoints["subsets"][0]["ports"][0]["port"], 8001);
    let slice = server.get("endpointslices.discovery.k8s.io", Some("default"), "kubernetes").unwrap();
    assert_eq!((&slice["addressType"], &slice["endpoints"][0]["addresses"]), (&json!("IPv4"), &json!(["127.0.0.1"])));
    assert!(server.get("configmaps", Some("kube-system"), "extension-apiserver-authentication").is_ok());
    for name in ["cluster-admin", "admin", "edit", "view"] {
        assert!(server.get("clusterroles.rbac.authorization.k8s.io", None, name).is_ok(), "{name}");
    }
    for id in ["clusterrolebindings.rbac.authorization.k8s.io", "priorityclasses.scheduling.k8s.io"] {
        assert!(!server.list(id).unwrap().1.is_empty(), "{id}");
    }
    let address = json!({"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}});
    let given = server.create("services", Some("default"), address).unwrap();
    assert_ne!(given["spec"]["clusterIP"], "10.0.0.1");
    assert_eq!(ApiServer::builder().build().list("services").unwrap().1.len(), 0);
}
