//! Webhooks: both servers send them the same reviews, and give clients the same answers.

mod endpoint;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use http::Request;
use kube_client::client::Body;
use kube_client::{Client, Config};
use kube_embedded_apiserver::ApiServer;
use kube_informer_e2e::{Assets, Cluster};
use serde_json::{Value, json};

use endpoint::Endpoint;

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MAPS: &str = "/api/v1/namespaces/hooks/configmaps";
const GEARS: &str = "/apis/hooks.example.com/v1/namespaces/hooks/gears";
/// The port of a webhook that nothing listens on.
const NOTHING: &str = "https://127.0.0.1:1/";

/// The mutating webhooks, in the order of the configuration, and what each has beside the usual members.
fn mutating() -> Vec<(&'static str, Value)> {
    vec![
        ("again", json!({"reinvocationPolicy": "IfNeeded"})),
        ("label", json!({})),
        ("data", json!({"matchConditions": [{"name": "named", "expression": "object.metadata.name != 'skipped'"}]})),
        ("bad-patch", json!({})),
        ("slow", json!({"timeoutSeconds": 1})),
        ("slow-ignored", json!({"timeoutSeconds": 1, "failurePolicy": "Ignore"})),
        ("down", json!({"clientConfig": {"url": NOTHING}})),
        ("down-ignored", json!({"clientConfig": {"url": NOTHING}, "failurePolicy": "Ignore"})),
        ("effects", json!({"sideEffects": "NoneOnDryRun"})),
        ("creates", json!({"rules": [rule(&["CREATE"])]})),
    ]
}

fn validating() -> Vec<(&'static str, Value)> {
    vec![
        ("refuse", json!({})),
        ("refuse-silently", json!({})),
        ("refuse-invalid", json!({})),
        ("warn", json!({})),
        ("error500", json!({})),
        ("no-json", json!({})),
        ("empty", json!({})),
        ("wrong-uid", json!({})),
        ("no-delete", json!({})),
        ("impossible", json!({"matchConditions": [{"name": "odd", "expression": "object.missing == 1"}]})),
    ]
}

fn rule(operations: &[&str]) -> Value {
    json!({"operations": operations, "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]})
}

/// Returns a configuration. A webhook is called for objects that have a label with its name.
fn configuration(endpoint: &Endpoint, webhooks: Vec<(&'static str, Value)>) -> Value {
    let webhooks = webhooks.into_iter().map(|(name, more)| {
        let selector = json!({"matchExpressions": [{"key": format!("hook-{name}"), "operator": "Exists"}]});
        let mut webhook = json!({
            "name": format!("{name}.example.com"), "clientConfig": endpoint.client_config(name), "rules": [rule(&["*"])],
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "objectSelector": selector,
        });
        for (member, value) in more.as_object().unwrap() {
            webhook[member] = value.clone();
        }
        webhook
    });
    json!({"metadata": {"name": "hooks"}, "webhooks": webhooks.collect::<Vec<_>>()})
}

/// One request, by the name of the object and the webhooks that it selects.
struct Step {
    what: String,
    method: &'static str,
    path: String,
    media_type: &'static str,
    body: Value,
}

fn step(what: &str, method: &'static str, path: String, body: Value) -> Step {
    Step { what: format!("{what}: {method}"), method, path, media_type: "application/json", body }
}

/// Returns the writes of one object that selects these webhooks.
fn writes(name: &str, hooks: &[&str]) -> Vec<Step> {
    let labels: serde_json::Map<String, Value> =
        hooks.iter().map(|hook| (format!("hook-{hook}"), json!("yes"))).collect();
    let map = |value: &str| json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}, "data": {"a": value}});
    let (one, query) = (format!("{MAPS}/{name}"), "?fieldManager=tester");
    let patch = |media_type, query: &str, body| Step {
        what: format!("{name}: {media_type} {query}"),
        method: "PATCH",
        path: format!("{one}{query}"),
        media_type,
        body,
    };
    vec![
        step(&format!("{name} dry run"), "POST", format!("{MAPS}?dryRun=All"), map("1")),
        step(name, "POST", format!("{MAPS}{query}"), map("1")),
        step(name, "GET", one.clone(), Value::Null),
        step(name, "PUT", one.clone(), map("2")),
        patch("application/merge-patch+json", "", json!({"data": {"b": "3"}})),
        patch("application/apply-patch+yaml", "?fieldManager=applier&force=true", map("4")),
        step(&format!("{name} dry run"), "DELETE", format!("{one}?dryRun=All"), Value::Null),
        step(name, "DELETE", one.clone(), Value::Null),
        step(name, "GET", one, Value::Null),
    ]
}

fn admission_steps() -> Vec<Step> {
    let cases: &[(&str, &[&str])] = &[
        ("plain", &[]),
        ("labelled", &["label"]),
        ("chained", &["again", "label", "data"]),
        ("skipped", &["data"]),
        ("patched-badly", &["bad-patch"]),
        ("slow", &["slow"]),
        ("slow-ignored", &["slow-ignored"]),
        ("down", &["down"]),
        ("down-ignored", &["down-ignored"]),
        ("effects", &["effects"]),
        ("creates", &["creates"]),
        ("refused", &["refuse"]),
        ("refused-silently", &["refuse-silently"]),
        ("refused-invalid", &["refuse-invalid"]),
        ("warned", &["warn"]),
        ("error500", &["error500"]),
        ("no-json", &["no-json"]),
        ("empty", &["empty"]),
        ("wrong-uid", &["wrong-uid"]),
        ("kept", &["no-delete"]),
        ("impossible", &["impossible"]),
        ("mutated-and-refused", &["label", "refuse"]),
    ];
    let mut steps: Vec<Step> = cases.iter().flat_map(|(name, hooks)| writes(name, hooks)).collect();
    for name in ["x", "y"] {
        let labels = json!({"hook-warn": "yes"});
        let map = json!({"metadata": {"name": name, "labels": labels}});
        steps.push(step(name, "POST", MAPS.to_owned(), map));
    }
    steps.push(step("collection", "DELETE", format!("{MAPS}?labelSelector=hook-warn"), Value::Null));
    steps
}

fn gears(endpoint: &Endpoint) -> Value {
    let version = |name: &str, storage: bool, field: &str| {
        let spec = json!({"type": "object", "properties": {field: {"type": "integer"}}});
        json!({"name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}})
    };
    let webhook = json!({"clientConfig": endpoint.client_config("convert"), "conversionReviewVersions": ["v1"]});
    json!({
        "kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "gears.hooks.example.com"},
        "spec": {
            "group": "hooks.example.com", "scope": "Namespaced", "names": {"plural": "gears", "kind": "Gear"},
            "conversion": {"strategy": "Webhook", "webhook": webhook},
            "versions": [version("v1", true, "length"), version("v2", false, "size")],
        },
    })
}

fn conversion_steps() -> Vec<Step> {
    let gear = |version: &str, name: &str, spec: Value| json!({"kind": "Gear", "apiVersion": format!("hooks.example.com/{version}"), "metadata": {"name": name}, "spec": spec});
    let new = GEARS.replace("/v1/", "/v2/");
    let patch = |path: String, body| Step {
        what: format!("patch {path}"),
        method: "PATCH",
        path,
        media_type: "application/merge-patch+json",
        body,
    };
    vec![
        step("v2 to v1", "POST", new.clone(), gear("v2", "a", json!({"size": 3, "length": 9}))),
        step("as v1", "GET", format!("{GEARS}/a"), Value::Null),
        step("as v2", "GET", format!("{new}/a"), Value::Null),
        step("v1", "POST", GEARS.to_owned(), gear("v1", "b", json!({"length": 4}))),
        step("list v2", "GET", new.clone(), Value::Null),
        patch(format!("{new}/b"), json!({"spec": {"size": 5}})),
        step("list v1", "GET", GEARS.to_owned(), Value::Null),
        step("delete v2", "DELETE", format!("{new}/b"), Value::Null),
    ]
}

/// A server, and the webhook that it calls.
struct Subject {
    client: Client,
    endpoint: Endpoint,
}

impl Subject {
    async fn prepare(mut config: Config) -> Self {
        config.default_retry = false;
        let subject = Self { client: kube_informer::client_from(config).unwrap(), endpoint: Endpoint::start().await };
        let namespace = json!({"metadata": {"name": "hooks"}});
        for (path, body) in [
            ("/api/v1/namespaces".to_owned(), namespace),
            (format!("{ADMISSION}/mutatingwebhookconfigurations"), configuration(&subject.endpoint, mutating())),
            (format!("{ADMISSION}/validatingwebhookconfigurations"), configuration(&subject.endpoint, validating())),
            (DEFINITIONS.to_owned(), gears(&subject.endpoint)),
        ] {
            let (code, _, answer) = subject.send(&step("prepare", "POST", path, body)).await;
            assert_eq!(code, 201, "{answer}");
        }
        // A configuration takes effect some time after it is stored.
        let probe = |hook: &str| json!({"metadata": {"name": "probe", "labels": {format!("hook-{hook}"): "yes"}}});
        subject
            .until("POST", format!("{MAPS}?dryRun=All"), probe("label"), |answer| {
                answer["metadata"]["labels"]["seen"] == "yes"
            })
            .await;
        let refused = |answer: &Value| answer["code"] == 400;
        subject.until("POST", format!("{MAPS}?dryRun=All"), probe("refuse"), refused).await;
        let listed = |answer: &Value| answer["kind"] == "GearList";
        subject.until("GET", GEARS.replace("/v1/", "/v2/"), Value::Null, listed).await;
        subject.endpoint.take_reviews();
        subject
    }

    async fn until(&self, method: &'static str, path: String, body: Value, holds: impl Fn(&Value) -> bool) {
        let probe = step("probe", method, path, body);
        while !holds(&self.send(&probe).await.2) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Sends a request, and returns code, warnings and body of the answer.
    async fn send(&self, step: &Step) -> (u16, Vec<String>, Value) {
        let bytes = if step.body.is_null() { Vec::new() } else { step.body.to_string().into_bytes() };
        let request = Request::builder().method(step.method).uri(&step.path).header("content-type", step.media_type);
        let answer = self.client.send(request.body(Body::from(bytes)).unwrap()).await.unwrap();
        let (parts, body) = answer.into_parts();
        let warnings =
            parts.headers.get_all("warning").iter().map(|value| value.to_str().unwrap().to_owned()).collect();
        let body = serde_json::from_slice(&body.collect_bytes().await.unwrap()).unwrap_or_default();
        (parts.status.as_u16(), warnings, body)
    }

    /// Makes the request, and returns the answer and the reviews that it caused, without what differs between servers.
    async fn play(&self, step: &Step) -> (Value, Vec<(String, Value)>) {
        let (code, warnings, mut body) = self.send(step).await;
        normalize(&mut body);
        let mut reviews = self.endpoint.take_reviews();
        reviews.iter_mut().for_each(|(_, review)| normalize(review));
        (json!({"code": code, "warnings": warnings, "body": body}), reviews)
    }
}

/// Removes values that differ between two servers: uids, times, versions, users, ports, and the words of network errors.
fn normalize(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for member in ["uid", "resourceVersion", "creationTimestamp", "time", "userInfo"] {
                members.remove(member);
            }
            if let Some(Value::String(message)) = members.get_mut("message") {
                for known in ["failed to call webhook: Post", "json parse error", "expected response.uid="] {
                    if let Some((start, _)) = message.split_once(known) {
                        *message = format!("{start}{known}");
                    }
                }
                // Each server's library has its own words for a patch that does not apply.
                for known in ["replace operation does not apply", "operation '/0' failed"] {
                    if let Some((start, _)) = message.split_once(known) {
                        *message = format!("{start}the patch does not apply");
                    }
                }
            }
            members.values_mut().for_each(normalize);
        }
        Value::Array(items) => items.iter_mut().for_each(normalize),
        _ => {}
    }
}

fn forget_managers(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("managedFields");
            members.values_mut().for_each(forget_managers);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_managers),
        _ => {}
    }
}

/// Describes the differences of two values by their paths.
fn difference(what: &str, real: &Value, embedded: &Value) -> String {
    fn compare(path: &str, real: &Value, embedded: &Value, found: &mut String) {
        match (real, embedded) {
            (Value::Object(one), Value::Object(two)) => {
                let names: BTreeSet<&String> = one.keys().chain(two.keys()).collect();
                for name in names {
                    compare(&format!("{path}.{name}"), &real[name], &embedded[name], found);
                }
            }
            (Value::Array(one), Value::Array(two)) if one.len() == two.len() => {
                for (index, (one, two)) in one.iter().zip(two).enumerate() {
                    compare(&format!("{path}[{index}]"), one, two, found);
                }
            }
            (real, embedded) if real == embedded => {}
            (real, embedded) => {
                let _ = write!(found, "\n  {path}: kube-apiserver has {real}, the embedded server {embedded}");
            }
        }
    }
    let mut found = what.to_owned();
    compare("", real, embedded, &mut found);
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_get_the_same_reviews_and_clients_the_same_answers() {
    let cluster = Cluster::start(&Assets::ready().unwrap()).await.unwrap();
    println!("webhooks: {cluster}");
    let listening = ApiServer::new().serve("127.0.0.1:0").await.unwrap();
    let real = Subject::prepare(cluster.operator().await.unwrap()).await;
    let embedded = Subject::prepare(Config::new(listening.url().parse().unwrap())).await;
    let (mut played, mut differences) = (0, Vec::new());
    for step in admission_steps() {
        let (real, embedded) = tokio::join!(real.play(&step), embedded.play(&step));
        played += 1;
        if real != embedded {
            differences.push(difference(&step.what, &json!(real), &json!(embedded)));
        }
    }
    for step in conversion_steps() {
        // The embedded server converts when it writes, kube-apiserver when it reads, so they send different reviews.
        let ((mut real, _), (mut embedded, _)) = tokio::join!(real.play(&step), embedded.play(&step));
        // kube-apiserver also converts the fields of earlier managers.
        forget_managers(&mut real);
        forget_managers(&mut embedded);
        played += 1;
        if real != embedded {
            differences.push(difference(&step.what, &real, &embedded));
        }
    }
    println!("webhooks: {played} requests");
    assert!(differences.is_empty(), "{} differences\n{}", differences.len(), differences.join("\n"));
    listening.stop().await;
}
