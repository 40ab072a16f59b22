//! Measures the parts of the hot paths: `cargo bench -p kube-informer --bench micro`, or with the name of a part after
//! `--`.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::sync::Arc;

use bytes::Bytes;
use divan::{Bencher, black_box, counter::BytesCount};
use futures_util::{StreamExt as _, stream};
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::Pod;
use kube_client::{Client, client::Body};
use kube_informer::parts::{
    Decoded, Delta, KubeSource, ListEnd, ListOptions, ListStream, ListWatch as _, ListWatchFns, OrderedQueue,
    StoreWriter, WatchEvent, WatchOptions, WatchStream,
};
use kube_informer::{Compact, Decode, Identity, Lister, Object, Raw, Selector, SharedInformer, Store};
use serde_json::json;

const OBJECTS: usize = 10_000;

fn main() {
    divan::main();
}

/// Returns a pod as a server sends it, of about four kilobytes.
fn pod_json(number: usize) -> Vec<u8> {
    let env: Vec<_> = (0..40)
        .map(|at| json!({"name": format!("SETTING_{at}"), "value": format!("https://b-{at}.example.com/{number}")}))
        .collect();
    let fields: serde_json::Map<_, _> = (0..40).map(|at| (format!("f:field-{at}"), json!({}))).collect();
    let pod = json!({
        "metadata": {
            "name": format!("service-{}-{number:07}", number / 20), "namespace": format!("team-{}", number % 50),
            "uid": format!("{number:036}"), "resourceVersion": (1_000_000 + number).to_string(),
            "labels": {"app": format!("service-{}", number / 20), "tier": "backend"},
            "managedFields": [{"manager": "kubelet", "fieldsV1": fields}],
        },
        "spec": {"nodeName": format!("node-{}", number % 300), "containers": [{"name": "main", "env": env}]},
        "status": {"phase": "Running"},
    });
    serde_json::to_vec(&pod).unwrap()
}

fn decoded<T: Decode>(decoder: &T::Decoder, number: usize) -> Arc<T> {
    Arc::new(T::decode(decoder, &Raw::new(&pod_json(number)).unwrap()).unwrap())
}

fn identities() -> Vec<Arc<Identity>> {
    (0..OBJECTS).map(|number| decoded(&(), number)).collect()
}

fn filled() -> (Store<Identity>, StoreWriter<Identity>) {
    let (store, mut writer) = Store::new(1);
    writer.add_index("namespace", |object: &Identity, add| object.key.namespace().into_iter().for_each(add)).unwrap();
    identities().into_iter().for_each(|object| _ = writer.put(object));
    (store, writer)
}

/// Scans an object: finds its kind and metadata, and skips managed fields.
#[divan::bench]
fn scan_object(bencher: Bencher<'_, '_>) {
    let json = pod_json(7);
    bencher.counter(BytesCount::new(json.len())).bench(|| Raw::new(black_box(&json)).unwrap().json().len());
}

/// Cuts the items of a list out of its body, which arrives in chunks, and decodes little of them.
#[divan::bench(args = [1024, 16 * 1024, 256 * 1024])]
fn scan_list(bencher: Bencher<'_, '_>, chunk: usize) {
    let items = (0..1000).map(|number| String::from_utf8(pod_json(number)).unwrap()).collect::<Vec<_>>().join(",");
    let body = Bytes::from(format!(r#"{{"kind":"PodList","metadata":{{"resourceVersion":"7"}},"items":[{items}]}}"#));
    let length = body.len();
    let service = tower::service_fn(move |_: http::Request<Body>| {
        let body = body.clone();
        let chunks = (0..body.len()).step_by(chunk).map(move |at| body.slice(at..body.len().min(at + chunk)));
        let frames = stream::iter(chunks.map(|chunk| Ok::<_, std::io::Error>(http_body::Frame::data(chunk))));
        async move { http::Response::builder().body(StreamBody::new(frames)) }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _on_it = runtime.enter();
    let source = KubeSource::<Identity>::of(Client::new(service, "default"), kube_core::ApiResource::erase::<Pod>(&()));
    bencher.counter(BytesCount::new(length)).bench_local(|| {
        let count = async { source.list(ListOptions::default()).await.unwrap().count().await };
        assert_eq!(runtime.block_on(count), 1001);
    });
}

#[divan::bench]
fn store_put(bencher: Bencher<'_, '_>) {
    let (objects, (_store, mut writer)) = (identities(), filled());
    let mut next = objects.iter().cycle();
    bencher.bench_local(|| writer.put(next.next().unwrap().clone()));
}

#[divan::bench]
fn store_put_beside_a_snapshot(bencher: Bencher<'_, '_>) {
    let (objects, (store, mut writer)) = (identities(), filled());
    let mut next = objects.iter().cycle();
    bencher.bench_local(|| {
        let held = store.snapshot();
        writer.put(next.next().unwrap().clone());
        held
    });
}

#[divan::bench]
fn store_get(bencher: Bencher<'_, '_>) {
    let (objects, (store, _writer)) = (identities(), filled());
    let mut next = objects.iter().cycle();
    bencher.bench_local(|| store.get(&next.next().unwrap().key));
}

#[divan::bench]
fn store_snapshot(bencher: Bencher<'_, '_>) {
    let (store, _writer) = filled();
    bencher.bench(|| store.snapshot());
}

/// Reads the two hundred objects of a namespace.
#[divan::bench]
fn index_get(bencher: Bencher<'_, '_>) {
    let (store, _writer) = filled();
    let index = store.index("namespace").unwrap();
    bencher.bench(|| index.get("team-7"));
}

/// Selects from ten thousand objects, which have labels of their own or share them.
#[divan::bench(types = [Pod, Compact<Pod>])]
fn select<T: kube_informer::StaticResource>(bencher: Bencher<'_, '_>) {
    let (store, mut writer) = Store::new(1);
    let decoder = T::decoder(&T::resource_type());
    (0..OBJECTS).for_each(|number| _ = writer.put(decoded::<T>(&decoder, number)));
    let (lister, selector) = (Lister::new(store), "app=service-7,tier in (backend, data)".parse::<Selector>().unwrap());
    bencher.bench(|| lister.list(&selector).len());
}

/// Pushes a hundred deltas, and pops them as one batch.
#[divan::bench]
fn queue(bencher: Bencher<'_, '_>) {
    let objects = identities();
    let mut queue = OrderedQueue::new();
    bencher.bench_local(|| {
        objects[..100].iter().for_each(|object| queue.push(Delta::Updated(object.clone())));
        let batch = queue.pop_batch();
        queue.processed();
        batch.len()
    });
}

/// Sends a thousand events from the source to this many handlers.
#[divan::bench(args = [1, 10])]
fn fan_out(bencher: Bencher<'_, '_>, handlers: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    bencher.bench_local(|| {
        runtime.block_on(async {
            let source = ListWatchFns::new(
                |_: ListOptions| async {
                    let end = ListEnd { version: Some("1".into()), ..ListEnd::default() };
                    Ok(ListStream::<Identity>::complete(Vec::new(), end))
                },
                |_: WatchOptions| async {
                    let thing = |number: u64| Identity {
                        key: "default/a".parse().unwrap(),
                        uid: String::new(),
                        version: (2 + number).to_string(),
                    };
                    let events = (0..1000).map(move |number| Ok(WatchEvent::Modified(Decoded::Object(thing(number)))));
                    Ok(WatchStream::new(stream::iter(events).chain(stream::pending())))
                },
            );
            let informer = SharedInformer::builder(source).build();
            let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
            for _ in 0..handlers {
                let sender = sender.clone();
                informer.on_event(move |event| {
                    if event.object().id().version == "1001" {
                        let _ = sender.send(());
                    }
                });
            }
            informer.start().unwrap();
            for _ in 0..handlers {
                told.recv().await.unwrap();
            }
            informer.stop().await;
        });
    });
}
