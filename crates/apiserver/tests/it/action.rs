//! Creates whose objects are not stored: bindings, evictions, tokens and reviews.

use crate::support::*;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use kube_embedded_apiserver::ApiServer;
use serde_json::{Value, json};
use std::time::Duration;

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
    let about = &claims["kubernetes.io"]["serviceaccount"];
    assert_eq!((&claims["aud"], &about["uid"]), (&json!(["api"]), &account["metadata"]["uid"]));
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 3600);
    let refused = post(&server, path, &request(json!(60))).await;
    assert_eq!(refused.code, 422);
    assert!(refused.text.contains("may not specify a duration less than 10 minutes"), "{}", refused.text);
    assert_eq!(post(&server, &path.replace("robot", "missing"), &request(json!(600))).await.code, 404);
    assert_eq!(server.list("serviceaccounts").unwrap().1.len(), 1, "no token is stored");
}

const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

/// Returns the status of a token review.
async fn token_review(server: &ApiServer, token: &str, audiences: &[&str]) -> Value {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": {"token": token, "audiences": audiences}});
    let answer = post(server, TOKEN_REVIEWS, &review).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    answer.json()["status"].clone()
}

/// Issues a token for the service account `default/robot`.
async fn token(server: &ApiServer, audiences: &[&str]) -> String {
    let request = json!({"spec": {"audiences": audiences, "expirationSeconds": 600}});
    let issued = post(server, "/api/v1/namespaces/default/serviceaccounts/robot/token", &request).await;
    assert_eq!(issued.code, 201, "{}", issued.text);
    issued.json()["status"]["token"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_token_review_knows_only_the_tokens_of_this_server() {
    let server = server();
    let account = server.create("serviceaccounts", Some("default"), json!({"metadata": {"name": "robot"}})).unwrap();
    for unknown in ["any", "a.b.c"] {
        assert_eq!(token_review(&server, unknown, &[]).await, json!({"user": {}}));
    }
    let (own, foreign) = (token(&server, &[]).await, token(&server, &["vault", "api"]).await);
    let status = token_review(&server, &own, &[]).await;
    assert_eq!(status["authenticated"], true);
    assert_eq!(status["audiences"], json!(["https://kubernetes.default.svc.cluster.local"]));
    let user = &status["user"];
    assert_eq!(
        (&user["username"], &user["uid"]),
        (&json!("system:serviceaccount:default:robot"), &account["metadata"]["uid"])
    );
    assert_eq!(
        user["groups"],
        json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"])
    );
    assert_eq!(token_review(&server, &foreign, &["api", "other"]).await["audiences"], json!(["api"]));
    let error =
        "[invalid bearer token, token audiences [\"vault\" \"api\"] is invalid for the target audiences [\"other\"]]";
    assert_eq!(token_review(&server, &foreign, &["other"]).await, json!({"user": {}, "error": error}));
    let empty = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": ""}});
    assert_eq!(post(&server, TOKEN_REVIEWS, &empty).await.code, 400);
    tokio::time::advance(Duration::from_secs(600)).await;
    let error = "[invalid bearer token, service account token has expired]";
    assert_eq!(token_review(&server, &own, &[]).await["error"], error);
    let orphan = token(&server, &[]).await;
    server.delete("serviceaccounts", Some("default"), "robot").unwrap();
    let error = "[invalid bearer token, serviceaccounts \"robot\" not found]";
    assert_eq!(token_review(&server, &orphan, &[]).await["error"], error);
}

#[tokio::test(start_paused = true)]
async fn a_token_review_knows_the_token_of_the_server() {
    let server = ApiServer::builder().token("secret").build();
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "secret"}});
    let mut request = request("POST", TOKEN_REVIEWS, Some(&review));
    request.headers_mut().insert("authorization", "Bearer secret".parse().unwrap());
    let status = send(&server, request).await.json()["status"].clone();
    assert_eq!((&status["authenticated"], &status["user"]["username"]), (&json!(true), &json!("kubernetes-admin")));
}

#[tokio::test(start_paused = true)]
async fn access_reviews_allow_everything_unless_a_closure_decides() {
    let review = |kind: &str| {
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind,
            "spec": {"user": "jane", "resourceAttributes": {"verb": "create", "resource": "pods", "namespace": "default"}}})
    };
    let open = server();
    let decided = ApiServer::builder().access_reviews(|spec| spec["user"] == "jane").build();
    for (kind, path, allowed) in [
        ("SelfSubjectAccessReview", "selfsubjectaccessreviews", false),
        ("SubjectAccessReview", "subjectaccessreviews", true),
        ("LocalSubjectAccessReview", "namespaces/default/localsubjectaccessreviews", true),
    ] {
        for (server, allowed) in [(&open, true), (&decided, allowed)] {
            let answer = post(server, &format!("/apis/authorization.k8s.io/v1/{path}"), &review(kind)).await;
            assert_eq!(
                (answer.code, &answer.json()["status"]["allowed"]),
                (201, &json!(allowed)),
                "{kind}: {}",
                answer.text
            );
        }
    }
}
