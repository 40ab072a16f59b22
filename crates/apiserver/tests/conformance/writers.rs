//! Behaviour that programs rely on when they write. Each case was compared on both servers.

use super::cluster::{Answer, Case, Cluster, case, widget};
use serde_json::{Value, json};
use std::time::Duration;

const NAMESPACES: &str = "/api/v1/namespaces";
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = namespaces();
    cases.extend(definitions());
    cases.extend(objects());
    cases.extend(patches());
    cases.extend(tables());
    cases
}

fn namespaces() -> Vec<Case> {
    vec![
        case(101, |cluster| async move {
            let namespace = format!("{NAMESPACES}/{}", cluster.namespace);
            let finalize = format!("{namespace}/finalize");
            let wrong = json!({"metadata": {"name": cluster.namespace}, "spec": "x"});
            let refused = cluster.put(&finalize, &wrong).await;
            refused.is(400, "BadRequest");
            assert!(refused.text.contains("spec"), "{}", refused.text);
            cluster.merge(&finalize, &json!({"spec": "x"})).await.is(405, "MethodNotAllowed");
            let wrong = json!({"metadata": {"name": cluster.namespace}, "status": "x"});
            cluster.put(&format!("{namespace}/status"), &wrong).await.is(400, "BadRequest");
            assert_eq!(cluster.get(&namespace).await.at("/status/phase"), "Active");
        }),
        case(102, |cluster| async move {
            let namespace = format!("{NAMESPACES}/{}", cluster.namespace);
            let bare = json!({"metadata": {"name": cluster.namespace, "labels": {"a": "b"}}});
            let put = cluster.put(&namespace, &bare).await;
            assert_eq!((put.code, put.at("/spec/finalizers")), (200, json!(["kubernetes"])), "{}", put.text);
            assert_eq!(put.at("/status/phase"), "Active");
            let deleted = cluster.delete(&namespace).await;
            assert_eq!((deleted.code, deleted.at("/status/phase")), (200, json!("Terminating")), "{}", deleted.text);
        }),
    ]
}

pub(crate) fn definition(cluster: &Cluster, versions: &[(&str, bool, bool)]) -> Value {
    let group = format!("{}.example.com", cluster.namespace);
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let versions: Vec<Value> = versions
        .iter()
        .map(|(name, served, storage)| json!({"name": name, "served": served, "storage": storage, "schema": schema}))
        .collect();
    json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": format!("gears.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "gears", "kind": "Gear"}, "versions": versions}})
}

/// Creates a CRD, waits until it is established, and returns its path and the current object.
pub(crate) async fn define(cluster: &Cluster, versions: &[(&str, bool, bool)]) -> (String, Value) {
    let created = cluster.post(DEFINITIONS, &definition(cluster, versions)).await;
    assert_eq!((created.code, created.at("/metadata/finalizers")), (201, Value::Null), "{}", created.text);
    let path = format!("{DEFINITIONS}/gears.{}.example.com", cluster.namespace);
    let established = until(cluster, &path, |answer| {
        let conditions = answer.at("/status/conditions");
        let conditions = conditions.as_array().into_iter().flatten();
        conditions.into_iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True")
    });
    let object = established.await.json();
    (path, object)
}

pub(crate) async fn until(cluster: &Cluster, path: &str, done: impl Fn(&Answer) -> bool) -> Answer {
    for _ in 0..600 {
        let answer = cluster.get(path).await;
        if done(&answer) {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{path} never reached the expected state")
}

pub(crate) fn gears(cluster: &Cluster, version: &str) -> String {
    format!("/apis/{0}.example.com/{version}/namespaces/{0}/gears", cluster.namespace)
}

pub(crate) fn gear(cluster: &Cluster, version: &str) -> Value {
    let api_version = format!("{}.example.com/{version}", cluster.namespace);
    json!({"kind": "Gear", "apiVersion": api_version, "metadata": {"name": "g"}, "spec": {"teeth": 8}})
}

/// Creates an object of a CRD that may have been established only now.
pub(crate) async fn make_gear(cluster: &Cluster, version: &str) -> Value {
    for _ in 0..600 {
        let created = cluster.post(&gears(cluster, version), &gear(cluster, version)).await;
        if created.code == 201 {
            return created.json();
        }
        assert_eq!(created.code, 404, "{}", created.text);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("gears are never served")
}

fn definitions() -> Vec<Case> {
    vec![
        case(103, |cluster| async move {
            let (path, mut object) = define(&cluster, &[("v1", true, true)]).await;
            make_gear(&cluster, "v1").await;
            object["metadata"]["finalizers"] = json!(["example.com/hold"]);
            assert_eq!(cluster.put(&path, &object).await.code, 200);
            let deleted = cluster.delete(&path).await;
            let held = json!(["example.com/hold", "customresourcecleanup.apiextensions.k8s.io"]);
            assert_eq!((deleted.code, deleted.at("/metadata/finalizers")), (200, held), "{}", deleted.text);
            // The custom objects are deleted, and the CRD stays because it has another finalizer.
            let emptied =
                until(&cluster, &path, |answer| answer.at("/metadata/finalizers") == json!(["example.com/hold"]));
            emptied.await;
            cluster.merge(&path, &json!({"metadata": {"finalizers": null}})).await;
            until(&cluster, &path, |answer| answer.code == 404).await;
            until(&cluster, &gears(&cluster, "v1"), |answer| answer.code == 404).await;
        }),
        case(104, |cluster| async move {
            let (path, _) = define(&cluster, &[("v1", true, true), ("v2", true, false)]).await;
            make_gear(&cluster, "v1").await;
            let mut object = cluster.get(&path).await.json();
            object["spec"]["versions"][0]["storage"] = json!(false);
            object["spec"]["versions"][1]["storage"] = json!(true);
            let changed = cluster.put(&path, &object).await;
            assert_eq!(
                (changed.code, changed.at("/status/storedVersions")),
                (200, json!(["v1", "v2"])),
                "{}",
                changed.text
            );
            for version in ["v1", "v2"] {
                let path = format!("{}/g", gears(&cluster, version));
                let read = until(&cluster, &path, |answer| answer.code == 200).await;
                assert!(read.at("/apiVersion").as_str().unwrap().ends_with(version), "{}", read.text);
                let mut patched = cluster.merge(&path, &json!({"spec": {"teeth": 9}})).await;
                // kube-apiserver may replace the handler of the resource during a request.
                for _ in 0..20 {
                    if patched.code != 200 {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        patched = cluster.merge(&path, &json!({"spec": {"teeth": 9}})).await;
                    }
                }
                assert_eq!((patched.code, patched.at("/spec/teeth")), (200, json!(9)), "{}", patched.text);
            }
        }),
        case(105, |cluster| async move {
            let (path, object) = define(&cluster, &[("v1", true, true)]).await;
            let mut manifest = definition(&cluster, &[("v1", true, true)]);
            manifest["metadata"]["resourceVersion"] = object["metadata"]["resourceVersion"].clone();
            let put = cluster.put(&path, &manifest).await;
            assert_eq!((put.code, put.at("/metadata/generation")), (200, json!(1)), "{}", put.text);
            assert_eq!(put.at("/metadata/resourceVersion"), object["metadata"]["resourceVersion"], "{}", put.text);
        }),
        case(106, |cluster| async move {
            define(
                &cluster,
                &[("v1", true, true), ("v2", true, false), ("v3", false, false), ("v1beta1", true, false)],
            )
            .await;
            make_gear(&cluster, "v2").await;
            let group = format!("/apis/{}.example.com", cluster.namespace);
            let names = |answer: &Answer| -> Vec<String> {
                let versions = answer.at("/versions");
                let versions = versions.as_array().into_iter().flatten();
                versions.filter_map(|version| version["version"].as_str().map(str::to_owned)).collect()
            };
            let found = until(&cluster, &group, |answer| names(answer).len() == 3).await;
            assert_eq!(names(&found), ["v2", "v1", "v1beta1"]);
            assert_eq!(found.at("/preferredVersion/version"), "v2");
            assert_eq!(cluster.get(&gears(&cluster, "v3")).await.code, 404);
        }),
    ]
}

pub(crate) fn deployment(name: &str) -> Value {
    json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [
            {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1000m"}}}]}}}})
}

pub(crate) fn deployments(cluster: &Cluster) -> String {
    format!("/apis/apps/v1/namespaces/{}/deployments", cluster.namespace)
}

fn objects() -> Vec<Case> {
    vec![
        case(107, |cluster| async move {
            let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/l", cluster.namespace);
            let lease =
                json!({"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "l"}, "spec": {}});
            let created = cluster.put(&path, &lease).await;
            assert_eq!(created.code, 201, "{}", created.text);
            assert_eq!(cluster.delete(&path).await.code, 200);
            let stale = cluster.put(&path, &created.json()).await;
            stale.is(409, "Conflict");
            assert!(stale.text.contains("UID in object meta: "), "{}", stale.text);
            assert_eq!(cluster.get(&path).await.code, 404);
        }),
        case(108, |cluster| async move {
            let created = cluster.post(&deployments(&cluster), &deployment("d")).await;
            assert_eq!((created.code, created.at("/spec/replicas")), (201, json!(1)), "{}", created.text);
            let path = format!("{}/d/scale", deployments(&cluster));
            let mut scale = cluster.get(&path).await.json();
            assert_eq!(scale["spec"], json!({"replicas": 1}));
            scale["spec"] = json!({});
            let scaled = cluster.put(&path, &scale).await;
            assert_eq!((scaled.code, scaled.at("/spec")), (200, json!({})), "{}", scaled.text);
            assert_eq!(cluster.get(&format!("{}/d", deployments(&cluster))).await.at("/spec/replicas"), 0);
            let wrong = cluster.put(&path, &json!({"metadata": {"name": "d"}, "spec": {"replicas": "x"}})).await;
            wrong.is(400, "BadRequest");
            let refused = cluster.merge(&path, &json!({"spec": {"replicas": -1}})).await;
            refused.is(422, "Invalid");
            let said = "spec.replicas: Invalid value: -1: must be greater than or equal to 0";
            assert!(refused.text.contains(said), "{}", refused.text);
        }),
        case(109, |cluster| async move {
            let path = format!("{}/d", deployments(&cluster));
            cluster.post(&deployments(&cluster), &deployment("d")).await;
            let annotated = cluster.merge(&path, &json!({"metadata": {"annotations": {"a": "b"}}})).await;
            assert_eq!(annotated.at("/metadata/generation"), 2, "{}", annotated.text);
            let labelled = cluster.merge(&path, &json!({"metadata": {"labels": {"a": "b"}}})).await;
            assert_eq!(labelled.at("/metadata/generation"), 2, "{}", labelled.text);
            let mut same = labelled.json();
            same["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"] = json!("1");
            assert_eq!(cluster.put(&path, &same).await.at("/metadata/generation"), 2);
            let slices = format!("/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices", cluster.namespace);
            let slice = json!({"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "metadata": {"name": "e"},
                "addressType": "IPv4", "endpoints": []});
            assert_eq!(cluster.post(&slices, &slice).await.at("/metadata/generation"), 1);
            let labelled = cluster.merge(&format!("{slices}/e"), &json!({"metadata": {"labels": {"a": "b"}}})).await;
            assert_eq!(labelled.at("/metadata/generation"), 2, "{}", labelled.text);
        }),
        case(110, |cluster| async move {
            let path = format!("{}/d", deployments(&cluster));
            let mut object = cluster.post(&deployments(&cluster), &deployment("d")).await.json();
            object["metadata"]["annotations"] = json!({"a": "b"});
            object["metadata"]["labels"] = json!({"a": "b"});
            object["metadata"]["finalizers"] = json!(["example.com/hold"]);
            object["spec"]["replicas"] = json!(5);
            object["status"] = json!({"replicas": 3});
            let updated = cluster.put(&format!("{path}/status"), &object).await;
            assert_eq!((updated.code, updated.at("/status/replicas")), (200, json!(3)), "{}", updated.text);
            assert_eq!(updated.at("/metadata/annotations"), json!({"a": "b"}), "{}", updated.text);
            assert_eq!(updated.at("/metadata/labels"), Value::Null, "{}", updated.text);
            assert_eq!(updated.at("/metadata/finalizers"), json!(["example.com/hold"]), "{}", updated.text);
            assert_eq!((updated.at("/spec/replicas"), updated.at("/metadata/generation")), (json!(1), json!(1)));
        }),
        case(111, |cluster| async move {
            cluster.make("a").await;
            for body in [json!({"gracePeriodSeconds": "5"}), json!({"dryRun": "All"}), json!({"preconditions": "x"})] {
                let refused = cluster.write("DELETE", &cluster.config_map("a"), "application/json", &body).await;
                refused.is(400, "BadRequest");
            }
            assert_eq!(cluster.get(&cluster.config_map("a")).await.code, 200);
        }),
        case(112, |cluster| async move {
            cluster.post(&cluster.widgets(), &widget("w", 1)).await;
            let path = format!("{}/w", cluster.widgets());
            let refused = cluster.put(&path, &widget("w", 2)).await;
            let said = "widgets.demo.example.com \"w\" is invalid: metadata.resourceVersion: Invalid value: 0: must be \
                specified for an update";
            assert_eq!(refused.at("/message"), said);
            cluster.make("a").await;
            let finalizers = |names: Value| json!({"metadata": {"finalizers": names}});
            cluster.merge(&cluster.config_map("a"), &finalizers(json!(["example.com/a"]))).await;
            cluster.delete(&cluster.config_map("a")).await;
            let more = finalizers(json!(["example.com/a", "example.com/c", "example.com/b"]));
            let refused = cluster.merge(&cluster.config_map("a"), &more).await;
            refused.is(422, "Invalid");
            let said = "ConfigMap \"a\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the \
                object is being deleted, found new finalizers []string{\"example.com/b\", \"example.com/c\"}";
            assert_eq!(refused.at("/message"), said);
            cluster.merge(&cluster.config_map("a"), &finalizers(Value::Null)).await;
        }),
        case(113, |cluster| async move {
            let mut object = super::cluster::config_map("large");
            object["binaryData"] = json!({});
            object["metadata"]["annotations"] = json!({});
            // More than a config map may hold, and less than a request body may.
            object["data"]["k"] = "x".repeat(1_100_000).into();
            let refused = cluster.post(&cluster.config_maps(), &object).await;
            refused.is(422, "Invalid");
            assert!(refused.text.contains("Too long: may not be more than 1048576 bytes"), "{}", refused.text);
            let mut large = widget("large", 1);
            large["spec"]["text"] = "x".repeat(1_600_000).into();
            let refused = cluster.post(&cluster.widgets(), &large).await;
            assert_eq!((refused.code, refused.at("/message")), (500, json!("etcdserver: request is too large")));
        }),
        case(114, |cluster| async move {
            let path = format!("/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers", cluster.namespace);
            let target = json!({"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"});
            let scaler = json!({"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2", "metadata": {"name": "h"},
                "spec": {"scaleTargetRef": target, "maxReplicas": 3}});
            let created = cluster.post(&path, &scaler).await;
            assert_eq!((created.code, created.at("/spec/minReplicas")), (201, json!(1)), "{}", created.text);
            let target = json!({"type": "Utilization", "averageUtilization": 80});
            let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
            assert_eq!(created.at("/spec/metrics"), json!([metric]), "{}", created.text);
            cluster.merge(&format!("{path}/h"), &json!({"spec": {"maxReplicas": 0}})).await.is(422, "Invalid");
        }),
        case(25, |cluster| async move {
            let mut object = super::cluster::config_map("a");
            object["what"] = json!(1);
            let strict = cluster.post(&format!("{}?fieldValidation=Strict", cluster.config_maps()), &object).await;
            strict.is(400, "BadRequest");
            let said = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \
                \"what\"";
            assert_eq!(strict.at("/message"), said);
            let warned = cluster.post(&format!("{}?fieldValidation=Warn", cluster.config_maps()), &object).await;
            assert_eq!((warned.code, warned.at("/what")), (201, Value::Null), "{}", warned.text);
            assert_eq!(warned.headers["warning"], "299 - \"unknown field \\\"what\\\"\"");
            object["metadata"]["name"] = json!("b");
            let ignored = cluster.post(&format!("{}?fieldValidation=Ignore", cluster.config_maps()), &object).await;
            assert_eq!((ignored.code, ignored.headers.contains_key("warning")), (201, false));
        }),
        case(91, |cluster| async move {
            const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
            // The kind in an envelope, then a ConfigMap with a name and one entry.
            let body = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x0d\x0a\x03\x0a\x01p\x12\x06\x0a\x01k\x12\x01v";
            let headers = [("content-type", PROTOBUF), ("accept", "application/json")];
            let created = cluster.send("POST", &cluster.config_maps(), &headers, body.to_vec()).await;
            assert_eq!((created.code, created.at("/data")), (201, json!({"k": "v"})), "{}", created.text);
            assert_eq!(created.at("/metadata/name"), "p");
            let broken = cluster.send("POST", &cluster.config_maps(), &headers, b"k8s\0\xff".to_vec()).await;
            broken.is(400, "BadRequest");
            let refused = cluster.get_as(&cluster.widgets(), PROTOBUF).await;
            assert_eq!(refused.code, 406);
        }),
    ]
}

/// Applies a configuration as the manager in `query`.
async fn apply(cluster: &Cluster, path: &str, query: &str, body: &Value) -> Answer {
    cluster.write("PATCH", &format!("{path}?{query}"), "application/apply-patch+yaml", body).await
}

fn patches() -> Vec<Case> {
    vec![
        case(68, |cluster| async move {
            const STRATEGIC: &str = "application/strategic-merge-patch+json";
            let path = format!("{}/d", deployments(&cluster));
            let mut object = deployment("d");
            let sidecar = json!({"name": "sidecar", "image": "s"});
            object["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap().push(sidecar);
            cluster.post(&deployments(&cluster), &object).await;
            let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "sidecar", "image": "t"}]}}}});
            let patched = cluster.write("PATCH", &path, STRATEGIC, &patch).await;
            assert_eq!(patched.code, 200, "{}", patched.text);
            let images = |answer: &Answer| {
                let containers = answer.at("/spec/template/spec/containers");
                let image = |container: &Value| container["image"].as_str().unwrap().to_owned();
                containers.as_array().unwrap().iter().map(image).collect::<Vec<_>>()
            };
            assert_eq!(images(&patched), ["i", "t"]);
            let gone =
                json!({"spec": {"template": {"spec": {"containers": [{"name": "sidecar", "$patch": "delete"}]}}}});
            assert_eq!(images(&cluster.write("PATCH", &path, STRATEGIC, &gone).await), ["i"]);
            cluster.post(&cluster.widgets(), &widget("w", 1)).await;
            let refused = cluster.write("PATCH", &format!("{}/w", cluster.widgets()), STRATEGIC, &json!({})).await;
            refused.is(415, "UnsupportedMediaType");
        }),
        case(69, |cluster| async move {
            let path = cluster.config_map("a");
            let body = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"k": "v"}});
            let first = apply(&cluster, &path, "fieldManager=one", &body).await;
            assert_eq!(first.code, 201, "{}", first.text);
            let entry = first.at("/metadata/managedFields/0");
            assert_eq!((&entry["manager"], &entry["operation"]), (&json!("one"), &json!("Apply")), "{}", first.text);
            assert_eq!(entry["fieldsV1"], json!({"f:data": {"f:k": {}}}));
            let again = apply(&cluster, &path, "fieldManager=one", &body).await;
            assert_eq!((again.code, again.version()), (200, first.version()));
            let mut other = body.clone();
            other["data"] = json!({"k": "w", "l": "1"});
            let refused = apply(&cluster, &path, "fieldManager=two", &other).await;
            refused.is(409, "Conflict");
            assert_eq!(refused.at("/message"), "Apply failed with 1 conflict: conflict with \"one\": .data.k");
            let cause =
                json!({"reason": "FieldManagerConflict", "message": "conflict with \"one\"", "field": ".data.k"});
            assert_eq!(refused.at("/details/causes"), json!([cause]));
            let forced = apply(&cluster, &path, "fieldManager=two&force=true", &other).await;
            assert_eq!((forced.code, forced.at("/data")), (200, json!({"k": "w", "l": "1"})), "{}", forced.text);
            let managers = forced.at("/metadata/managedFields");
            assert_eq!(managers.as_array().unwrap().len(), 1, "{}", forced.text);
            // A field that its only manager no longer applies is removed.
            other["data"] = json!({"k": "w"});
            let fewer = apply(&cluster, &path, "fieldManager=two", &other).await;
            assert_eq!(fewer.at("/data"), json!({"k": "w"}), "{}", fewer.text);
        }),
        case(70, |cluster| async move {
            let body = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}});
            let refused = apply(&cluster, &cluster.config_map("a"), "", &body).await;
            refused.is(422, "Invalid");
            let said =
                "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch";
            assert_eq!(refused.at("/message"), said);
        }),
    ]
}

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

fn tables() -> Vec<Case> {
    vec![
        case(8, |cluster| async move {
            let index = cluster.get("/openapi/v3").await.json();
            let url = index["paths"]["api/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
            let document = cluster.get(&url).await.json();
            let path = "/api/v1/namespaces/{namespace}/configmaps/{name}";
            let parameters = document["paths"][path]["patch"]["parameters"].as_array().unwrap();
            assert!(parameters.iter().any(|parameter| parameter["name"] == "fieldValidation"));
        }),
        case(52, |cluster| async move {
            cluster.make("a").await;
            let table = cluster.get_as(&cluster.own(""), TABLE).await;
            assert_eq!(table.at("/kind"), "Table", "{}", table.text);
            let columns = table.at("/columnDefinitions");
            let names: Vec<&str> =
                columns.as_array().unwrap().iter().filter_map(|column| column["name"].as_str()).collect();
            assert_eq!(names, ["Name", "Data", "Age"]);
            assert_eq!(table.at("/rows/0/object/kind"), "PartialObjectMetadata");
            assert_eq!((table.at("/rows/0/cells/0"), table.at("/rows/0/cells/1")), (json!("a"), json!(1)));
            let bare = cluster.get_as(&cluster.own("includeObject=None"), TABLE).await;
            assert_eq!(bare.at("/rows/0/object"), Value::Null, "{}", bare.text);
            let whole = cluster.get_as(&cluster.own("includeObject=Object"), TABLE).await;
            assert_eq!(whole.at("/rows/0/object/kind"), "ConfigMap", "{}", whole.text);
            let refused = cluster.get_as(&cluster.own("includeObject=All"), TABLE).await;
            assert_eq!(refused.code, 400, "{}", refused.text);
        }),
        case(89, |cluster| async move {
            let start = cluster.now().await;
            cluster.make("a").await;
            cluster.make("b").await;
            let path = cluster.own(&format!("watch=1&resourceVersion={start}&timeoutSeconds=1"));
            let mut watch = cluster.watch_as(&path, &[("accept", TABLE)]).await;
            let (first, second) = (watch.event().await, watch.event().await);
            assert_eq!((&first["type"], &first["object"]["kind"]), (&json!("ADDED"), &json!("Table")), "{first}");
            assert!(first["object"]["columnDefinitions"].is_array(), "{first}");
            assert!(second["object"]["columnDefinitions"].is_null(), "{second}");
            assert_eq!(second["object"]["rows"].as_array().unwrap().len(), 1);
        }),
    ]
}
