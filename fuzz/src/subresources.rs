//! Requests to all paths with all methods, and nearly valid bodies.

use kube_embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::ask::{APPLY, Ask, JSON, MERGE, OPERATIONS, PROTOBUF, STRATEGIC, YAML, settled};
use crate::choices::Choices;
use crate::samples::{SAMPLES, SHAPES};

/// More requests to the same server find little more.
const MOST_REQUESTS: usize = 8;

/// A few requests, each to any path of any kind with any method. The server always answers, never with an internal
/// error, and stored objects keep their kind.
pub fn subresources(input: &[u8]) {
    let mut choices = Choices::new(input);
    let server = ApiServer::builder().seed(1).garbage_collection(choices.coin()).build();
    // The disruption budget prevents evictions, and the CRD allows shapes.
    [&SAMPLES[15], &SHAPES[0]].iter().for_each(|sample| sample.put(&server));
    crate::run(async {
        for _ in 0..MOST_REQUESTS {
            if choices.is_empty() {
                break;
            }
            request(&server, &mut choices).await;
        }
        settled().await;
        intact(&server).await;
    });
}

async fn request(server: &ApiServer, choices: &mut Choices<'_>) {
    let method = choices.pick(METHODS);
    let (collection, mut sample) = kind(server, choices);
    let name = sample["metadata"]["name"].as_str().unwrap_or("a").to_owned();
    if method == "POST" && name == "a" {
        sample["metadata"]["name"] = choices.pick(&["b", "b", "a"]).into();
    }
    if method == "PUT" {
        let stored = Ask::get(&format!("{collection}/{name}")).send(server).await;
        sample["metadata"]["resourceVersion"] = stored.value()["metadata"]["resourceVersion"].clone();
    }
    let path = match choices.below(8) {
        0 | 1 => collection,
        2 => collection.replacen("/namespaces/default", "", 1),
        3 => format!("{collection}/{name}"),
        4 => format!("{collection}/none"),
        _ => format!("{collection}/{name}/{}", choices.pick(PARTS)),
    };
    let target = format!("{path}{}", query(choices));
    let content_type = choices.pick(if method == "PATCH" { PATCHES } else { FORMATS });
    let body = match choices.below(6) {
        0 | 1 if content_type == OPERATIONS => choices.operations(&sample).to_string(),
        0 | 1 => choices.varied(&sample).to_string(),
        2 | 3 => {
            let sample = part(choices);
            choices.varied(&sample).to_string()
        }
        4 => choices.json(NAMES, 5).to_string(),
        _ => String::new(),
    };
    let accept = choices.pick(ACCEPTED);
    Ask { method, target: &target, content_type, accept, body: body.into_bytes() }.send(server).await;
    if choices.coin() {
        settled().await;
    }
}

/// Returns the path of a kind and an object of it. Kinds without a sample come last, so that new kinds do not change
/// the numbers.
fn kind(server: &ApiServer, choices: &mut Choices<'_>) -> (String, Value) {
    let samples: Vec<_> = SAMPLES.iter().chain(&SHAPES[1..]).collect();
    let resources = server.resources();
    let is_known = |id: &str| samples.iter().any(|sample| sample.resource == id);
    let strangers: Vec<_> = resources.iter().filter(|resource| !is_known(resource.id())).collect();
    let number = choices.below(samples.len() + strangers.len());
    if let Some(sample) = samples.get(number) {
        sample.put(server);
        return (sample.collection.clone(), sample.object.clone());
    }
    let resource = strangers[number - samples.len()];
    let base = if resource.group().is_empty() { "/api" } else { "/apis" };
    let namespace = if resource.is_namespaced() { "/namespaces/default" } else { "" };
    let api_version = resource.api_version();
    (format!("{base}/{api_version}{namespace}/{}", resource.plural()), sent(resource.kind(), &api_version))
}

/// Returns an object of a kind without a sample.
fn sent(kind: &str, api_version: &str) -> Value {
    let spec = json!({"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}, "user": "u",
        "token": "t", "namespace": "default", "groups": ["g"]});
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": spec, "rules": [], "roleRef":
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"}, "provisioner": "p", "value": 1,
        "webhooks": []})
}

/// Returns a body for a subresource.
fn part(choices: &mut Choices<'_>) -> Value {
    let metadata = json!({"name": "a", "namespace": "default"});
    match choices.below(6) {
        0 => json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": {"replicas": 3}}),
        1 => json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata,
            "deleteOptions": {"gracePeriodSeconds": 0, "preconditions": {"uid": "u", "resourceVersion": "1"},
                "propagationPolicy": "Foreground", "dryRun": ["All"]}}),
        2 => json!({"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target":
            {"apiVersion": "v1", "kind": "Node", "name": "a"}}),
        3 => json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": ["x"],
            "expirationSeconds": 600, "boundObjectRef": {"kind": "Pod", "name": "a", "uid": "u"}}}),
        4 => {
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}, "spec": {"finalizers": ["x/y"]}})
        }
        _ => json!({"gracePeriodSeconds": 1, "orphanDependents": true, "preconditions": {"uid": "u"}}),
    }
}

fn query(choices: &mut Choices<'_>) -> String {
    let pairs: Vec<&str> = (0..choices.below(4)).map(|_| choices.pick(QUERY)).collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

/// Checks that every stored object has its kind and can be found by its name.
async fn intact(server: &ApiServer) {
    for resource in server.resources() {
        let Ok((_, objects)) = server.list(resource.id()) else { continue };
        for object in &objects {
            let metadata = &object["metadata"];
            assert_eq!(object["kind"], resource.kind(), "{object}");
            assert!(metadata["uid"].is_string() && metadata["resourceVersion"].is_string(), "{object}");
            let name = metadata["name"].as_str().unwrap_or_else(|| panic!("no name: {object}"));
            let found = server.get(resource.id(), metadata["namespace"].as_str(), name).expect("the object exists");
            assert_eq!(found, *object);
        }
    }
}

const METHODS: &[&str] = &["POST", "PUT", "PATCH", "PATCH", "DELETE", "GET", "HEAD", "OPTIONS"];
#[rustfmt::skip]
const PARTS: &[&str] = &[
    "status",
    "scale",
    "finalize",
    "eviction",
    "binding",
    "token",
    "status",
    "ephemeralcontainers",
    "resize",
    "log",
    "approval",
    "proxy",
];
const PATCHES: &[&str] = &[MERGE, APPLY, STRATEGIC, OPERATIONS, JSON];
const FORMATS: &[&str] = &[JSON, JSON, JSON, YAML, PROTOBUF, "", "application/cbor"];
const ACCEPTED: &[&str] = &[
    "",
    PROTOBUF,
    YAML,
    "application/json;as=Table;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
];
#[rustfmt::skip]
const QUERY: &[&str] = &[
    "fieldManager=one",
    "fieldManager=two",
    "force=true",
    "dryRun=All",
    "fieldValidation=Strict",
    "fieldValidation=Ignore",
    "labelSelector=app%3Da",
    "fieldSelector=metadata.name%3Da",
    "fieldSelector=status.phase%3DRunning",
    "limit=1",
    "resourceVersion=0",
    "resourceVersion=1",
    "resourceVersionMatch=Exact",
    "gracePeriodSeconds=0",
    "gracePeriodSeconds=-1",
    "propagationPolicy=Foreground",
    "propagationPolicy=Orphan",
    "orphanDependents=false",
    "pretty=1",
    "timeout=1s",
];
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "apiVersion",
    "kind",
    "metadata",
    "spec",
    "status",
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "finalizers",
    "labels",
    "managedFields",
    "ownerReferences",
    "deletionTimestamp",
    "generation",
    "replicas",
    "conditions",
    "items",
    "op",
    "path",
    "value",
    "/metadata/name",
    "template",
    "containers",
];
