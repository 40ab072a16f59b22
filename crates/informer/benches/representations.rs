//! Prints the memory and time of a pod in each representation: `cargo bench -p kube-informer --bench representations`.
//!
//! Memory is the growth of the process for 20,000 pods with their own names, digests, addresses and times. The smallest
//! representation is measured first, and nothing is freed. Time is the least of three rounds, on one thread. A compact
//! pod is not typed, so the time to decode one is printed, too.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_types,
    missing_docs,
    reason = "a benchmark prints"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube_informer::{Compact, Projection, Raw, StaticResource, View};
use serde_json::{Value, json};

const PODS: usize = 20_000;
const TIMED: usize = 2000;

/// The fields that a controller of pods might read.
#[derive(serde::Deserialize)]
#[allow(dead_code, reason = "only its size counts")]
struct PodView {
    spec: Spec,
    status: Status,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "only its size counts")]
struct Spec {
    node_name: Option<Box<str>>,
}

#[derive(serde::Deserialize)]
#[allow(dead_code, reason = "only its size counts")]
struct Status {
    phase: Option<Box<str>>,
}

impl Projection for PodView {
    type Of = Pod;
}

fn main() {
    // `cargo test --benches` only checks that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let bytes: usize = (0..100).map(|number| pod(number).len()).sum::<usize>() / 100;
    println!("{:<24} {:>10} bytes", "a pod on the wire", bytes);
    let compact = measure::<Compact<Pod>>("compact");
    let (one, field) = (&compact[PODS / 2], Instant::now());
    (0..TIMED).for_each(|_| drop(black_box(one.get::<String>("/spec/nodeName").unwrap())));
    println!("{:<24} {:>10.1} us", "compact, one field", micros(field.elapsed()));
    let whole = Instant::now();
    compact.iter().take(TIMED).for_each(|pod| drop(black_box(pod.decode().unwrap())));
    println!("{:<24} {:>10.1} us", "compact, a whole pod", micros(whole.elapsed()));
    measure::<View<PodView>>("view");
    // Decoding leaves spare room in vectors and strings. A copy has none.
    measure_as("typed, copied", |pod: Pod| pod.clone());
    measure::<Pod>("typed");
}

fn micros(all: Duration) -> f64 {
    all.as_secs_f64() * 1e6 / TIMED as f64
}

fn measure<T: StaticResource>(name: &str) -> &'static [Arc<T>] {
    measure_as(name, |object| object)
}

/// Prints memory and time, and returns the objects.
fn measure_as<T: StaticResource>(name: &str, transform: impl Fn(T) -> T) -> &'static [Arc<T>] {
    let decoder = T::decoder(&T::resource_type());
    let decode = |json: &[u8]| Arc::new(transform(T::decode(&decoder, &Raw::new(json).unwrap()).unwrap()));
    let (mut kept, before) = (Vec::with_capacity(PODS), resident());
    for number in 0..PODS {
        kept.push(decode(&pod(number)));
    }
    let grown = before.zip(resident()).map(|(before, after)| (after - before) / PODS as f64);
    let samples: Vec<_> = (0..TIMED).map(|number| pod(PODS + number)).collect();
    let round = |_| {
        let start = Instant::now();
        samples.iter().for_each(|json| drop(black_box(decode(json))));
        start.elapsed()
    };
    let least = (0..3).map(round).min().unwrap_or_default();
    let grown = grown.map_or_else(|| "unknown".to_owned(), |grown| format!("{grown:.0}"));
    println!("{name:<24} {grown:>10} bytes, {:>7.1} us to make", micros(least));
    std::mem::forget(decoder);
    kept.leak()
}

/// Returns the memory of the process, if the system reports it.
fn resident() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = text.lines().find(|line| line.starts_with("Rss:"))?;
    line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|kilobytes| kilobytes * 1024.0)
}

/// Returns a pod as a server sends it. Twenty pods in a row belong to one service.
fn pod(number: usize) -> Vec<u8> {
    let digest = |salt: usize| {
        let mix = |seed: u64| (seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(31);
        let mixed = mix(mix((number * 31 + salt) as u64).wrapping_add(salt as u64));
        format!("{mixed:016x}{:016x}", mix(mixed))
    };
    let service = number / 20;
    let of_service =
        |salt: usize| format!("{:016x}", (service as u64 * 977 + salt as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let time = format!(
        "2026-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        number % 12 + 1,
        number % 28 + 1,
        number % 24,
        number % 60,
        number % 59
    );
    let name = format!("service-{service}-{}-{}", &of_service(1)[..10], &digest(1)[..5]);
    let containers: Vec<Value> = (0..2)
        .map(|at| {
            let env: Vec<_> = (0..16)
                .map(|setting| json!({"name": format!("SETTING_{setting}"), "value": format!("https://{}.local:8443/{setting}", of_service(setting))}))
                .collect();
            json!({
                "name": format!("part-{at}"), "image": format!("registry.example.com/team/service-{service}:v1.{at}"), "env": env,
                "args": ["--listen=0.0.0.0:8080", "--log-format=json"], "imagePullPolicy": "IfNotPresent",
                "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "timeoutSeconds": 1, "periodSeconds": 10},
                "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "250m", "memory": "512Mi"}},
                "volumeMounts": [{"name": "config", "mountPath": "/etc/part"}, {"name": "token", "mountPath": "/var/run/secrets"}],
            })
        })
        .collect();
    let statuses: Vec<Value> = (0..2)
        .map(|at| json!({
            "name": format!("part-{at}"), "ready": true, "restartCount": 0, "started": true,
            "image": format!("registry.example.com/team/service-{service}:v1.{at}"),
            "imageID": format!("registry.example.com/team/service-{service}@sha256:{}{}", of_service(2), of_service(3)),
            "containerID": format!("containerd://{}{}", digest(2 + at), digest(12 + at)), "state": {"running": {"startedAt": time}},
        }))
        .collect();
    let conditions: Vec<Value> = ["Initialized", "Ready", "ContainersReady", "PodScheduled"]
        .iter()
        .map(|kind| json!({"type": kind, "status": "True", "lastTransitionTime": time, "lastProbeTime": null}))
        .collect();
    let fields = |of: &str| {
        json!({format!("f:{of}"): {"f:containers": {"k:{\"name\":\"part-0\"}": {".": {}, "f:image": {}, "f:env": {}, "f:ports": {}}},
        "f:dnsPolicy": {}, "f:restartPolicy": {}, "f:schedulerName": {}, "f:tolerations": {}, "f:volumes": {}}})
    };
    let object = json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {
            "name": name, "generateName": format!("service-{service}-{}-", &of_service(1)[..10]), "namespace": format!("team-{}", service % 50),
            "uid": format!("{}-{}", &digest(4)[..8], &digest(5)[..27]), "resourceVersion": (1_000_000 + number * 7).to_string(), "creationTimestamp": time,
            "labels": {"app": format!("service-{service}"), "pod-template-hash": of_service(1)[..10], "team": format!("team-{}", service % 50), "tier": "backend"},
            "annotations": {"checksum/config": of_service(7), "example.com/instance": digest(6)},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("service-{service}-{}", &of_service(1)[..10]),
                "uid": of_service(8), "controller": true, "blockOwnerDeletion": true}],
            "managedFields": [{"manager": "kube-controller-manager", "operation": "Update", "time": time, "fieldsV1": fields("spec")},
                {"manager": "kubelet", "operation": "Update", "time": time, "subresource": "status", "fieldsV1": fields("status")}],
        },
        "spec": {
            "containers": containers, "nodeName": format!("node-{}.zone-{}.example.com", number % 700, number % 3), "serviceAccountName": "default",
            "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "priority": 0, "enableServiceLinks": true,
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
            "volumes": [{"name": "config", "configMap": {"name": format!("service-{service}"), "defaultMode": 420}},
                {"name": "token", "projected": {"defaultMode": 420, "sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]}}],
        },
        "status": {
            "phase": "Running", "qosClass": "Burstable", "startTime": time, "conditions": conditions, "containerStatuses": statuses,
            "hostIP": format!("10.{}.{}.4", number % 7, number % 250), "podIP": format!("10.{}.{}.{}", 100 + number % 50, number / 250 % 250, number % 250),
        },
    });
    serde_json::to_vec(&object).unwrap()
}
