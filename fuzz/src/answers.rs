//! What a server answers, to a client.

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use kube_core::metadata::PartialObjectMeta;
use kube_informer::InformerOptions;
use kube_informer::representation::{Decode, Identity};
use kube_informer::source::kube::KubeSource;
use kube_informer::source::{Decoded, ListOptions, ListPart, ListWatch, WatchOptions};
use serde::de::IgnoredAny;
use std::fmt::Debug;
use std::time::Duration;

/// Small, so that the fuzzer finds its way beyond it.
const LIMIT: usize = 4 * 1024;

/// A watch: however its bytes are cut into chunks, the same events and the same errors come out, for every type.
pub fn watch(input: &[u8]) {
    crate::run(async {
        let whole = watched::<Pod>(input, input.len().max(1)).await;
        for size in [1, 7] {
            assert_eq!(watched::<Pod>(input, size).await, whole, "in chunks of {size}");
        }
        watched::<Identity>(input, 64).await;
        watched::<PartialObjectMeta<Pod>>(input, 64).await;
    });
}

/// A list: however its bytes are cut into chunks, the same comes out; a whole list of which every item could be read is
/// valid JSON, and holds as many items.
pub fn list(input: &[u8]) {
    crate::run(async {
        let (whole, items) = listed::<Pod>(input, input.len().max(1)).await;
        for size in [1, 7] {
            assert_eq!(listed::<Pod>(input, size).await.0, whole, "in chunks of {size}");
        }
        listed::<Identity>(input, 64).await;
        let Some(items) = items else { return };
        let plain: Plain = serde_json::from_slice(input).expect("a whole list is JSON");
        assert_eq!(items, plain.items.map_or(0, |items| items.len()), "as many items as a plain parser finds");
    });
}

#[derive(serde::Deserialize)]
struct Plain {
    items: Option<Vec<IgnoredAny>>,
}

async fn watched<T: Decode + Debug>(body: &[u8], chunk: usize) -> Vec<String> {
    let options = WatchOptions { version: Some("1".into()), timeout: Duration::from_secs(60), ..Default::default() };
    match source::<T>(body, chunk).watch(options).await {
        Ok(events) => events.map(|event| word(&event)).collect().await,
        Err(error) => vec![error.to_string()],
    }
}

/// What came in words, and how many items if the list was complete and every item could be read.
async fn listed<T: Decode + Debug>(body: &[u8], chunk: usize) -> (Vec<String>, Option<usize>) {
    let mut words = Vec::new();
    match source::<T>(body, chunk).list(ListOptions::default()).await {
        Err(error) => (vec![error.to_string()], None),
        Ok(mut parts) => {
            let (mut items, mut readable, mut complete) = (0, true, None);
            while let Some(part) = parts.next().await {
                words.push(word(&part));
                match part {
                    Ok(ListPart::Item(Decoded::Object(_))) => items += 1,
                    Ok(ListPart::Item(Decoded::Bad(_))) => readable = false,
                    Ok(ListPart::End(_)) => complete = readable.then_some(items),
                    Err(_) => complete = None,
                }
            }
            (words, complete)
        }
    }
}

fn word<T: Debug, E: std::fmt::Display>(result: &Result<T, E>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => error.to_string(),
    }
}

/// Pods from a server that answers everything with these bytes.
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
