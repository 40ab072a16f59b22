use crate::support::*;
use kube_embedded_apiserver::{ApiServer, Resource};
use serde_json::{Value, json};
use std::time::Duration;

const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Objects that no client could have written.
fn odd() -> [Value; 4] {
    let metadata =
        json!({"name": "odd", "labels": "x", "ownerReferences": {"a": 1}, "annotations": [1], "managedFields": "z"});
    let lists =
        json!({"name": "odd", "labels": {"a": 5}, "ownerReferences": [1], "finalizers": [1], "managedFields": [1]});
    [
        json!({"metadata": metadata, "spec": "x", "status": "y", "data": 5, "rules": "x", "subsets": "y", "webhooks": 4,
            "roleRef": 1, "subjects": 2, "endpoints": "z", "ports": 3, "involvedObject": "q"}),
        json!({"metadata": metadata, "spec": {"containers": "x", "ports": 7, "template": 3, "selector": 4, "type": 9, "rules": "a",
            "tls": 1, "clusterIPs": "x", "names": "n", "versions": "v", "metrics": 5, "scaleTargetRef": "x", "finalizers": "y"},
            "status": {"conditions": "x", "loadBalancer": "y", "addresses": 3, "containerStatuses": {"a": 1}}}),
        json!({"metadata": lists, "spec": [1], "status": [2]}),
        json!({"metadata": lists, "spec": {"containers": [1], "ports": [2], "rules": [3], "tls": ["x"], "versions": [4],
            "template": {"spec": "x"}, "volumes": [7]},
            "status": {"conditions": [1], "containerStatuses": ["x"], "loadBalancer": {"ingress": ["x"]}, "addresses": [1]}}),
    ]
}

fn path(resource: &Resource) -> String {
    let base = if resource.group().is_empty() { "/api".to_owned() } else { format!("/apis/{}", resource.group()) };
    let place = if resource.is_namespaced() { "/namespaces/default" } else { "" };
    format!("{base}/{}{place}/{}", resource.version(), resource.plural())
}

/// Sends every kind of read. A panic of the server would end the test.
async fn ask(server: &ApiServer, resource: &Resource, path: &str) {
    for accept in ["application/json", "application/json;as=Table;g=meta.k8s.io;v=v1", "application/yaml"] {
        let mut request = request("GET", path, None);
        request.headers_mut().insert("accept", accept.parse().unwrap());
        // Resources that only support creates cannot be listed.
        assert!(matches!(send(server, request).await.code, 200 | 405), "{path} {accept}");
    }
    let whole =
        json!({"apiVersion": resource.api_version(), "kind": resource.kind(), "metadata": {"labels": {"c": "d"}}});
    for (method, part, media_type, body) in [
        ("PATCH", "", MERGE, json!({"metadata": {"labels": {"a": "b"}}})),
        ("PATCH", "?fieldManager=x&force=true", APPLY, whole),
        ("PATCH", "", STRATEGIC, json!({"spec": {"containers": [{"name": "a"}], "ports": [{"port": 1}]}})),
        ("PATCH", "/status", MERGE, json!({"status": {"x": 1}})),
        ("PATCH", "/scale", MERGE, json!({"spec": {"replicas": 1}})),
        ("GET", "/scale", "", Value::Null),
        ("POST", "/eviction", "application/json", json!({"metadata": {"name": "odd"}})),
        ("DELETE", "", "application/json", json!({"propagationPolicy": "Foreground"})),
    ] {
        send_as(server, method, &format!("{path}/odd{part}"), media_type, &body.to_string()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_object_of_put_as_is_can_be_requested() {
    for odd in odd() {
        let server = ApiServer::builder().seed(1).garbage_collection(true).build();
        for resource in server.resources() {
            let namespace = resource.is_namespaced().then_some("default");
            if server.put_as_is(resource.id(), namespace, odd.clone()).is_ok() {
                ask(&server, &resource, &path(&resource)).await;
            }
        }
        // The garbage collector has handled the deletes, too, without a panic.
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(get(&server, "/api/v1/namespaces").await.code, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn an_invalid_namespace_and_an_invalid_crd_can_be_deleted() {
    let server = server();
    let namespace = json!({"metadata": {"name": "odd", "finalizers": ["example.com/hold"]}, "spec": "x", "status": 7});
    server.put_as_is("namespaces", None, namespace).unwrap();
    delete(&server, "/api/v1/namespaces/odd").await;
    let definition = json!({"metadata": {"name": "odds.example.com"}, "spec": "x", "status": "y"});
    server.put_as_is("customresourcedefinitions", None, definition).unwrap();
    assert_eq!(delete(&server, &format!("{DEFINITIONS}/odds.example.com")).await.code, 200);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(get(&server, &format!("{DEFINITIONS}/odds.example.com")).await.code, 404);
    assert_eq!(get(&server, "/api/v1/namespaces/odd").await.json()["spec"], "x");
}

#[tokio::test(start_paused = true)]
async fn a_crd_never_replaces_a_built_in_resource() {
    let server = server();
    let definition = json!({"metadata": {"name": "deployments.apps"}, "spec": {"group": "apps", "scope": "Namespaced",
        "names": {"plural": "deployments", "kind": "Deployment"}, "versions": [{"name": "v1", "served": true, "storage": true}]}});
    server.put_as_is("customresourcedefinitions", None, definition).unwrap();
    let path = format!("{DEFINITIONS}/deployments.apps");
    merge(&server, &path, &json!({"metadata": {"labels": {"a": "b"}}})).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let wrong = json!({"metadata": {"name": "d"}, "spec": "nonsense"});
    assert_eq!(post(&server, "/apis/apps/v1/namespaces/default/deployments", &wrong).await.code, 400);
    delete(&server, &path).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(get(&server, &path).await.code, 404);
    assert_eq!(get(&server, "/apis/apps/v1/deployments").await.code, 200);
}
