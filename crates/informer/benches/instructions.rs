//! Runs one part of the library a given number of times, to count its instructions: `cargo xtask instructions`, or
//! `valgrind --tool=callgrind --callgrind-out-file=/dev/null <this program> <part> <repetitions> [<burst>]`.
//!
//! The setup of a part does not depend on the repetitions, so the difference of two runs is their cost. Nothing is
//! random, and no clock is read. Results are kept, so that freeing them is not counted. `burst` is the number of events
//! that a watch has ready at once (`apply`, `fanout`). By default it has all of them.

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs, reason = "a benchmark prints")]

use std::hint::black_box;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube_client::Client;
use kube_client::client::Body;
use kube_informer::parts::{
    Decoded, KubeSource, ListEnd, ListOptions, ListPart, ListStream, ListWatch as _, ListWatchFns, WatchEvent,
    WatchOptions, WatchStream,
};
use kube_informer::{Compact, Id, InformerOptions, Object, Projection, SharedInformer, StaticResource, Store, View};
use parking_lot::Mutex;
use serde_json::{Value, json};

const DECODED: usize = 1000; // Objects of a body, which arrives in chunks of `CHUNK` bytes.
const CHUNK: usize = 16 * 1024;
const OBJECTS: usize = 1000; // Objects of an informer, and its events.
const EVENTS: usize = 10_000;
const LISTED: usize = 20_000; // Objects of an informer that lists again and again.
const RELISTS: usize = 2;
const STORED: usize = 100_000; // Objects of a store without an informer.

fn main() {
    // Cargo adds `--bench`. `cargo test --benches` names no part, and only checks that it builds.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let Some(part) = arguments.first() else { return };
    let number = |at: usize| arguments.get(at).map(|number| number.parse::<usize>().unwrap());
    let (repetitions, burst) = (number(1).unwrap_or(0), number(2).unwrap_or(EVENTS));
    match part.as_str() {
        "decode-list" => decode_list(repetitions),
        "decode-watch" => decode_watch::<Pod>(repetitions),
        "decode-view" => decode_watch::<View<PodView>>(repetitions),
        "decode-compact" => decode_watch::<Compact<Pod>>(repetitions),
        "apply" => apply(repetitions, burst, 0),
        "fanout" => apply(repetitions, burst, 10),
        "relist" => relist(repetitions, Receiver::None),
        "relist-single" => relist(repetitions, Receiver::Single),
        "relist-batch" => relist(repetitions, Receiver::Batch),
        "get" => get(repetitions),
        _ => panic!("there is no part {part}"),
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// How a handler receives the changes of a relist.
enum Receiver {
    None,
    Single,
    Batch,
}

/// Relists an informer of 20,000 objects, which all change each time.
fn relist(repetitions: usize, receiver: Receiver) {
    let template = Pod { spec: Some(PodSpec::default()), ..Pod::default() };
    // All lists are made before, so that the set-up does not depend on the repetitions.
    let kept = |number, version| Kept(ManuallyDrop::new(Box::new(pod(&template, number, version))));
    let lists =
        (0..=RELISTS).map(|list| (0..LISTED).map(|number| kept(number, (list + 1) * 1_000_000 + number)).collect());
    let mut lists: Vec<Vec<Kept>> = lists.collect();
    lists.reverse();
    let lists = Mutex::new(lists);
    let source = ListWatchFns::new(
        move |_: ListOptions| {
            let listed = lists.lock().pop().unwrap_or_default();
            let version = listed.last().map(|last| last.id().version.into());
            async move { Ok(ListStream::complete(listed, ListEnd { version, ..ListEnd::default() })) }
        },
        |_: WatchOptions| async { Ok(WatchStream::new(stream::pending())) },
    );
    runtime().block_on(async {
        let informer = SharedInformer::<Kept>::builder(source).options(InformerOptions::new().seed(1)).build();
        let handle = match receiver {
            Receiver::None => None,
            Receiver::Single => Some(informer.on_event(|event| _ = black_box(event.object()))),
            Receiver::Batch => Some(informer.register().on_batch(|events, _| {
                events.iter().for_each(|event| _ = black_box(event.object()));
            })),
        };
        informer.start().unwrap();
        informer.synced().await.unwrap();
        for _ in 0..repetitions {
            informer.relist().await.unwrap();
            while handle.as_ref().is_some_and(|handle| handle.backlog() > 0) {
                tokio::task::yield_now().await;
            }
        }
        std::mem::forget(informer.store());
    });
}

/// Returns the same numbers in the same random order every time.
fn disorder(below: usize) -> impl Iterator<Item = usize> {
    let next = |state: &u64| Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(12_345));
    std::iter::successors(Some(42), next).map(move |state| (state >> 33) as usize % below)
}

fn decode_list(repetitions: usize) {
    let start = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":["#;
    let (whole, ends) = body(start, |number| pod_json(number).to_string(), ",");
    // Without the comma after the last item.
    let body = whole.slice(..ends[repetitions] - usize::from(repetitions > 0));
    runtime().block_on(async {
        let mut items = serve::<Pod>(body, "]}").list(ListOptions::default()).await.unwrap();
        let mut kept = Vec::with_capacity(DECODED);
        while let ListPart::Item(Decoded::Object(pod)) = items.next().await.unwrap().unwrap() {
            kept.push(pod);
        }
        assert_eq!(kept.len(), repetitions);
        std::mem::forget(kept);
    });
}

/// The fields that a controller of pods might read.
#[derive(serde::Deserialize)]
#[allow(dead_code, reason = "only the cost of decoding counts")]
struct PodView {
    spec: SpecView,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "only the cost of decoding counts")]
struct SpecView {
    node_name: Option<Box<str>>,
}

impl Projection for PodView {
    type Of = Pod;
}

fn decode_watch<T: StaticResource>(repetitions: usize) {
    let line = |number| {
        let mut pod = pod_json(number);
        (pod["apiVersion"], pod["kind"]) = ("v1".into(), "Pod".into());
        format!(r#"{{"type":"MODIFIED","object":{pod}}}"#)
    };
    let (whole, ends) = body("", line, "\n");
    let body = whole.slice(..ends[repetitions]);
    runtime().block_on(async {
        let mut events = serve::<T>(body, "").watch(WatchOptions::default()).await.unwrap();
        let mut kept = Vec::with_capacity(DECODED);
        while let Some(Ok(WatchEvent::Modified(Decoded::Object(pod)))) = events.next().await {
            kept.push(pod);
        }
        assert_eq!(kept.len(), repetitions);
        std::mem::forget(kept);
    });
}

/// Returns the text of all objects, and the position of each end. The first position is that of no object.
fn body(start: &str, object: impl Fn(usize) -> String, behind: &str) -> (Bytes, Vec<usize>) {
    let (mut text, mut ends) = (start.to_owned(), vec![start.len()]);
    for number in 0..DECODED {
        text += &object(number);
        text += behind;
        ends.push(text.len());
    }
    println!("{} bytes an object", text.len() / DECODED);
    (text.into(), ends)
}

/// Returns a source whose server answers every request with this body, in chunks.
fn serve<T: StaticResource>(body: Bytes, end: &'static str) -> KubeSource<T> {
    let service = tower::service_fn(move |_: http::Request<Body>| {
        let body = body.clone();
        let chunks = (0..body.len()).step_by(CHUNK).map(move |at| body.slice(at..body.len().min(at + CHUNK)));
        let chunks = chunks.chain([Bytes::from_static(end.as_bytes())]);
        let frames = stream::iter(chunks.map(|chunk| Ok::<_, std::io::Error>(http_body::Frame::data(chunk))));
        async move { http::Response::builder().body(StreamBody::new(frames)) }
    });
    KubeSource::new(Client::new(service, "default"))
}

/// A pod that is never freed and is cheap to move, so that only the library's work is counted.
struct Kept(ManuallyDrop<Box<Pod>>);

impl Object for Kept {
    fn id(&self) -> Id<'_> {
        self.0.id()
    }
}

/// Updates an informer with indexes by namespace and by node, and this many handlers.
fn apply(repetitions: usize, burst: usize, handlers: usize) {
    let template: Pod = serde_json::from_value(pod_json(0)).unwrap();
    let kept = |number, version| Kept(ManuallyDrop::new(Box::new(pod(&template, number, version))));
    let listed: Vec<Kept> = (0..OBJECTS).map(|number| kept(number, 1_000_000 + number)).collect();
    let updates = disorder(OBJECTS).zip(2_000_000..).map(|(number, version)| kept(number, version));
    // All of them, so that the setup does not depend on the repetitions.
    let mut updates: Vec<Kept> = updates.take(EVENTS).collect();
    std::mem::forget(updates.split_off(repetitions));

    let (listed, updates) = (Mutex::new(listed), Mutex::new(updates));
    let source = ListWatchFns::new(
        move |_: ListOptions| {
            let end = ListEnd { version: Some("1999999".into()), ..ListEnd::default() };
            let listed = std::mem::take(&mut *listed.lock());
            async move { Ok(ListStream::complete(listed, end)) }
        },
        move |_: WatchOptions| {
            let updates = std::mem::take(&mut *updates.lock()).into_iter();
            let events = stream::unfold((updates, 0_usize), move |(mut updates, at)| {
                let update = updates.next();
                async move {
                    let Some(update) = update else { return std::future::pending().await };
                    if at > 0 && at.is_multiple_of(burst) {
                        tokio::task::yield_now().await;
                    }
                    Some((Ok(WatchEvent::Modified(Decoded::Object(update))), (updates, at + 1)))
                }
            });
            async move { Ok(WatchStream::new(events)) }
        },
    );
    runtime().block_on(async {
        let informer = SharedInformer::builder(source).options(InformerOptions::new().seed(1)).build();
        let node = |pod: &Kept, add: &mut dyn FnMut(&str)| {
            pod.0.spec.iter().filter_map(|spec| spec.node_name.as_deref()).for_each(add);
        };
        informer.add_index_with("node", node).unwrap();
        let told = Arc::new(AtomicUsize::new(0));
        for _ in 0..handlers {
            let told = told.clone();
            informer.on_event(move |_| _ = told.fetch_add(1, Ordering::Relaxed));
        }
        informer.start().unwrap();
        // A paused clock advances only when no task can run.
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(told.load(Ordering::Relaxed), (OBJECTS + repetitions) * handlers);
        assert_eq!(informer.store().version(), Some((1_999_999 + repetitions as u64).into()));
        std::mem::forget(informer);
    });
}

fn get(repetitions: usize) {
    let (store, mut writer) = Store::new(1);
    let template = Pod { spec: Some(PodSpec::default()), ..Pod::default() };
    (0..STORED).for_each(|number| assert!(writer.put(Arc::new(pod(&template, number, number + 1))).is_none()));
    let keys: Vec<String> = disorder(STORED).take(STORED).map(|number| key(number).join("/")).collect();
    let keys = keys.iter().cycle().take(repetitions);
    assert_eq!(keys.filter(|key| black_box(store.get(key.as_str())).is_some()).count(), repetitions);
    std::mem::forget((store, writer));
}

fn key(number: usize) -> [String; 2] {
    [format!("team-{:02}", number % 50), format!("checkout-service-7c9f8d6b54-{number:07}")]
}

fn pod(template: &Pod, number: usize, version: usize) -> Pod {
    let mut pod = template.clone();
    [pod.metadata.namespace, pod.metadata.name] = key(number).map(Some);
    pod.metadata.uid = Some(format!("5d1d8b0e-0000-4000-8000-{number:012}"));
    pod.metadata.resource_version = Some(version.to_string());
    pod.spec.as_mut().unwrap().node_name = Some(format!("node-{}", number % 100));
    pod
}

/// Returns a pod as a server sends it: two containers, their statuses and managed fields.
fn pod_json(number: usize) -> Value {
    let [namespace, name] = key(number);
    let containers = many(2, |at| {
        let env =
            many(18, |at| json!({"name": format!("SETTING_{at}"), "value": format!("http://b-{at}.local:8443/")}));
        json!({
            "name": format!("part-{at}"), "image": format!("registry.example.com/team/part-{at}:v1.{at}.0"), "env": env,
            "args": ["--listen=0.0.0.0:8080", "--log-format=json"], "imagePullPolicy": "IfNotPresent",
            "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
            "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "timeoutSeconds": 1, "periodSeconds": 10},
            "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "250m", "memory": "512Mi"}},
            "volumeMounts": [{"name": "config", "mountPath": "/etc/part"}], "terminationMessagePolicy": "File",
        })
    });
    let time = "2025-03-01T10:00:00Z";
    let conditions = many(5, |at| json!({"type": format!("Type{at}"), "status": "True", "lastTransitionTime": time}));
    let managed =
        |by: &str, fields: Value| json!({"manager": by, "operation": "Update", "time": time, "fieldsV1": fields});
    json!({
        "metadata": {
            "name": name, "generateName": "checkout-service-7c9f8d6b54-", "namespace": namespace, "generation": 1,
            "uid": format!("5d1d8b0e-0000-4000-8000-{number:012}"), "resourceVersion": (1_000_000 + number).to_string(),
            "labels": {"app": "checkout", "pod-template-hash": "7c9f8d6b54", "team": "payments", "tier": "backend"},
            "annotations": {"example.com/hash": format!("{number:040x}")}, "creationTimestamp": time,
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "checkout-service-7c9f8d6b54",
                "uid": "9a9c1f52-0000-4000-8000-000000000001", "controller": true, "blockOwnerDeletion": true}],
            "managedFields": [
                managed("kube-controller-manager", json!({"f:spec": {"f:containers": fields_of(&containers)}})),
                managed("kubelet", json!({"f:status": {"f:conditions": fields_of(&conditions), "f:phase": {}}})),
            ],
        },
        "spec": {
            "containers": containers, "nodeName": format!("node-{}", number % 100), "serviceAccountName": "checkout",
            "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "priority": 0,
            "tolerations": [{"key": "busy", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
            "volumes": [{"name": "config", "configMap": {"name": "checkout", "defaultMode": 420}}],
        },
        "status": {
            "phase": "Running", "qosClass": "Burstable", "startTime": time, "conditions": conditions,
            "hostIP": "10.0.0.1", "podIP": "10.1.0.1", "containerStatuses": many(2, |at| json!({
                "name": format!("part-{at}"), "image": format!("registry.example.com/team/part-{at}:v1.{at}.0"),
                "imageID": format!("registry.example.com/team/part-{at}@sha256:{at:064x}"), "ready": true,
                "containerID": format!("containerd://{at:064x}"), "state": {"running": {"startedAt": time}},
            })),
        },
    })
}

fn many(count: usize, each: impl Fn(usize) -> Value) -> Value {
    (0..count).map(each).collect()
}

/// Returns the `fieldsV1` of a value.
fn fields_of(value: &Value) -> Value {
    let key = |item: &Value| format!(r#"k:{{"name":{}}}"#, item.get("name").unwrap_or(&item["type"]));
    match value {
        Value::Object(map) => map.iter().map(|(name, value)| (format!("f:{name}"), fields_of(value))).collect(),
        Value::Array(items) if items[0].is_object() => items.iter().map(|item| (key(item), fields_of(item))).collect(),
        _ => json!({}),
    }
}
