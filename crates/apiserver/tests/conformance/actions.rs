//! Creates whose objects are not stored: bindings, evictions and tokens.

use super::cluster::{Case, case};
use serde_json::{Value, json};

fn pod(name: &str) -> Value {
    json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case(121, |cluster| async move {
            assert_eq!(cluster.post(&cluster.pods(), &pod("p")).await.code, 201);
            let path = format!("{}/p", cluster.pods());
            let to = |node: &str| {
                json!({"kind": "Binding", "apiVersion": "v1", "metadata": {"name": "p"},
                    "target": {"kind": "Node", "name": node}})
            };
            let bound = cluster.post(&format!("{path}/binding"), &to("n1")).await;
            assert_eq!((bound.code, bound.at("/status")), (201, json!("Success")), "{}", bound.text);
            assert_eq!(cluster.get(&path).await.at("/spec/nodeName"), "n1");
            let again = cluster.post(&format!("{path}/binding"), &to("n2")).await;
            again.is(409, "Conflict");
            let said = "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n1\"";
            assert_eq!(again.at("/message"), said);
        }),
        case(122, |cluster| async move {
            assert_eq!(cluster.post(&cluster.pods(), &pod("p")).await.code, 201);
            let path = format!("{}/p", cluster.pods());
            let eviction = json!({"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "p"}});
            let evicted = cluster.post(&format!("{path}/eviction"), &eviction).await;
            assert_eq!((evicted.code, evicted.at("/status")), (201, json!("Success")), "{}", evicted.text);
            // The pod has no node, so it is deleted at once.
            assert_eq!(cluster.get(&path).await.code, 404);
            cluster.post(&format!("{path}/eviction"), &eviction).await.is(404, "NotFound");
        }),
        case(123, |cluster| async move {
            let accounts = format!("/api/v1/namespaces/{}/serviceaccounts", cluster.namespace);
            assert_eq!(cluster.post(&accounts, &json!({"metadata": {"name": "robot"}})).await.code, 201);
            let ask = |spec| json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": spec});
            let path = format!("{accounts}/robot/token");
            let made = cluster.post(&path, &ask(json!({"audiences": ["api"]}))).await;
            assert_eq!((made.code, made.at("/spec/expirationSeconds")), (201, json!(3600)), "{}", made.text);
            assert_eq!(made.at("/status/token").as_str().unwrap().split('.').count(), 3);
            assert!(made.at("/status/expirationTimestamp").is_string());
            let brief = cluster.post(&path, &ask(json!({"audiences": ["api"], "expirationSeconds": 60}))).await;
            brief.is(422, "Invalid");
            let said = "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 60: may not \
                specify a duration less than 10 minutes";
            assert_eq!(brief.at("/message"), said);
        }),
        case(130, |cluster| async move {
            let budgets = format!("/apis/policy/v1/namespaces/{}/poddisruptionbudgets", cluster.namespace);
            let budget = json!({"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1}});
            assert_eq!(cluster.post(&budgets, &budget).await.code, 201);
            let mut pod = pod("p");
            pod["metadata"]["labels"] = json!({"app": "web"});
            assert_eq!(cluster.post(&cluster.pods(), &pod).await.code, 201);
            let path = format!("{}/p", cluster.pods());
            let eviction =
                |name: &str| json!({"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": name}});
            let tried = cluster.post(&format!("{path}/eviction?dryRun=All"), &eviction("p")).await;
            assert_eq!((tried.code, cluster.get(&path).await.code), (201, 200), "{}", tried.text);
            cluster.post(&format!("{path}/eviction"), &eviction("q")).await.is(400, "BadRequest");
            // The budget protects a running and ready pod, also from a dry run.
            let ready = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
            assert_eq!(cluster.merge(&format!("{path}/status"), &ready).await.code, 200);
            cluster.post(&format!("{path}/eviction?dryRun=All"), &eviction("p")).await.is(429, "TooManyRequests");
            cluster.post(&format!("{path}/eviction"), &eviction("p")).await.is(429, "TooManyRequests");
            // The budget does not protect a pending pod.
            let pending = json!({"status": {"phase": "Pending", "conditions": null}});
            assert_eq!(cluster.merge(&format!("{path}/status"), &pending).await.code, 200);
            let evicted = cluster.post(&format!("{path}/eviction"), &eviction("p")).await;
            assert_eq!((evicted.code, cluster.get(&path).await.code), (201, 404), "{}", evicted.text);
        }),
        case(136, |cluster| async move {
            let mut gated = pod("gated");
            gated["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
            let mut held = pod("held");
            held["metadata"]["finalizers"] = json!(["example.com/hold"]);
            for pod in [pod("p"), gated, held] {
                assert_eq!(cluster.post(&cluster.pods(), &pod).await.code, 201);
            }
            assert_eq!(cluster.delete(&format!("{}/held", cluster.pods())).await.code, 200);
            let bind = async |name: &str, metadata: Value, target: Value| {
                let binding = json!({"kind": "Binding", "apiVersion": "v1", "metadata": metadata, "target": target});
                cluster.post(&format!("{}/{name}/binding", cluster.pods()), &binding).await
            };
            let node = || json!({"kind": "Node", "name": "n1"});
            bind("p", json!({"name": "q"}), node()).await.is(400, "BadRequest");
            for (name, why) in [
                ("gated", "pod gated has non-empty .spec.schedulingGates"),
                ("held", "pod held is being deleted, cannot be assigned to a host"),
            ] {
                let refused = bind(name, json!({"name": name}), node()).await;
                refused.is(409, "Conflict");
                let said = format!("Operation cannot be fulfilled on pods/binding \"{name}\": {why}");
                assert_eq!(refused.at("/message"), said);
            }
            for (target, why) in [
                (json!({"name": ""}), "target.name: Required value"),
                (
                    json!({"kind": "Pod", "name": "n1"}),
                    "target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\"",
                ),
            ] {
                let refused = bind("p", json!({"name": "p"}), target).await;
                assert_eq!((refused.code, refused.at("/message")), (500, json!(why)), "{}", refused.text);
            }
            // A binding with another uid or version gets a conflict.
            for named in [json!({"name": "p", "uid": "another"}), json!({"name": "p", "resourceVersion": "1"})] {
                let refused = bind("p", named, node()).await;
                refused.is(409, "Conflict");
                assert!(refused.text.contains("Precondition failed: "), "{}", refused.text);
            }
            let path = format!("{}/p", cluster.pods());
            let before = cluster.get(&path).await;
            let metadata = json!({"name": "p", "uid": before.at("/metadata/uid"), "labels": {"zone": "a"},
                "annotations": {"example.com/why": "room"}});
            assert_eq!(bind("p", metadata, node()).await.code, 201);
            let bound = cluster.get(&path).await;
            assert_eq!(bound.at("/metadata/labels/zone"), "a");
            assert_eq!(bound.at("/metadata/annotations/example.com~1why"), "room");
            assert_eq!(bound.at("/metadata/managedFields"), before.at("/metadata/managedFields"));
        }),
    ]
}
