use super::cluster::{Case, case, config_map, version, widget};
use serde_json::{Value, json};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case(60, |cluster| async move {
            let mut object = cluster.make("a").await;
            let before = version(&object);
            object["data"]["k"] = json!("w");
            let updated = cluster.put(&cluster.config_map("a"), &object).await;
            assert_eq!((updated.code, updated.version() > before), (200, true));
        }),
        case(61, |cluster| async move {
            let mut object = cluster.make("a").await;
            let start = version(&object);
            let mut watch =
                cluster.watch(&cluster.own(&format!("watch=1&resourceVersion={start}&timeoutSeconds=1"))).await;
            object["data"]["k"] = json!("w");
            let first = cluster.put(&cluster.config_map("a"), &object).await;
            let second = cluster.put(&cluster.config_map("a"), &first.json()).await;
            assert_eq!((second.code, second.version()), (200, first.version()));
            assert_eq!(watch.rest().await.len(), 1);
        }),
        case(62, |cluster| async move {
            let mut object = cluster.make("a").await;
            object["data"]["k"] = json!("w");
            cluster.put(&cluster.config_map("a"), &object).await;
            object["data"]["k"] = json!("x");
            let stale = cluster.put(&cluster.config_map("a"), &object).await;
            stale.is(409, "Conflict");
            let message = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply \
                your changes to the latest version and try again";
            assert_eq!(stale.at("/message"), message);
            assert_eq!(stale.at("/details"), json!({"name": "a", "kind": "configmaps"}));
        }),
        case(63, |cluster| async move {
            cluster.make("a").await;
            assert_eq!(cluster.put(&cluster.config_map("a"), &config_map("a")).await.code, 200);
            cluster.post(&cluster.widgets(), &widget("w", 1)).await;
            let refused = cluster.put(&format!("{}/w", cluster.widgets()), &widget("w", 2)).await;
            refused.is(422, "Invalid");
            assert!(refused.text.contains("must be specified for an update"));
        }),
        case(64, |cluster| async move {
            let mut object = cluster.make("a").await;
            object["metadata"]["uid"] = json!("00000000-0000-4000-8000-000000000000");
            object["metadata"].as_object_mut().unwrap().remove("resourceVersion");
            let refused = cluster.put(&cluster.config_map("a"), &object).await;
            refused.is(409, "Conflict");
            assert!(refused.text.contains("Precondition failed: UID"));
        }),
        case(65, |cluster| async move {
            cluster.put(&cluster.config_map("a"), &config_map("a")).await.is(404, "NotFound");
            let lease =
                json!({"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "l"}, "spec": {}});
            let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/l", cluster.namespace);
            assert_eq!(cluster.put(&path, &lease).await.code, 201);
        }),
        case(66, |cluster| async move {
            cluster.make("a").await;
            let patched = cluster.merge(&cluster.config_map("a"), &json!({"data": {"k": null, "l": "1"}})).await;
            assert_eq!((patched.code, patched.at("/data")), (200, json!({"l": "1"})));
        }),
        case(67, |cluster| async move {
            cluster.make("a").await;
            let patch = json!([{"op": "test", "path": "/data/k", "value": "other"}]);
            let media_type = "application/json-patch+json";
            cluster.write("PATCH", &cluster.config_map("a"), media_type, &patch).await.is(422, "Invalid");
        }),
        case(71, |cluster| async move {
            let path = format!("{}/w", cluster.widgets());
            let mut object = widget("w", 1);
            object["status"] = json!({"ready": true});
            let created = cluster.post(&cluster.widgets(), &object).await.json();
            assert_eq!(created.get("status"), None);
            let mut changed = created.clone();
            changed["spec"]["size"] = json!(9);
            changed["metadata"]["labels"] = json!({"a": "b"});
            changed["status"] = json!({"ready": true});
            let status = cluster.put(&format!("{path}/status"), &changed).await.json();
            assert_eq!((&status["status"], &status["spec"]["size"]), (&json!({"ready": true}), &json!(1)));
            assert_eq!((status["metadata"].get("labels"), &status["metadata"]["generation"]), (None, &json!(1)));
            let mut main = status.clone();
            main["spec"]["size"] = json!(2);
            main["status"]["ready"] = json!(false);
            let main = cluster.put(&path, &main).await.json();
            assert_eq!((&main["status"]["ready"], &main["spec"]["size"]), (&json!(true), &json!(2)));
            assert_eq!(main["metadata"]["generation"], 2);
        }),
        case(72, |cluster| async move {
            let path = format!("{}/w", cluster.widgets());
            cluster.post(&cluster.widgets(), &widget("w", 1)).await;
            let scale = cluster.get(&format!("{path}/scale")).await;
            assert_eq!((scale.at("/kind"), scale.at("/apiVersion")), (json!("Scale"), json!("autoscaling/v1")));
            let patched = cluster.merge(&format!("{path}/scale"), &json!({"spec": {"replicas": 4}})).await;
            assert_eq!((patched.code, patched.at("/spec/replicas")), (200, json!(4)));
            assert_eq!(cluster.get(&path).await.at("/spec/replicas"), json!(4));
        }),
        case(98, |cluster| async move {
            let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", cluster.namespace);
            let lease = json!({"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "l"},
                "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-08-20T18:59:46.000001Z"}});
            let created = cluster.post(&leases, &lease).await;
            assert_eq!((created.code, created.at("/spec/renewTime")), (201, json!("2026-08-20T18:59:46.000001Z")));
            cluster.put(&format!("{leases}/l"), &lease).await.is(422, "Invalid");
            let mut renewed: Value = created.json();
            renewed["spec"]["renewTime"] = json!("2026-08-20T18:59:48.000001Z");
            assert_eq!(cluster.put(&format!("{leases}/l"), &renewed).await.code, 200);
        }),
    ]
}
