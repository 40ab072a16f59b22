use crate::support::*;
use kube_embedded_apiserver::ApiServer;
use serde_json::{Value, json};

const WIDGETS: &str = "/apis/demo.example.com/v1/namespaces/default/widgets";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn widget(size: i64) -> Value {
    json!({"kind": "Widget", "apiVersion": "demo.example.com/v1", "metadata": {"name": "w"},
        "spec": {"size": size, "replicas": 1}, "status": {"ready": true}})
}

async fn operations(server: &ApiServer, path: &str, patch: Value) -> Answer {
    send_as(server, "PATCH", path, "application/json-patch+json", &patch.to_string()).await
}

#[tokio::test(start_paused = true)]
async fn a_merge_patch_sets_and_removes() {
    let server = server();
    let first = put_config_map(&server, "a");
    let path = format!("{CONFIG_MAPS}/a");
    let patched = merge(&server, &path, &json!({"data": {"k": null, "l": "1"}})).await;
    assert_eq!((patched.code, &patched.json()["data"]), (200, &json!({"l": "1"})));
    assert_eq!(version(&patched.json()), first + 1);
    let again = merge(&server, &path, &json!({"data": {"l": "1"}})).await;
    assert_eq!(version(&again.json()), first + 1);
    let stale = merge(&server, &path, &json!({"metadata": {"resourceVersion": first.to_string()}})).await;
    assert_eq!(stale.code, 409);
    assert_eq!(merge(&server, &path, &json!({"metadata": {"name": "b"}})).await.code, 400);
    assert_eq!(merge(&server, &path, &json!({"metadata": {"annotations": {"a": [1]}}})).await.code, 422);
    assert_eq!(merge(&server, &format!("{CONFIG_MAPS}/zzz"), &json!({})).await.code, 404);
    assert_eq!(merge(&server, &path, &json!([1])).await.code, 400);
}

#[tokio::test(start_paused = true)]
async fn a_json_patch_is_all_or_nothing() {
    let server = server();
    put_config_map(&server, "a");
    let path = format!("{CONFIG_MAPS}/a");
    let test = |value: &str| json!([{"op": "test", "path": "/data/k", "value": value}, {"op": "add", "path": "/data/l", "value": "1"}]);
    let failed = operations(&server, &path, test("other")).await;
    assert_eq!((failed.code, &failed.json()["reason"]), (422, &json!("Invalid")));
    let patched = operations(&server, &path, test("v")).await;
    assert_eq!(patched.json()["data"], json!({"k": "v", "l": "1"}));
    assert_eq!(operations(&server, &path, json!([{"op": "remove", "path": "/nowhere/x"}])).await.code, 422);
    assert_eq!(operations(&server, &path, json!({"not": "a list"})).await.code, 400);
    let many: Vec<_> = (0..10_001).map(|_| json!({"op": "test", "path": "/data/k", "value": "v"})).collect();
    assert_eq!(operations(&server, &path, json!(many)).await.code, 413);
}

#[tokio::test(start_paused = true)]
async fn a_test_for_null_succeeds_for_missing_fields_and_empty_lists() {
    let server = server();
    put_config_map(&server, "a");
    let path = format!("{CONFIG_MAPS}/a");
    let add = json!([
        {"op": "test", "path": "/metadata/finalizers", "value": null},
        {"op": "add", "path": "/metadata/finalizers", "value": ["x.io/y"]},
    ]);
    assert_eq!(operations(&server, &path, add.clone()).await.json()["metadata"]["finalizers"], json!(["x.io/y"]));
    assert_eq!(operations(&server, &path, add.clone()).await.code, 422);
    let removed = operations(&server, &path, json!([{"op": "remove", "path": "/metadata/finalizers/0"}])).await;
    assert_eq!(removed.json()["metadata"].get("finalizers"), None);
    assert_eq!(operations(&server, &path, add).await.code, 200);
    let deep = json!([{"op": "test", "path": "/metadata/nothing/here", "value": null}]);
    assert_eq!(operations(&server, &path, deep).await.code, 422);
}

#[tokio::test(start_paused = true)]
async fn unknown_patch_types_are_refused() {
    let server = server();
    put_config_map(&server, "a");
    post(&server, WIDGETS, &widget(1)).await;
    for (path, media_type, said) in [
        (format!("{WIDGETS}/w"), "application/strategic-merge-patch+json", "unknown format"),
        (format!("{CONFIG_MAPS}/a"), "application/apply-patch+cbor", "application/merge-patch+json"),
        (format!("{CONFIG_MAPS}/a"), "text/csv", "unknown format"),
    ] {
        let refused = send_as(&server, "PATCH", &path, media_type, "{}").await;
        assert_eq!(refused.code, 415);
        assert!(
            refused.text.contains(said) && refused.text.contains("application/merge-patch+json"),
            "{}",
            refused.text
        );
    }
    let path = format!("{CONFIG_MAPS}/a?force=true");
    let forced = send_as(&server, "PATCH", &path, "application/merge-patch+json", "{}").await;
    assert_eq!((forced.code, &forced.json()["details"]["causes"][0]["field"]), (422, &json!("force")));
}

#[tokio::test(start_paused = true)]
async fn status_and_spec_are_written_through_separate_paths() {
    let server = server();
    let created = post(&server, WIDGETS, &widget(1)).await.json();
    assert_eq!((created.get("status"), &created["metadata"]["generation"]), (None, &json!(1)));
    let mut changed = widget(5);
    changed["metadata"]["labels"] = json!({"a": "b"});
    changed["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    let status = put(&server, &format!("{WIDGETS}/w/status"), &changed).await.json();
    assert_eq!(status["status"], json!({"ready": true}));
    assert_eq!((&status["spec"]["size"], &status["metadata"]["generation"]), (&json!(1), &json!(1)));
    assert_eq!(status["metadata"].get("labels"), None);
    let mut main = status.clone();
    main["spec"]["size"] = json!(7);
    main["status"]["ready"] = json!(false);
    let main = put(&server, &format!("{WIDGETS}/w"), &main).await.json();
    assert_eq!((&main["spec"]["size"], &main["status"]["ready"]), (&json!(7), &json!(true)));
    assert_eq!(main["metadata"]["generation"], 2);
    let patched = merge(&server, &format!("{WIDGETS}/w/status"), &json!({"status": {"ready": null}})).await;
    assert_eq!(patched.json()["status"], json!({}));
    assert_eq!(get(&server, &format!("{WIDGETS}/w/status")).await.json(), patched.json());
    let unconditional = put(&server, &format!("{WIDGETS}/w"), &widget(1)).await;
    assert_eq!((unconditional.code, unconditional.text.contains("must be specified for an update")), (422, true));
}

#[tokio::test(start_paused = true)]
async fn scale_reads_and_changes_the_replicas_of_any_kind() {
    let server = server();
    post(&server, WIDGETS, &widget(1)).await;
    let template = json!({"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({"metadata": {"name": "d"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "d"}}, "template": template}});
    post(&server, DEPLOYMENTS, &deployment).await;
    let scale = get(&server, &format!("{DEPLOYMENTS}/d/scale")).await.json();
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(2)));
    assert_eq!(scale["status"], json!({"replicas": 0, "selector": "app=d"}));
    let patched = merge(&server, &format!("{WIDGETS}/w/scale"), &json!({"spec": {"replicas": 3}})).await;
    assert_eq!((patched.code, &patched.json()["spec"]["replicas"]), (200, &json!(3)));
    let parent = get(&server, &format!("{WIDGETS}/w")).await.json();
    assert_eq!((&parent["spec"]["replicas"], &parent["metadata"]["generation"]), (&json!(3), &json!(2)));
    let mut stale = scale.clone();
    stale["metadata"]["resourceVersion"] = json!("1");
    assert_eq!(put(&server, &format!("{DEPLOYMENTS}/d/scale"), &stale).await.code, 409);
    let mut negative = scale;
    negative["spec"]["replicas"] = json!(-1);
    assert_eq!(put(&server, &format!("{DEPLOYMENTS}/d/scale"), &negative).await.code, 422);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_returns_the_result_and_writes_nothing() {
    let server = server();
    let stored = put_config_map(&server, "a");
    let created = post(&server, &format!("{CONFIG_MAPS}?dryRun=All"), &config_map("b")).await;
    assert_eq!((created.code, created.json()["metadata"].get("resourceVersion")), (201, None));
    assert!(created.json()["metadata"]["uid"].is_string());
    let patched = merge(&server, &format!("{CONFIG_MAPS}/a?dryRun=All"), &json!({"data": {"k": "w"}})).await.json();
    assert_eq!((&patched["data"]["k"], version(&patched)), (&json!("w"), stored));
    assert_eq!(delete(&server, &format!("{CONFIG_MAPS}/a?dryRun=All")).await.code, 200);
    assert_eq!(server.revision(), stored);
    assert_eq!(server.get("configmaps", Some("default"), "a").unwrap()["data"]["k"], "v");
    let refused = post(&server, &format!("{CONFIG_MAPS}?dryRun=Maybe"), &config_map("b")).await;
    assert_eq!((refused.code, &refused.json()["details"]["causes"][0]["field"]), (422, &json!("dryRun")));
}

#[tokio::test(start_paused = true)]
async fn bodies_may_be_yaml_and_other_formats_are_refused() {
    let server = server();
    let yaml = "kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: y\ndata:\n  k: v\n";
    let created = send_as(&server, "POST", CONFIG_MAPS, "application/yaml", yaml).await;
    assert_eq!(created.code, 201, "{}", created.text);
    assert_eq!(send_as(&server, "POST", CONFIG_MAPS, "application/yaml", "a: [").await.code, 400);
    for (media_type, said) in [("application/cbor", "CBOR"), ("text/csv", "unknown format")] {
        let refused = send_as(&server, "POST", CONFIG_MAPS, media_type, "x").await;
        assert_eq!(refused.code, 415);
        assert!(refused.text.contains(said), "{}", refused.text);
    }
}

#[tokio::test(start_paused = true)]
async fn some_kinds_are_created_by_an_update_and_need_its_version() {
    let server = server();
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let lease = json!({"metadata": {"name": "l"}, "spec": {"renewTime": "2026-08-20T18:59:46.000001Z"}});
    let created = put(&server, path, &lease).await;
    assert_eq!((created.code, &created.json()["spec"]["renewTime"]), (201, &lease["spec"]["renewTime"]));
    assert_eq!(put(&server, path, &lease).await.code, 422);
    assert_eq!(put(&server, path, &created.json()).await.code, 200);
}

/// The longest time of a patch that visits an object once or twice.
const BRIEF: std::time::Duration = std::time::Duration::from_secs(3);

/// Returns true if one of ten attempts is fast enough. On a busy machine some attempts may be slow.
async fn is_brief(attempt: impl AsyncFn(usize)) -> bool {
    for number in 0..10 {
        let started = tokio::time::Instant::now();
        attempt(number).await;
        if started.elapsed() < BRIEF {
            return true;
        }
    }
    false
}

#[tokio::test]
async fn thousands_of_moves_of_a_large_value_are_fast() {
    const BOUNDS: [usize; 2] = [0, 60];
    let server = server();
    let large: Vec<u8> = vec![0; 200_000];
    for depth in BOUNDS {
        let deep = (0..depth).fold(json!({}), |inner, _| json!({"d": inner}));
        let name = format!("w{depth}");
        let spec = json!({"large": large, "deep": deep});
        let widget = json!({"metadata": {"name": name}, "spec": spec});
        server.put_as_is("widgets", Some("default"), widget).unwrap();
        // Moves to the deepest place and back. The known upper bound of the depth soon becomes too high.
        let far = format!("/spec/deep{}/x", "/d".repeat(depth));
        let moves: Vec<Value> = (0..5_000)
            .flat_map(|_| [("/spec/large", far.as_str()), (far.as_str(), "/spec/large")])
            .map(|(from, path)| json!({"op": "move", "from": from, "path": path}))
            .collect();
        let moves = Value::from(moves).to_string();
        let path = format!("/apis/demo.example.com/v1/namespaces/default/widgets/{name}");
        let patch = async |_| {
            let patched = send_as(&server, "PATCH", &path, "application/json-patch+json", &moves).await;
            assert_eq!(patched.code, 200, "{}", patched.text);
        };
        assert!(is_brief(patch).await, "{depth} deep");
    }
}

#[tokio::test(start_paused = true)]
async fn nested_moves_and_copies_fail_before_the_stack_overflows() {
    let server = server();
    put_config_map(&server, "a");
    let path = format!("{CONFIG_MAPS}/a");
    let begun = json!({"op": "add", "path": "/x", "value": {}});
    let deeper = [
        json!({"op": "add", "path": "/y", "value": {}}),
        json!({"op": "move", "from": "/x", "path": "/y/x"}),
        json!({"op": "move", "from": "/y", "path": "/x"}),
    ];
    let operations: Vec<Value> = std::iter::once(begun).chain((0..3_000).flat_map(|_| deeper.clone())).collect();
    let refused =
        send_as(&server, "PATCH", &path, "application/json-patch+json", &Value::from(operations).to_string()).await;
    assert_eq!(refused.code, 422, "{}", refused.text);
    let doubled: Vec<Value> =
        (0..40).map(|index| json!({"op": "copy", "from": "", "path": format!("/c{index}")})).collect();
    let refused =
        send_as(&server, "PATCH", &path, "application/json-patch+json", &Value::from(doubled).to_string()).await;
    assert!(matches!(refused.code, 413 | 422), "{} {}", refused.code, refused.text);
}

#[tokio::test]
async fn tens_of_thousands_of_finalizers_do_not_block_the_server() {
    let server = server();
    let mut held = config_map("a");
    held["metadata"]["finalizers"] = (0..40_000).map(|index| format!("x.io/f{index}")).collect();
    server.create("configmaps", Some("default"), held).unwrap();
    server.delete("configmaps", Some("default"), "a").unwrap();
    let patch = async |number: usize| {
        let data = json!({"data": {"k": number.to_string()}});
        assert_eq!(merge(&server, &format!("{CONFIG_MAPS}/a"), &data).await.code, 200);
    };
    assert!(is_brief(patch).await);
}

/// Applies a node or a cluster-scoped custom object that names a namespace, and checks that the server never stores it.
async fn check_namespace_is_dropped(server: &ApiServer, path: &str, body: Value) {
    let apply = async |path: &str, label: &str| {
        let mut body = body.clone();
        body["metadata"]["namespace"] = "default".into();
        body["metadata"]["labels"] = json!({"round": label});
        body["status"] = json!({"phase": label});
        let path = format!("{path}?fieldManager=m&force=true");
        let answer = send_as(server, "PATCH", &path, "application/apply-patch+yaml", &body.to_string()).await;
        assert!(answer.code < 300, "{path}: {}", answer.text);
        assert_eq!(answer.json()["metadata"].get("namespace"), None, "{path}: the answer");
        let stored = get(server, path.split_once('?').unwrap().0.trim_end_matches("/status")).await.json();
        assert_eq!(stored["metadata"].get("namespace"), None, "{path}: the stored object");
    };
    apply(path, "create").await;
    apply(path, "change").await;
    apply(&format!("{path}/status"), "status").await;
}

#[tokio::test(start_paused = true)]
async fn apply_never_stores_a_namespace_on_a_cluster_scoped_object() {
    let server = server();
    let node = json!({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}});
    check_namespace_is_dropped(&server, "/api/v1/nodes/n", node).await;
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({"metadata": {"name": "planets.demo.example.org"}, "spec": {"group": "demo.example.org",
        "scope": "Cluster", "names": {"plural": "planets", "kind": "Planet"}, "versions": [{"name": "v1", "served": true,
        "storage": true, "schema": schema, "subresources": {"status": {}}}]}});
    server.create("customresourcedefinitions", None, definition).unwrap();
    let planet = json!({"kind": "Planet", "apiVersion": "demo.example.org/v1", "metadata": {"name": "p"}});
    check_namespace_is_dropped(&server, "/apis/demo.example.org/v1/planets/p", planet).await;
}

#[tokio::test(start_paused = true)]
async fn apply_to_another_namespace_than_that_of_the_path_is_refused() {
    let server = server();
    let mut map = config_map("a");
    map["metadata"]["namespace"] = "kube-system".into();
    let path = format!("{CONFIG_MAPS}/a?fieldManager=m");
    for code in [400, 400] {
        let refused = send_as(&server, "PATCH", &path, "application/apply-patch+yaml", &map.to_string()).await;
        assert_eq!(refused.code, code, "{}", refused.text);
        server.create("configmaps", Some("default"), config_map("a")).ok();
    }
}
