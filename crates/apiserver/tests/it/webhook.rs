//! Admission webhooks are called as kube-apiserver calls them.

use crate::support::*;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use kube_embedded_apiserver::{ApiServer, ApiServerBuilder};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// The requests that webhooks got: the path of the webhook, and the `request` of the review.
type Requests = Arc<Mutex<Vec<(String, Value)>>>;

/// Adds a service that answers each review with the members that `answer` returns for its path and request.
fn with_webhook(
    builder: ApiServerBuilder,
    answer: impl Fn(&str, &Value) -> Value + Clone + Send + Sync + 'static,
) -> (ApiServer, Requests) {
    let requests = Requests::default();
    let seen = requests.clone();
    let service = tower::service_fn(move |request: Request<Full<Bytes>>| {
        let (seen, answer) = (seen.clone(), answer.clone());
        async move {
            let path = request.uri().path().to_owned();
            let review: Value = serde_json::from_slice(&request.into_body().collect().await?.to_bytes()).unwrap();
            let mut response = answer(&path, &review["request"]);
            response["uid"] = review["request"]["uid"].clone();
            seen.lock().push((path, review["request"].clone()));
            let answer = json!({"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": response});
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(answer.to_string()))))
        }
    });
    (builder.webhook_service("system/webhook", service).build(), requests)
}

/// Returns a webhook for writes of config maps, with other members laid over it.
fn webhook(path: &str, more: Value) -> Value {
    let mut webhook = json!({
        "name": format!("{}.example.com", path.trim_start_matches('/')),
        "clientConfig": {"service": {"namespace": "system", "name": "webhook", "path": path}},
        "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    });
    for (member, value) in more.as_object().unwrap() {
        webhook[member] = value.clone();
    }
    webhook
}

async fn configure(server: &ApiServer, path: &str, name: &str, webhooks: &[Value]) {
    let made = post(server, path, &json!({"metadata": {"name": name}, "webhooks": webhooks})).await;
    assert_eq!(made.code, 201, "{}", made.text);
}

fn allowed() -> Value {
    json!({"allowed": true})
}

/// Returns an answer with a JSON patch.
fn patch(operations: Value) -> Value {
    json!({"allowed": true, "patchType": "JSONPatch", "patch": BASE64_STANDARD.encode(operations.to_string())})
}

fn names(requests: &Requests) -> Vec<String> {
    std::mem::take(&mut *requests.lock()).into_iter().map(|(path, _)| path).collect()
}

#[tokio::test]
async fn mutating_webhooks_patch_in_order_and_are_called_again_after_later_changes() {
    let (server, requests) = with_webhook(ApiServer::builder().seed(1), |path, request| match path {
        "/second" => patch(json!([{"op": "add", "path": "/data/second", "value": request["object"]["data"]["first"]}])),
        _ => patch(json!([{"op": "add", "path": "/data/first", "value": "1"}])),
    });
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    configure(&server, MUTATING, "b", &[webhook("/second", json!({}))]).await;
    configure(&server, MUTATING, "a", &[webhook("/first", again)]).await;
    let made = post(&server, CONFIG_MAPS, &config_map("a")).await;
    assert_eq!(made.code, 201, "{}", made.text);
    assert_eq!(made.json()["data"], json!({"k": "v", "first": "1", "second": "1"}));
    let stored = get(&server, &format!("{CONFIG_MAPS}/a")).await.json();
    assert_eq!(stored["data"], made.json()["data"]);
    assert_eq!(names(&requests), ["/first", "/second", "/first"]);
}

#[tokio::test]
async fn review_describes_the_write() {
    let (server, requests) = with_webhook(ApiServer::builder().seed(1), |_, _| allowed());
    configure(&server, MUTATING, "a", &[webhook("/mutate", json!({}))]).await;
    configure(&server, VALIDATING, "a", &[webhook("/validate", json!({}))]).await;
    post(&server, &format!("{CONFIG_MAPS}?fieldManager=me"), &config_map("a")).await;
    let path = format!("{CONFIG_MAPS}/a");
    merge(&server, &path, &json!({"data": {"k": "w"}})).await;
    delete(&server, &path).await;
    let seen = std::mem::take(&mut *requests.lock());
    let operations: Vec<_> =
        seen.iter().map(|(path, request)| format!("{} {path}", request["operation"].as_str().unwrap())).collect();
    let expected = ["CREATE /mutate", "CREATE /validate", "UPDATE /mutate", "UPDATE /validate"];
    assert_eq!(operations, [&expected[..], &["DELETE /mutate", "DELETE /validate"]].concat());
    let create = &seen[0].1;
    assert_eq!(create["kind"], json!({"group": "", "version": "v1", "kind": "ConfigMap"}));
    assert_eq!(create["resource"], json!({"group": "", "version": "v1", "resource": "configmaps"}));
    assert_eq!([&create["name"], &create["namespace"]], ["a", "default"]);
    assert_eq!(create["options"]["kind"], "CreateOptions");
    assert_eq!(create["options"]["fieldManager"], "me");
    assert_eq!(create["oldObject"], Value::Null);
    assert_eq!(create["object"]["metadata"]["uid"], Value::Null, "a mutating webhook sees no uid");
    assert!(seen[1].1["object"]["metadata"]["uid"].is_string(), "a validating webhook sees the uid");
    let update = &seen[2].1;
    assert_eq!([&update["oldObject"]["data"]["k"], &update["object"]["data"]["k"]], ["v", "w"]);
    assert_eq!(update["options"]["kind"], "UpdateOptions");
    let delete = &seen[4].1;
    assert_eq!([&delete["object"], &delete["oldObject"]["data"]["k"]], [&Value::Null, &json!("w")]);
}

#[tokio::test]
async fn refusal_reaches_the_client_with_its_code_reason_and_causes() {
    let (server, _) = with_webhook(ApiServer::builder().seed(1), |_, request| {
        match request["name"].as_str().unwrap() {
            "silent" => json!({"allowed": false}),
            "plain" => json!({"allowed": false, "status": {"message": "not here"}}),
            _ => json!({"allowed": false, "warnings": ["look out"], "status": {"code": 422, "reason": "Invalid",
            "message": "bad", "details": {"causes": [{"reason": "FieldValueInvalid", "field": "data", "message": "no"}]}}}),
        }
    });
    configure(&server, VALIDATING, "a", &[webhook("/validate", json!({}))]).await;
    let by = "admission webhook \"validate.example.com\" denied the request";
    for (name, code, reason, message) in [
        ("silent", 400, "", format!("{by} without explanation")),
        ("plain", 400, "", format!("{by}: not here")),
        ("full", 422, "Invalid", format!("{by}: bad")),
    ] {
        let refused = post(&server, CONFIG_MAPS, &config_map(name)).await;
        let status = refused.json();
        assert_eq!((refused.code, status["reason"].as_str().unwrap_or_default()), (code, reason), "{name}");
        assert_eq!(status["message"], message);
        if name == "full" {
            assert_eq!(status["details"]["causes"][0]["field"], "data");
            assert_eq!(refused.headers["warning"], "299 - \"look out\"");
        }
    }
    assert_eq!(get(&server, CONFIG_MAPS).await.names(), Vec::<String>::new());
}

#[tokio::test]
async fn failure_policy_decides_about_a_webhook_that_fails() {
    let (server, requests) = with_webhook(ApiServer::builder().seed(1), |path, _| match path {
        "/untyped" => json!({"allowed": true, "patch": BASE64_STANDARD.encode("[]")}),
        _ => allowed(),
    });
    let nowhere = json!({"service": {"namespace": "system", "name": "nowhere", "path": "/"}});
    let outside = json!({"url": "https://192.0.2.1/"});
    for (name, more, why) in [
        ("unknown", json!({"clientConfig": nowhere}), "service \"system/nowhere\" not found"),
        ("outside", json!({"clientConfig": outside}), "not a loopback address"),
        ("untyped", json!({}), "response.patchType=JSONPatch"),
    ] {
        configure(&server, MUTATING, name, &[webhook(&format!("/{name}"), more.clone())]).await;
        let refused = post(&server, CONFIG_MAPS, &config_map("a")).await;
        assert_eq!((refused.code, &refused.json()["reason"]), (500, &json!("InternalError")), "{}", refused.text);
        let message = refused.json()["message"].as_str().unwrap().to_owned();
        let start = format!("Internal error occurred: failed calling webhook \"{name}.example.com\": ");
        assert!(message.starts_with(&start) && message.contains(why), "{message}");
        let mut ignored = webhook(&format!("/{name}"), more);
        ignored["failurePolicy"] = "Ignore".into();
        delete(&server, &format!("{MUTATING}/{name}")).await;
        configure(&server, MUTATING, name, &[ignored]).await;
        assert_eq!(post(&server, CONFIG_MAPS, &config_map(name)).await.code, 201, "{name}");
        delete(&server, &format!("{MUTATING}/{name}")).await;
    }
    assert_eq!(names(&requests), ["/untyped"; 2]);
}

#[tokio::test]
async fn redirects_of_a_webhook_are_followed() {
    let service = tower::service_fn(async |request: Request<Full<Bytes>>| {
        if request.uri().path() == "/first" {
            return Ok(Response::builder()
                .status(307)
                .header("location", "/second?timeout=10s")
                .body(Full::default())
                .unwrap());
        }
        let path = request.uri().path().to_owned();
        let review: Value = serde_json::from_slice(&request.into_body().collect().await?.to_bytes()).unwrap();
        let response = json!({"uid": review["request"]["uid"], "allowed": false, "status": {"message": path}});
        let answer = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response});
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(answer.to_string()))))
    });
    let server = ApiServer::builder().seed(1).webhook_service("system/webhook", service).build();
    configure(&server, VALIDATING, "v", &[webhook("/first", json!({}))]).await;
    let refused = post(&server, CONFIG_MAPS, &config_map("a")).await;
    assert!(refused.text.contains("denied the request: /second"), "{}", refused.text);
}

#[tokio::test]
async fn silent_webhook_times_out() {
    let silent = tower::service_fn(async |_: Request<Full<Bytes>>| {
        std::future::pending::<()>().await;
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
    });
    let server = ApiServer::builder().webhook_service("system/webhook", silent).build();
    configure(&server, VALIDATING, "a", &[webhook("/validate", json!({"timeoutSeconds": 1}))]).await;
    let refused = post(&server, CONFIG_MAPS, &config_map("a")).await;
    assert_eq!(refused.code, 500);
    assert!(refused.text.contains("context deadline exceeded"), "{}", refused.text);
}

#[tokio::test]
async fn only_matching_writes_are_sent() {
    let (server, requests) = with_webhook(ApiServer::builder().seed(1), |_, _| allowed());
    let selected = |more: Value| webhook("/it", more);
    let labels = json!({"matchLabels": {"team": "a"}});
    let rule = |operation: &str, resource: &str, scope: &str| json!({"rules": [{"operations": [operation], "apiGroups": ["*"], "apiVersions": ["*"], "resources": [resource], "scope": scope}]});
    let condition = |expression: &str| json!({"matchConditions": [{"name": "c", "expression": expression}]});
    let labelled = json!({"metadata": {"name": "m", "labels": {"team": "a"}}});
    let plain = json!({"metadata": {"name": "m"}});
    let path = format!("{CONFIG_MAPS}/m");
    for (name, webhook, object, called) in [
        ("object selector", selected(json!({"objectSelector": labels})), &labelled, true),
        ("object selector", selected(json!({"objectSelector": labels})), &plain, false),
        ("namespace selector", selected(json!({"namespaceSelector": labels})), &plain, false),
        ("operation", selected(rule("UPDATE", "configmaps", "*")), &plain, false),
        ("all resources", selected(rule("CREATE", "*", "*")), &plain, true),
        ("subresources only", selected(rule("CREATE", "*/status", "*")), &plain, false),
        ("namespaced", selected(rule("CREATE", "*/*", "Namespaced")), &plain, true),
        ("cluster", selected(rule("CREATE", "*/*", "Cluster")), &plain, false),
        ("condition holds", selected(condition("object.metadata.name == 'm'")), &plain, true),
        ("condition fails", selected(condition("request.operation == 'DELETE'")), &plain, false),
    ] {
        configure(&server, VALIDATING, "a", &[webhook]).await;
        let made = post(&server, CONFIG_MAPS, object).await;
        assert_eq!(made.code, 201, "{name}: {}", made.text);
        assert_eq!(!names(&requests).is_empty(), called, "{name}");
        delete(&server, &format!("{VALIDATING}/a")).await;
        delete(&server, &path).await;
    }
    configure(&server, VALIDATING, "a", &[selected(condition("object.data.missing == '1'"))]).await;
    let refused = post(&server, CONFIG_MAPS, &plain).await;
    assert_eq!((refused.code, names(&requests).len()), (403, 0), "{}", refused.text);
}

#[tokio::test]
async fn dry_run_refuses_webhooks_with_side_effects() {
    let (server, requests) = with_webhook(ApiServer::builder().seed(1), |_, _| allowed());
    let dry = format!("{CONFIG_MAPS}?dryRun=All");
    configure(&server, VALIDATING, "a", &[webhook("/it", json!({"sideEffects": "Some"}))]).await;
    let refused = post(&server, &dry, &config_map("a")).await;
    assert_eq!(refused.code, 400);
    assert_eq!(refused.json()["message"], "admission webhook \"it.example.com\" does not support dry run");
    assert_eq!(names(&requests).len(), 0);
    delete(&server, &format!("{VALIDATING}/a")).await;
    configure(&server, VALIDATING, "a", &[webhook("/it", json!({}))]).await;
    assert_eq!(post(&server, &dry, &config_map("a")).await.code, 201);
    assert_eq!(requests.lock()[0].1["dryRun"], true);
}

#[tokio::test]
async fn webhook_may_use_the_server_and_direct_writes_call_none() {
    let known: Arc<std::sync::OnceLock<ApiServer>> = Arc::default();
    let itself = known.clone();
    let (server, requests) = with_webhook(ApiServer::builder().seed(1), move |_, request| {
        // A service is stored while its addresses are locked, so the webhook must have been called before.
        let server = itself.get().unwrap();
        let name = format!("of-{}", request["name"].as_str().unwrap());
        server
            .create("services", Some("default"), json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 1}]}}))
            .unwrap();
        allowed()
    });
    known.set(server.clone()).unwrap();
    let rules =
        json!([{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["services"]}]);
    configure(&server, VALIDATING, "a", &[webhook("/it", json!({"rules": rules}))]).await;
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}]}});
    let made = post(&server, "/api/v1/namespaces/default/services", &service).await;
    assert_eq!(made.code, 201, "{}", made.text);
    assert_eq!(names(&requests).len(), 1, "the direct write of the webhook itself calls no webhook");
    assert!(server.get("services", Some("default"), "of-s").is_ok());
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Returns a CRD of gears: v1, which is stored, has `spec.size`, and v2 has `spec.sizes`.
fn gears(conversion: Value) -> Value {
    let version = |name: &str, member: &str, of: Value| {
        let spec = json!({"type": "object", "properties": {member: of}});
        json!({"name": name, "served": true, "storage": name == "v1", "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}})
    };
    let sizes = json!({"type": "array", "items": {"type": "integer"}});
    json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": "gears.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "gears", "kind": "Gear"}, "conversion": conversion,
            "versions": [version("v1", "size", json!({"type": "integer"})), version("v2", "sizes", sizes)]}})
}

/// Converts gears between `size` and `sizes`.
fn convert_gear(mut gear: Value, to: &str) -> Value {
    let spec = gear["spec"].as_object_mut().unwrap();
    if to == "example.com/v2" {
        let size = spec.remove("size").unwrap();
        spec.insert("sizes".into(), json!([size]));
    } else {
        let sizes = spec.remove("sizes").unwrap();
        spec.insert("size".into(), sizes[0].clone());
    }
    gear["apiVersion"] = to.into();
    gear["metadata"]["labels"] = json!({"converted": "yes"});
    gear
}

#[tokio::test]
async fn conversion_webhook_converts_what_is_written_read_listed_and_watched() {
    let service = tower::service_fn(async |request: Request<Full<Bytes>>| {
        let review: Value = serde_json::from_slice(&request.into_body().collect().await?.to_bytes()).unwrap();
        let (request, to) = (&review["request"], review["request"]["desiredAPIVersion"].as_str().unwrap());
        let objects: Vec<Value> =
            request["objects"].as_array().unwrap().iter().map(|gear| convert_gear(gear.clone(), to)).collect();
        let result = match objects[0]["metadata"]["name"].as_str() {
            Some("bad") => json!({"status": "Failure", "message": "no such gear"}),
            _ => json!({"status": "Success"}),
        };
        let response = json!({"uid": request["uid"], "convertedObjects": objects, "result": result});
        let answer = json!({"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": response});
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(answer.to_string()))))
    });
    let server = ApiServer::builder().seed(1).webhook_service("system/webhook", service).build();
    let client = json!({"service": {"namespace": "system", "name": "webhook", "path": "/convert"}});
    let conversion =
        json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}});
    server.create("customresourcedefinitions", None, gears(conversion)).unwrap();
    let path = |version: &str| format!("/apis/example.com/{version}/namespaces/default/gears");
    let gear = |version: &str, name: &str, spec: Value| json!({"kind": "Gear", "apiVersion": format!("example.com/{version}"), "metadata": {"name": name}, "spec": spec});
    let start = server.revision();
    let mut watch = Watch::open(&server, &format!("{}?watch=1&resourceVersion={start}", path("v2"))).await;
    let made = post(&server, &path("v2"), &gear("v2", "a", json!({"sizes": [1, 2]}))).await;
    assert_eq!(made.code, 201, "{}", made.text);
    assert_eq!(made.json()["spec"]["sizes"], json!([1]), "the storage version keeps only one size");
    let stored = get(&server, &format!("{}/a", path("v1"))).await.json();
    assert_eq!((&stored["spec"], &stored["metadata"]["labels"]), (&json!({"size": 1}), &json!({"converted": "yes"})));
    let changed = merge(&server, &format!("{}/a", path("v1")), &json!({"spec": {"size": 5}})).await;
    assert_eq!(changed.code, 200, "{}", changed.text);
    let listed = get(&server, &path("v2")).await.json();
    assert_eq!(listed["items"][0]["spec"], json!({"sizes": [5]}));
    assert_eq!(listed["items"][0]["metadata"]["uid"], stored["metadata"]["uid"]);
    for (event, sizes) in [("ADDED", json!([1])), ("MODIFIED", json!([5]))] {
        let seen = watch.next().await;
        assert_eq!((&seen["type"], &seen["object"]["spec"]["sizes"]), (&json!(event), &sizes));
    }
    let refused = post(&server, &path("v2"), &gear("v2", "bad", json!({"sizes": [1]}))).await;
    assert_eq!(refused.code, 500);
    assert_eq!(refused.json()["message"], "conversion webhook for example.com/v2, Kind=Gear failed: no such gear");
    merge(&server, &format!("{}/a", path("v2")), &json!({"metadata": {"finalizers": ["example.com/f"]}})).await;
    delete(&server, &format!("{}/a", path("v2"))).await;
    let marked = get(&server, &format!("{}/a", path("v1"))).await.json();
    assert_eq!(marked["spec"], json!({"size": 5}), "a delete through another version changes only metadata");
    assert!(get(&server, &format!("{}/a", path("v2"))).await.json()["metadata"]["deletionTimestamp"].is_string());
}

#[tokio::test]
async fn an_object_is_converted_later_if_the_conversion_webhook_does_not_answer_at_first() {
    let is_up = Arc::new(AtomicBool::new(false));
    let up = is_up.clone();
    let service = tower::service_fn(move |request: Request<Full<Bytes>>| {
        let up = up.clone();
        async move {
            let review: Value = serde_json::from_slice(&request.into_body().collect().await?.to_bytes()).unwrap();
            let (request, to) = (&review["request"], review["request"]["desiredAPIVersion"].as_str().unwrap());
            let objects: Vec<Value> =
                request["objects"].as_array().unwrap().iter().map(|gear| convert_gear(gear.clone(), to)).collect();
            let response = json!({"uid": request["uid"], "convertedObjects": objects, "result": {"status": "Success"}});
            let answer = json!({"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": response});
            let code = if up.load(Ordering::SeqCst) { 200 } else { 503 };
            let answer = Response::builder().status(code).body(Full::new(Bytes::from(answer.to_string())));
            Ok::<_, Infallible>(answer.unwrap())
        }
    });
    let server = ApiServer::builder().seed(1).webhook_service("system/webhook", service).build();
    let client = json!({"service": {"namespace": "system", "name": "webhook", "path": "/convert"}});
    let conversion =
        json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}});
    server.create("customresourcedefinitions", None, gears(conversion)).unwrap();
    let path = |version: &str| format!("/apis/example.com/{version}/namespaces/default/gears");
    let start = server.revision();
    let from_start = format!("{}?watch=1&resourceVersion={start}", path("v2"));
    let mut open = Watch::open(&server, &from_start).await;
    let gear = json!({"kind": "Gear", "apiVersion": "example.com/v1", "metadata": {"name": "a"}, "spec": {"size": 3}});
    assert_eq!(post(&server, &path("v1"), &gear).await.code, 201);
    let failed = "conversion webhook for example.com/v1, Kind=Gear failed: ";
    for path in [format!("{}/a", path("v2")), path("v2"), from_start.clone()] {
        let answer = get(&server, &path).await;
        assert_eq!((answer.code, answer.text.contains(failed)), (500, true), "{path}: {}", answer.text);
    }
    let changed = merge(&server, &format!("{}/a", path("v2")), &json!({"metadata": {"labels": {"x": "y"}}})).await;
    assert_eq!(changed.code, 500, "{}", changed.text);
    assert_eq!(
        open.until_end().await,
        Vec::<Value>::new(),
        "an open watch ends, and shows no object that is not converted"
    );
    is_up.store(true, Ordering::SeqCst);
    assert_eq!(get(&server, &format!("{}/a", path("v2"))).await.json()["spec"], json!({"sizes": [3]}));
    assert_eq!(get(&server, &path("v2")).await.json()["items"][0]["spec"], json!({"sizes": [3]}));
    let mut watch = Watch::open(&server, &from_start).await;
    assert_eq!(watch.next().await["object"]["spec"], json!({"sizes": [3]}));
}

#[tokio::test]
async fn webhook_matches_other_versions_unless_the_match_is_exact() {
    let (server, requests) = with_webhook(ApiServer::builder().seed(1), |_, request| {
        assert_eq!(request["object"]["apiVersion"], "example.com/v1");
        assert_eq!([&request["kind"]["version"], &request["requestKind"]["version"]], ["v1", "v2"]);
        patch(json!([{"op": "add", "path": "/spec/size", "value": 7}]))
    });
    server.create("customresourcedefinitions", None, gears(json!({"strategy": "None"}))).unwrap();
    assert_eq!(get(&server, DEFINITIONS).await.code, 200);
    let rules = json!([{"operations": ["CREATE"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["gears"]}]);
    let path = "/apis/example.com/v2/namespaces/default/gears";
    for (policy, calls) in [("Exact", 0), ("Equivalent", 1)] {
        configure(&server, MUTATING, "a", &[webhook("/it", json!({"rules": rules, "matchPolicy": policy}))]).await;
        let name = policy.to_lowercase();
        let gear = json!({"kind": "Gear", "apiVersion": "example.com/v2", "metadata": {"name": name}, "spec": {}});
        let made = post(&server, path, &gear).await;
        assert_eq!((made.code, names(&requests).len()), (201, calls), "{policy}: {}", made.text);
        assert_eq!(made.json()["apiVersion"], "example.com/v2");
        delete(&server, &format!("{MUTATING}/a")).await;
    }
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn webhook_over_https_must_have_a_certificate_of_the_authority() {
    use kube_embedded_apiserver::Tls;
    let tls = Tls::generate().unwrap();
    // Another API server stands in for a webhook server. It refuses the path, so the certificate was accepted.
    let other = ApiServer::new().serve_tls("127.0.0.1:0", tls.clone()).await.unwrap();
    let (server, _) = with_webhook(ApiServer::builder().seed(1), |_, _| allowed());
    let check = async |authority: &str, why: &str| {
        let config = json!({"url": format!("{}/no", other.url()), "caBundle": BASE64_STANDARD.encode(authority)});
        configure(&server, VALIDATING, "a", &[webhook("/it", json!({"clientConfig": config}))]).await;
        let refused = post(&server, CONFIG_MAPS, &config_map("a")).await;
        assert!(refused.code == 500 && refused.text.contains(why), "{}", refused.text);
        delete(&server, &format!("{VALIDATING}/a")).await;
    };
    check(tls.authority(), "failed to call webhook: the server could not find the requested resource").await;
    check(Tls::generate().unwrap().authority(), "invalid peer certificate").await;
    check("", "caBundle has no certificate").await;
    other.stop().await;
}
