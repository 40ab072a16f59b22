//! Creates whose objects are not stored: bindings, evictions, tokens and reviews.

use crate::support::*;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use kube_embedded_apiserver::ApiServer;
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn pod(server: &ApiServer, name: &str) {
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    let pod = json!({"metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec});
    server.create("pods", Some("default"), pod).unwrap();
}

fn binding(name: &str, node: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": node}})
}

fn eviction(name: &str) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_to_a_node_once() {
    let server = server();
    pod(&server, "p");
    let path = format!("{PODS}/p/binding");
    assert_eq!(post(&server, &format!("{path}?dryRun=All"), &binding("p", "n1")).await.code, 201);
    assert_eq!(server.get("pods", Some("default"), "p").unwrap()["spec"].get("nodeName"), None);
    let bound = post(&server, &path, &binding("p", "n1")).await;
    assert_eq!((bound.code, &bound.json()["status"]), (201, &json!("Success")), "{}", bound.text);
    let found = server.get("pods", Some("default"), "p").unwrap();
    assert_eq!(found["spec"]["nodeName"], "n1");
    let conditions = found["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().any(|condition| condition["type"] == "PodScheduled" && condition["status"] == "True"));
    let again = post(&server, &path, &binding("p", "n2")).await;
    let message = "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n1\"";
    assert_eq!((again.code, again.json()["message"].as_str()), (409, Some(message)));
    let nowhere = post(&server, &path, &binding("p", "")).await;
    assert_eq!((nowhere.code, &nowhere.json()["message"]), (500, &json!("target.name: Required value")));
    assert_eq!(nowhere.json().get("reason"), None);
    assert_eq!(post(&server, &format!("{PODS}/zzz/binding"), &binding("zzz", "n1")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_evicted_only_if_its_budget_allows_it() {
    let server = server();
    ["a", "b", "c"].into_iter().for_each(|name| pod(&server, name));
    let evict = async |name: &str, body: &Value| post(&server, &format!("{PODS}/{name}/eviction"), body).await;
    let mut tried = eviction("a");
    tried["deleteOptions"] = json!({"dryRun": ["All"]});
    assert_eq!(evict("a", &tried).await.code, 201);
    let tried = post(&server, &format!("{PODS}/a/eviction?dryRun=All"), &eviction("a")).await;
    assert_eq!((tried.code, server.get("pods", Some("default"), "a").is_ok()), (201, true));
    assert_eq!(evict("a", &eviction("b")).await.code, 400);
    let evicted = evict("a", &eviction("a")).await;
    assert_eq!((evicted.code, &evicted.json()["status"]), (201, &json!("Success")), "{}", evicted.text);
    assert_eq!(get(&server, &format!("{PODS}/a")).await.code, 404);
    let selector = json!({"matchLabels": {"app": "web"}});
    let status = json!({"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2});
    let budget = json!({"metadata": {"name": "pdb"}, "spec": {"selector": selector}, "status": status});
    server.create("poddisruptionbudgets", Some("default"), budget).unwrap();
    for name in ["b", "c"] {
        let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        server.patch("pods", Some("default"), name, json!({"status": ready})).unwrap();
    }
    assert_eq!(evict("b", &eviction("b")).await.code, 201);
    let spent = server.get("poddisruptionbudgets", Some("default"), "pdb").unwrap();
    assert_eq!(spent["status"]["disruptionsAllowed"], 0);
    assert!(spent["status"]["disruptedPods"]["b"].is_string(), "{spent}");
    let refused = evict("c", &eviction("c")).await;
    assert_eq!((refused.code, &refused.json()["reason"]), (429, &json!("TooManyRequests")), "{}", refused.text);
    assert_eq!(refused.json()["details"]["causes"][0]["reason"], "DisruptionBudget");
    assert_eq!(post(&server, &format!("{PODS}/c/eviction?dryRun=All"), &eviction("c")).await.code, 429);
    assert!(server.get("pods", Some("default"), "c").is_ok());
    // A budget does not protect pods that have ended, are pending, or are being deleted.
    for phase in ["Succeeded", "Failed", "Pending"] {
        pod(&server, "d");
        server.patch("pods", Some("default"), "d", json!({"status": {"phase": phase}})).unwrap();
        assert_eq!(evict("d", &eviction("d")).await.code, 201, "{phase}");
    }
    merge(&server, &format!("{PODS}/c"), &json!({"metadata": {"finalizers": ["example.com/hold"]}})).await;
    delete(&server, &format!("{PODS}/c")).await;
    assert_eq!(evict("c", &eviction("c")).await.code, 201);
    assert_eq!(evict("zzz", &eviction("zzz")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn an_unready_pod_uses_no_disruption_budget_if_enough_pods_are_healthy() {
    let server = server();
    let selector = json!({"matchLabels": {"app": "web"}});
    let status = json!({"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 2});
    let budget = json!({"metadata": {"name": "pdb"}, "spec": {"selector": selector}, "status": status});
    server.create("poddisruptionbudgets", Some("default"), budget).unwrap();
    let evict = async |code: u16| {
        pod(&server, "a");
        server.patch("pods", Some("default"), "a", json!({"status": {"phase": "Running"}})).unwrap();
        assert_eq!(post(&server, &format!("{PODS}/a/eviction"), &eviction("a")).await.code, code);
        let _ = server.delete("pods", Some("default"), "a");
    };
    evict(201).await;
    server.patch("poddisruptionbudgets", Some("default"), "pdb", json!({"status": {"currentHealthy": 0}})).unwrap();
    evict(429).await;
    let always = json!({"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}});
    server.patch("poddisruptionbudgets", Some("default"), "pdb", always).unwrap();
    evict(201).await;
}

#[tokio::test(start_paused = true)]
async fn a_token_has_a_subject_and_an_expiry() {
    let server = server();
    let account = server.create("serviceaccounts", Some("default"), json!({"metadata": {"name": "robot"}})).unwrap();
    let path = "/api/v1/namespaces/default/serviceaccounts/robot/token";
    let request = |seconds: Value| {
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"audiences": ["api"], "expirationSeconds": seconds}})
    };
    let made = post(&server, path, &request(json!(null))).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let made = made.json();
    assert_eq!((&made["kind"], &made["spec"]["expirationSeconds"]), (&json!("TokenRequest"), &json!(3600)));
    assert!(made["status"]["expirationTimestamp"].is_string());
    let token = made["status"]["token"].as_str().unwrap();
    let parts: Vec<&str> = token.split('.').collect();
    assert_eq!(parts.len(), 3);
    let claims: Value = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(parts[1]).unwrap()).unwrap();
    assert_eq!(claims["sub"], "system:serviceaccount:default:robot");
    assert_eq!((&claims["aud"], &claims["uid"]), (&json!(["api"]), &account["metadata"]["uid"]));
    let refused = post(&server, path, &request(json!(60))).await;
    assert_eq!(refused.code, 422);
    assert!(refused.text.contains("may not specify a duration less than 10 minutes"), "{}", refused.text);
    assert_eq!(post(&server, &path.replace("robot", "missing"), &request(json!(600))).await.code, 404);
    assert_eq!(server.list("serviceaccounts").unwrap().1.len(), 1, "no token is stored");
}

#[tokio::test(start_paused = true)]
async fn reviews_authenticate_every_token_and_allow_every_request() {
    let server = server();
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "any"}});
    let answer = post(&server, "/apis/authentication.k8s.io/v1/tokenreviews", &review).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    let answer = answer.json();
    assert_eq!((&answer["kind"], &answer["status"]["authenticated"]), (&json!("TokenReview"), &json!(true)));
    assert_eq!(answer["status"]["user"]["username"], "kubernetes-admin");
    let attributes = json!({"verb": "create", "resource": "pods", "namespace": "default"});
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes}});
    let answer = post(&server, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review).await;
    assert_eq!((answer.code, &answer.json()["status"]["allowed"]), (201, &json!(true)), "{}", answer.text);
}
