//! The list of missing features in the crate's documentation is correct: each of them is missing.

use crate::support::*;
use kube_embedded_apiserver::ApiServer;
use serde_json::{Value, json};

/// Returns the list from the documentation.
fn listed() -> Vec<String> {
    let text = include_str!("../../src/lib.rs");
    let (_, list) = text.split_once("# What is missing against kube-apiserver\n").expect("there is a list");
    let lines = list.lines().map_while(|line| line.strip_prefix("//!").map(str::trim));
    lines.filter_map(|line| line.strip_prefix("- ")).map(str::to_owned).collect()
}

async fn code(server: &ApiServer, method: &str, path: &str, body: &Value) -> u16 {
    send(server, request(method, path, Some(body))).await.code
}

fn definition(schema: &Value, conversion: &Value) -> Value {
    json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": "gears.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "gears", "kind": "Gear"}, "conversion": conversion,
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}})
}

#[tokio::test(start_paused = true)]
async fn every_feature_that_is_listed_as_missing_is_missing() {
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let server = server();
    let pod = |spec: Value| json!({"metadata": {"name": "p"}, "spec": spec});
    let container = json!({"name": "c", "image": "i"});
    server.create("pods", Some("default"), pod(json!({"containers": [container]}))).unwrap();
    let found = [
        (
            "Every kind that is not in",
            code(&server, "GET", "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions", &Value::Null).await == 404,
        ),
        ("`ValidatingAdmissionPolicy`", {
            let all = json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]);
            let never = json!({"matchConstraints": {"resourceRules": all}, "validations": [{"expression": "false"}]});
            let policies = "validatingadmissionpolicies.admissionregistration.k8s.io";
            server.create(policies, None, json!({"metadata": {"name": "never"}, "spec": never})).unwrap();
            let binding = json!({"policyName": "never", "validationActions": ["Deny"]});
            let bindings = "validatingadmissionpolicybindings.admissionregistration.k8s.io";
            server.create(bindings, None, json!({"metadata": {"name": "never"}, "spec": binding})).unwrap();
            post(&server, CONFIG_MAPS, &config_map("allowed")).await.code == 201
        }),
        // A nonsensical probe, which kube-apiserver refuses.
        ("The validation of built-in kinds is a short list", {
            let odd = json!({"containers": [{"name": "c", "image": "i", "lifecycle": {"preStop": {"sleep": {"seconds": -5}}}}]});
            let mut object = pod(odd);
            object["metadata"]["name"] = json!("odd");
            code(&server, "POST", "/api/v1/namespaces/default/pods", &object).await == 201
        }),
        ("Warnings about objects that are accepted", {
            let ports = json!([{"containerPort": 1, "name": "a"}]);
            let twice =
                json!([{"name": "c", "image": "i", "ports": ports}, {"name": "d", "image": "i", "ports": ports}]);
            let object = json!({"metadata": {"name": "twice"}, "spec": {"containers": twice}});
            let answer = post(&server, "/api/v1/namespaces/default/pods", &object).await;
            answer.code == 201 && !answer.headers.contains_key("warning")
        }),
        ("Admission plugins", {
            let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "0"}}});
            post(&server, "/api/v1/namespaces/default/resourcequotas", &quota).await;
            post(&server, CONFIG_MAPS, &config_map("beyond")).await.code == 201
        }),
        ("`pods/log`", {
            let mut missing = true;
            for part in ["log", "exec", "attach", "portforward", "resize", "proxy"] {
                let path = format!("/api/v1/namespaces/default/pods/p/{part}");
                missing &= code(&server, "GET", &path, &Value::Null).await == 404;
            }
            missing
        }),
        ("Webhooks on loopback addresses", {
            let rules =
                json!([{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]);
            let webhook = json!({"name": "w.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"}, "rules": rules,
                "sideEffects": "None", "admissionReviewVersions": ["v1"]});
            let configuration = json!({"metadata": {"name": "w"}, "webhooks": [webhook]});
            server.create("validatingwebhookconfigurations", None, configuration).unwrap();
            let direct = server.create("configmaps", Some("default"), config_map("direct")).is_ok();
            server.delete("validatingwebhookconfigurations", None, "w").unwrap();
            direct
        }),
        ("Rules in CEL", {
            let rule = json!({"rule": "semver('1.0.0').major() == 1"});
            let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-validations": [rule]}}});
            code(&server, "POST", DEFINITIONS, &definition(&schema, &json!({"strategy": "None"}))).await == 422
        }),
        ("Answers in protobuf or CBOR, OpenAPI v2", {
            let read = async |accept: &str| {
                let mut request = request("GET", CONFIG_MAPS, None);
                request.headers_mut().insert("accept", accept.parse().unwrap());
                send(&server, request).await.code
            };
            let codes = (read("application/vnd.kubernetes.protobuf").await, read("application/cbor").await);
            codes == (406, 406) && get(&server, "/openapi/v2").await.code == 404
        }),
        ("Objects whose JSON is nested deeper than 100 levels", {
            let deep = |levels: usize| {
                let spec = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
                format!(
                    r#"{{"kind":"Widget","apiVersion":"demo.example.com/v1","metadata":{{"name":"d"}},"spec":{spec}}}"#
                )
            };
            let path = "/apis/demo.example.com/v1/namespaces/default/widgets?dryRun=All";
            let create = async |body: String| send_as(&server, "POST", path, "application/json", &body).await.code;
            (create(deep(99)).await, create(deep(100)).await) == (201, 400)
        }),
        ("Services have IPv4 addresses alone", {
            let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "ipFamilies": ["IPv6"]}});
            post(&server, "/api/v1/namespaces/default/services", &service).await.code != 201
        }),
    ];
    let listed = listed();
    for (words, missing) in found {
        assert!(missing, "{words} is not missing");
        assert!(listed.iter().any(|line| line.starts_with(words)), "{words} is not on the list: {listed:#?}");
    }
    assert_eq!(listed.len(), found.len(), "every line of the list is tested: {listed:#?}");
}
