//! A plain HTTP client of the in-process service.

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use kube_embedded_apiserver::{ApiServer, Body, Resource};
use serde_json::{Value, json};
use std::time::Duration;
use tower::ServiceExt;

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Returns a server that behaves the same in every run.
pub(crate) fn server() -> ApiServer {
    ApiServer::builder().seed(1).with_custom_resource(widgets()).build()
}

/// Returns a custom resource with subresources and a selectable field, `widgets.demo.example.com`.
pub(crate) fn widgets() -> Resource {
    Resource::custom("demo.example.com", "v1", "widgets", "Widget").scalable().selectable("spec.size")
}

/// A response that is read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// Returns the names of a list's items.
    pub(crate) fn names(&self) -> Vec<String> {
        let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
        self.json()["items"].as_array().unwrap().iter().map(name).collect()
    }
}

pub(crate) async fn send(server: &ApiServer, request: Request<Full<Bytes>>) -> Answer {
    let response = server.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    Answer { code: parts.status.as_u16(), headers: parts.headers, text: String::from_utf8(bytes.into()).unwrap() }
}

pub(crate) fn request(method: &str, path: &str, body: Option<&Value>) -> Request<Full<Bytes>> {
    let bytes = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
    let request = Request::builder().method(method).uri(path).header("user-agent", "test/1");
    request.header("content-type", "application/json").body(Full::new(bytes)).unwrap()
}

pub(crate) async fn get(server: &ApiServer, path: &str) -> Answer {
    send(server, request("GET", path, None)).await
}

pub(crate) async fn post(server: &ApiServer, path: &str, body: &Value) -> Answer {
    send(server, request("POST", path, Some(body))).await
}

pub(crate) async fn put(server: &ApiServer, path: &str, body: &Value) -> Answer {
    send(server, request("PUT", path, Some(body))).await
}

pub(crate) async fn delete(server: &ApiServer, path: &str) -> Answer {
    send(server, request("DELETE", path, None)).await
}

/// Sends a body with any media type.
pub(crate) async fn send_as(server: &ApiServer, method: &str, path: &str, media_type: &str, body: &str) -> Answer {
    let request = Request::builder().method(method).uri(path).header("content-type", media_type);
    send(server, request.body(Full::new(Bytes::from(body.to_owned()))).unwrap()).await
}

pub(crate) async fn merge(server: &ApiServer, path: &str, patch: &Value) -> Answer {
    send_as(server, "PATCH", path, "application/merge-patch+json", &patch.to_string()).await
}

pub(crate) fn config_map(name: &str) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"k": "v"}})
}

/// Creates a config map in `default` and returns its version.
pub(crate) fn put_config_map(server: &ApiServer, name: &str) -> u64 {
    version(&server.create("configmaps", Some("default"), config_map(name)).unwrap())
}

pub(crate) fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

/// A watch that is read event by event.
pub(crate) struct Watch {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    body: Body,
    buffer: Vec<u8>,
}

/// The outcome of a read from a watch.
#[derive(Debug)]
pub(crate) enum Seen {
    Event(Value),
    /// A line that is not JSON.
    Garbage,
    /// The stream ended. The text is the rest of an unfinished line.
    End(String),
    /// The connection broke. The text is the rest of an unfinished line.
    Broken(String),
    /// Nothing arrived in the whole time.
    Silence,
}

impl Watch {
    pub(crate) async fn open(server: &ApiServer, path: &str) -> Self {
        Self::of(server.clone().oneshot(request("GET", path, None)).await.unwrap())
    }

    /// Returns the next bytes, as the server sent them.
    pub(crate) async fn bytes(&mut self) -> Bytes {
        self.body.frame().await.unwrap().unwrap().into_data().unwrap()
    }

    pub(crate) fn of(response: Response<Body>) -> Self {
        let (parts, body) = response.into_parts();
        Self { code: parts.status.as_u16(), headers: parts.headers, body, buffer: Vec::new() }
    }

    /// Waits at most this long for the next event.
    pub(crate) async fn next_within(&mut self, wait: Duration) -> Seen {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return match serde_json::from_slice(&line) {
                    Ok(event) => Seen::Event(event),
                    Err(_) => Seen::Garbage,
                };
            }
            match tokio::time::timeout(wait, self.body.frame()).await {
                Err(_) => return Seen::Silence,
                Ok(None) => return Seen::End(self.rest()),
                Ok(Some(Err(_))) => return Seen::Broken(self.rest()),
                Ok(Some(Ok(frame))) => self.buffer.extend_from_slice(frame.data_ref().unwrap()),
            }
        }
    }

    pub(crate) async fn next(&mut self) -> Value {
        match self.next_within(Duration::from_secs(3600)).await {
            Seen::Event(event) => event,
            other => panic!("no event: {other:?}"),
        }
    }

    /// Returns the next event as `TYPE name`.
    pub(crate) async fn told(&mut self) -> String {
        told(&self.next().await)
    }

    pub(crate) async fn is_silent_for(&mut self, wait: Duration) -> bool {
        matches!(self.next_within(wait).await, Seen::Silence)
    }

    /// Returns all events until the stream ends cleanly.
    pub(crate) async fn until_end(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            match self.next_within(Duration::from_secs(7200)).await {
                Seen::Event(event) => events.push(event),
                Seen::End(_) => return events,
                other => panic!("{other:?}"),
            }
        }
    }

    fn rest(&mut self) -> String {
        String::from_utf8(std::mem::take(&mut self.buffer)).unwrap()
    }
}

pub(crate) fn told(event: &Value) -> String {
    let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default();
    format!("{} {name}", event["type"].as_str().unwrap()).trim_end().to_owned()
}

pub(crate) fn ends_initial_events(event: &Value) -> bool {
    event["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true"
}
