//! Responses of a server, decoded by a client.

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use kube_core::metadata::PartialObjectMeta;
use kube_informer::parts::{Decoded, KubeSource, ListOptions, ListPart, ListWatch, WatchEvent, WatchOptions};
use kube_informer::{Compact, Decode, DecodeError, Identity, InformerOptions, Object, SourceError, View};
use serde_json::Value;
use std::fmt::Debug;
use std::time::Duration;

/// The object limit; small, so that the fuzzer exceeds it easily.
const LIMIT: usize = 4 * 1024;

/// A watch. The chunks in which bytes arrive do not change events and errors. A plain parser of the lines finds the
/// same events. Every representation can be decoded from an object that decodes as a whole, and has the same identity.
pub fn watch(input: &[u8]) {
    crate::run(async {
        let whole = watched::<Pod>(input, input.len().max(1)).await;
        for size in [1, 7] {
            assert_eq!(said(&watched::<Pod>(input, size).await), said(&whole), "in chunks of {size}");
        }
        same_as_plain(input, &whole);
        watched::<PartialObjectMeta<Pod>>(input, 64).await;
        let whole = objects(whole);
        same_compact(&whole, objects(watched::<Compact<Pod>>(input, 64).await));
        same_identities(&whole, &objects(watched::<View<Few>>(input, 64).await));
        same_identities(&whole, &objects(watched::<Identity>(input, 64).await));
    });
}

/// A list. The chunks in which bytes arrive do not change the items. A complete list without undecodable items is valid
/// JSON, except for managed fields, and a plain parser finds the same objects. So does every representation.
pub fn list(input: &[u8]) {
    crate::run(async {
        let whole = listed::<Pod>(input, input.len().max(1)).await;
        for size in [1, 7] {
            assert_eq!(said(&listed::<Pod>(input, size).await), said(&whole), "in chunks of {size}");
        }
        let complete = matches!(whole.last(), Some(Ok(ListPart::End(_))));
        let pods = items(whole);
        same_compact(&pods, items(listed(input, 64).await));
        same_identities(&pods, &items(listed::<View<Few>>(input, 64).await));
        same_identities(&pods, &items(listed::<Identity>(input, 64).await));
        let Some(pods) = complete.then(|| pods.into_iter().collect::<Option<Vec<Pod>>>()).flatten() else { return };
        let Ok(plain) = serde_json::from_slice::<Plain>(input) else {
            let unread = input.windows(13).any(|part| part == b"managedFields");
            assert!(unread, "a complete list is valid JSON, except for managed fields, which the decoder skips");
            return;
        };
        let plain: Option<Vec<Pod>> = plain.items.unwrap_or_default().into_iter().map(plain_pod).collect();
        assert_eq!(Some(pods), plain, "a plain parser finds the same");
    });
}

type Event<T> = Result<WatchEvent<T>, SourceError>;
type Part<T> = Result<ListPart<T>, SourceError>;

/// The smallest possible view.
#[derive(Debug, serde::Deserialize)]
struct Few {}

#[derive(serde::Deserialize)]
struct Plain {
    items: Option<Vec<Value>>,
}

/// A line of a watch, for a plain parser.
#[derive(serde::Deserialize)]
struct PlainLine {
    #[serde(rename = "type")]
    kind: String,
    object: Value,
}

/// The fields of a bookmark that matter.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlainMetadata {
    resource_version: String,
}

/// Returns true for an object that is larger than the limit.
fn is_too_large(event: &Event<Pod>) -> bool {
    match event {
        Ok(WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)) => {
            matches!(object, Decoded::Bad(bad) if matches!(bad.error, DecodeError::TooLarge { .. }))
        }
        _ => false,
    }
}

/// Checks that a line is a pod or a bookmark for a plain parser exactly if it is the same event for the client.
fn same_as_plain(input: &[u8], events: &[Event<Pod>]) {
    let lines = input.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    for (line, event) in lines.zip(events) {
        // The client does not read a line that is too long, and the last line may be cut off.
        if matches!(event, Err(SourceError::TooLarge { .. } | SourceError::CutOff)) {
            return;
        }
        // The client skips an object that is larger than the limit.
        if is_too_large(event) {
            continue;
        }
        // By way of a `Value`: if a key occurs twice, the last one counts.
        let value = serde_json::from_slice::<Value>(line);
        let Ok(PlainLine { kind, object }) = value.and_then(serde_json::from_value) else { continue };
        let found = match event {
            Ok(WatchEvent::Added(Decoded::Object(pod))) => Some(("ADDED", pod)),
            Ok(WatchEvent::Modified(Decoded::Object(pod))) => Some(("MODIFIED", pod)),
            Ok(WatchEvent::Deleted(Decoded::Object(pod))) => Some(("DELETED", pod)),
            _ => None,
        };
        if let Some((found, pod)) = found {
            assert_eq!((found, Some(pod)), (&*kind, plain_pod(object).as_ref()), "a plain parser finds the same");
        } else if matches!(&*kind, "ADDED" | "MODIFIED" | "DELETED") {
            let named = plain_pod(object).filter(|pod| pod.metadata.name.as_ref().is_some_and(|name| !name.is_empty()));
            assert_eq!(named, None, "a plain parser finds a pod, and the client {event:?}");
        } else if kind == "BOOKMARK" && object.as_object().is_some_and(|object| object.len() == 1) {
            let only_version = |metadata: &&Value| metadata.as_object().is_some_and(|metadata| metadata.len() == 1);
            let metadata = object.get("metadata").filter(only_version).cloned().map(serde_json::from_value);
            let Some(Ok(PlainMetadata { resource_version })) = metadata else { continue };
            let bookmark =
                matches!(event, Ok(WatchEvent::Bookmark { version, .. }) if *version.as_str() == *resource_version);
            assert!(bookmark, "a plain parser finds a bookmark, and the client {event:?}");
        }
    }
}

/// Decodes a pod in a slow and obvious way: `None` if it has another type or a field is invalid.
fn plain_pod(mut item: Value) -> Option<Pod> {
    let object = item.as_object_mut()?;
    for (name, text) in [("apiVersion", "v1"), ("kind", "Pod")] {
        match object.insert(name.to_owned(), text.into()) {
            None | Some(Value::Null) => {}
            Some(Value::String(said)) if said.is_empty() || said == text => {}
            Some(_) => return None,
        }
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    serde_json::from_value(item).ok()
}

/// Returns the object of each event, and `None` for events without a decoded object.
fn objects<T>(events: Vec<Event<T>>) -> Vec<Option<T>> {
    let object = |event| match event {
        Ok(WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)) => match object {
            Decoded::Object(object) => Some(object),
            Decoded::Bad(_) => None,
        },
        _ => None,
    };
    events.into_iter().map(object).collect()
}

/// Returns the items, and `None` for each undecodable item.
fn items<T>(parts: Vec<Part<T>>) -> Vec<Option<T>> {
    let item = |part| match part {
        Ok(ListPart::Item(Decoded::Object(object))) => Some(Some(object)),
        Ok(ListPart::Item(Decoded::Bad(_))) => Some(None),
        _ => None,
    };
    parts.into_iter().filter_map(item).collect()
}

fn same_compact(pods: &[Option<Pod>], compact: Vec<Option<Compact<Pod>>>) {
    same_identities(pods, &compact);
    for (pod, compact) in pods.iter().zip(compact) {
        if let (Some(pod), Some(compact)) = (pod, compact) {
            assert_eq!(compact.decode().as_deref(), Ok(pod));
            let phase = pod.status.as_ref().and_then(|status| status.phase.clone());
            assert_eq!(compact.get("/status/phase"), Ok(phase));
        }
    }
}

/// Checks that each decoded pod was decoded in the other representation too, with the same identity.
fn same_identities<T: Object>(pods: &[Option<Pod>], others: &[Option<T>]) {
    for (pod, other) in pods.iter().zip(others) {
        let Some(pod) = pod else { continue };
        assert_eq!(other.as_ref().map(Identity::of), Some(Identity::of(pod)));
    }
}

/// Formats results, so that they can be compared.
fn said<T: Debug>(all: &[Result<T, SourceError>]) -> Vec<String> {
    all.iter().map(|one| one.as_ref().map_or_else(ToString::to_string, |one| format!("{one:?}"))).collect()
}

async fn watched<T: Decode>(body: &[u8], chunk: usize) -> Vec<Event<T>> {
    let options = WatchOptions { version: Some("1".into()), timeout: Duration::from_secs(60), ..Default::default() };
    match source::<T>(body, chunk).watch(options).await {
        Ok(events) => events.collect().await,
        Err(error) => vec![Err(error)],
    }
}

async fn listed<T: Decode>(body: &[u8], chunk: usize) -> Vec<Part<T>> {
    match source::<T>(body, chunk).list(ListOptions::default()).await {
        Ok(parts) => parts.collect().await,
        Err(error) => vec![Err(error)],
    }
}

/// A source of pods whose server answers every request with these bytes.
fn source<T: Decode>(body: &[u8], chunk: usize) -> KubeSource<T> {
    let chunks: Vec<Bytes> = body.chunks(chunk).map(Bytes::copy_from_slice).collect();
    let service = tower::service_fn(move |_: http::Request<kube_client::client::Body>| {
        let frames = chunks.clone().into_iter().map(|chunk| Ok::<_, std::io::Error>(http_body::Frame::data(chunk)));
        let response = http::Response::builder().header("content-type", "application/json");
        async move { response.body(StreamBody::new(stream::iter(frames))) }
    });
    let pods = kube_core::ApiResource::erase::<Pod>(&());
    KubeSource::of(Client::new(service, "default"), pods).options(&InformerOptions::new().object_limit(LIMIT))
}
