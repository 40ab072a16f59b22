//! `informer get`.

use kube_embedded_apiserver::{ApiServer, HttpServer};
use serde_json::{Value, json};

use crate::command::{listen, put, run, serve, text};
use crate::snapshot::check;

/// A server whose objects are three days old, so that the age column is known.
async fn aged(name: &str) -> (ApiServer, HttpServer, String) {
    let server = ApiServer::new();
    server.set_clock_skew(-(3 * 24 * 60 + 30) * 60);
    fill(&server);
    let (http, kubeconfig) = listen(&server, name).await;
    (server, http, kubeconfig)
}

fn fill(server: &ApiServer) {
    let pod = |name: &str, node: &str, ready: bool, restarts: u64| {
        json!({
            "metadata": {"name": name, "labels": {"app": "shop"}},
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "shop:1"}]},
            "status": {"phase": "Running", "podIP": "10.0.0.7", "containerStatuses": [
                {"name": "main", "image": "shop:1", "imageID": "", "ready": ready, "restartCount": restarts,
                 "state": if ready { json!({"running": {}}) } else { json!({"waiting": {"reason": "CrashLoopBackOff"}}) }},
            ]},
        })
    };
    server.create("pods", Some("web"), pod("shop-1", "worker-7", true, 0)).unwrap();
    server.create("pods", Some("web"), pod("shop-2", "worker-8", false, 3)).unwrap();
    server.create("pods", Some("back"), pod("queue", "worker-7", true, 1)).unwrap();
    let deployment = json!({
        "metadata": {"name": "shop"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "shop"}}, "template": {
            "metadata": {"labels": {"app": "shop"}}, "spec": {"containers": [{"name": "main", "image": "shop:1"}]}}},
        "status": {"replicas": 2, "readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1},
    });
    server.create("deployments.apps", Some("web"), deployment).unwrap();
    let service = json!({
        "metadata": {"name": "shop"},
        "spec": {"clusterIP": "10.0.0.10", "selector": {"app": "shop"}, "ports": [{"port": 80}]},
    });
    server.create("services", Some("web"), service).unwrap();
    let secret = json!({"metadata": {"name": "password"}, "data": {"password": "c2VzYW1l"}});
    server.create("secrets", Some("web"), secret).unwrap();
    let node = json!({"metadata": {"name": "worker-7"}, "status": {
        "conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"architecture": "", "bootID": "",
        "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "", "kubeletVersion": "v1.36.0",
        "machineID": "", "operatingSystem": "", "osImage": "", "systemUUID": ""}}});
    server.create("nodes", None, node).unwrap();
    server.create("limitranges", Some("web"), json!({"metadata": {"name": "limits"}, "spec": {"limits": []}})).unwrap();
}

fn gadgets(server: &ApiServer) {
    let definition = json!({
        "metadata": {"name": "gadgets.shop.example.com"},
        "spec": {
            "group": "shop.example.com", "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "shortNames": ["ga"]},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
                    {"name": "Colour", "type": "string", "jsonPath": ".spec.colour", "priority": 1},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ]}],
        },
    });
    server.create("customresourcedefinitions.apiextensions.k8s.io", None, definition).unwrap();
    let gadget = json!({"apiVersion": "shop.example.com/v1", "kind": "Gadget", "metadata": {"name": "a"},
        "spec": {"size": 3, "colour": "red"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    server.create("gadgets.shop.example.com", Some("web"), gadget).unwrap();
}

#[tokio::test]
async fn tables_have_the_columns_of_their_kind() {
    let (server, _http, kubeconfig) = aged("tables").await;
    gadgets(&server);
    let of = |kind: &'static str, more: &[&'static str]| {
        let arguments = [&["get", kind, "--kubeconfig", &kubeconfig], more].concat();
        (format!("get-{kind}{}", more.concat().replace(['-', '='], "").to_lowercase()), arguments)
    };
    for (name, arguments) in [
        of("pods", &["-n", "web"]),
        of("pods", &["-A"]),
        of("pods", &["-A", "-o", "wide"]),
        of("po", &["-n", "web", "-n", "back"]),
        of("deploy", &["-n", "web"]),
        of("svc", &["-n", "web", "-o", "wide"]),
        of("nodes", &[]),
        of("secrets", &["-n", "web"]),
        of("limitranges", &["-n", "web"]),
        of("gadgets", &["-n", "web"]),
        of("ga", &["-A", "-o", "wide"]),
        of("configmaps", &["-n", "web"]),
    ] {
        check(&name, &arguments, &[(&kubeconfig, "FILE")]).await;
    }
}

#[tokio::test]
async fn names_selectors_and_an_index_select_objects() {
    let (_server, _http, kubeconfig) = aged("chosen").await;
    let shown = async |arguments: &[&str]| {
        let outcome = run(&[&["get"], arguments, &["-o", "name", "--kubeconfig", &kubeconfig]].concat()).await;
        assert_eq!((outcome.status.code(), text(&outcome.stderr)), (Some(0), ""), "{arguments:?}");
        text(&outcome.stdout).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(shown(&["pods", "-n", "web"]).await, ["pod/shop-1", "pod/shop-2"]);
    assert_eq!(shown(&["pods", "-A"]).await, ["pod/queue", "pod/shop-1", "pod/shop-2"]);
    assert_eq!(shown(&["pods", "shop-2", "-n", "web"]).await, ["pod/shop-2"]);
    assert_eq!(shown(&["pod/shop-2", "-n", "web"]).await, ["pod/shop-2"]);
    assert_eq!(shown(&["deploy", "-A"]).await, ["deployment.apps/shop"]);
    assert_eq!(shown(&["pods", "-A", "--index", "spec.nodeName=worker-7"]).await, ["pod/queue", "pod/shop-1"]);
    assert_eq!(shown(&["pods", "-A", "--index", "/spec/nodeName=worker-7"]).await, ["pod/queue", "pod/shop-1"]);
    assert_eq!(shown(&["pods", "-A", "--index", "status.containerStatuses.restartCount=3"]).await, ["pod/shop-2"]);
    assert_eq!(shown(&["pods", "-A", "--index", "spec.nodeName=nowhere"]).await, [] as [&str; 0]);
    assert_eq!(shown(&["pods", "-A", "-l", "app!=shop"]).await, [] as [&str; 0]);
    assert_eq!(shown(&["pods", "-A", "--field-selector", "metadata.namespace=back"]).await, ["pod/queue"]);
}

#[tokio::test]
async fn several_kinds_are_one_table_each_and_one_list() {
    let (_server, _http, kubeconfig) = aged("several").await;
    let replacements: [(&str, &str); 1] = [(&kubeconfig, "FILE")];
    let of = |more: &[&'static str]| {
        [&["get", "pods,svc,configmaps", "-n", "web", "--kubeconfig", &kubeconfig], more].concat()
    };
    check("get-several", &of(&[]), &replacements).await;
    check("get-several-names", &of(&["-o", "name"]), &replacements).await;
    let outcome = run(&of(&["-o", "json"])).await;
    assert_eq!((outcome.status.code(), text(&outcome.stderr)), (Some(0), ""));
    let list: Value = serde_json::from_str(text(&outcome.stdout)).unwrap();
    let kinds: Vec<&str> =
        list["items"].as_array().unwrap().iter().map(|item| item["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["Pod", "Pod", "Service"]);
    let one = ["get", "deploy,svc", "shop", "-n", "web", "-o", "name", "--kubeconfig", &kubeconfig];
    check("get-several-one-name", &one, &replacements).await;
    let missing = ["get", "svc,pods", "shop", "-n", "web", "--kubeconfig", &kubeconfig];
    check("get-several-missing", &missing, &replacements).await;
}

#[tokio::test]
async fn a_missing_object_is_an_error() {
    let (_server, _http, kubeconfig) = aged("missing").await;
    let replacements: [(&str, &str); 1] = [(&kubeconfig, "FILE")];
    check("get-missing", &["get", "pods", "nope", "--kubeconfig", &kubeconfig], &replacements).await;
    check("get-missing-node", &["get", "node/nope", "-o", "json", "--kubeconfig", &kubeconfig], &replacements).await;
    check("get-missing-anywhere", &["get", "pods", "nope", "-A", "--kubeconfig", &kubeconfig], &replacements).await;
}

#[tokio::test]
async fn json_and_yaml_have_all_fields() {
    let (server, _http, kubeconfig) = aged("whole").await;
    let metadata = server.get("secrets", Some("web"), "password").unwrap()["metadata"].clone();
    let of = |member: &str| metadata[member].as_str().unwrap().to_owned();
    let (time, uid, version) = (of("creationTimestamp"), of("uid"), format!("{:?}", of("resourceVersion")));
    let replacements: [(&str, &str); 4] =
        [(&kubeconfig, "FILE"), (&time, "TIME"), (&uid, "UID"), (&version, "\"VERSION\"")];
    for output in ["json", "yaml"] {
        // Secrets are included: the user asked for their content.
        let one = ["get", "secret", "password", "-n", "web", "-o", output, "--kubeconfig", &kubeconfig];
        check(&format!("get-one-{output}"), &one, &replacements).await;
        let list = ["get", "secret", "-n", "web", "-o", output, "--kubeconfig", &kubeconfig];
        check(&format!("get-list-{output}"), &list, &replacements).await;
    }
    let none = ["get", "configmaps", "-n", "web", "-o", "json", "--kubeconfig", &kubeconfig];
    check("get-none-json", &none, &replacements).await;
}

#[tokio::test]
async fn a_list_has_all_objects_of_the_server() {
    let (server, _http, kubeconfig) = serve("everything").await;
    for number in 0..300 {
        put(&server, &format!("map-{number:03}"), "1");
    }
    let outcome = run(&["get", "cm", "-o", "json", "--kubeconfig", &kubeconfig]).await;
    assert_eq!((outcome.status.code(), text(&outcome.stderr)), (Some(0), ""));
    let list: Value = serde_json::from_str(text(&outcome.stdout)).unwrap();
    let (_, mut expected) = server.list("configmaps").unwrap();
    for object in &mut expected {
        object["metadata"].as_object_mut().unwrap().remove("managedFields");
    }
    assert_eq!(list["items"], Value::Array(expected));
}
