//! A plain client of the cluster under test.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use kube_client::client::Body;
use kube_client::{Client, Config};
use serde_json::{Value, json};
use std::time::Duration;

/// One case of the table.
pub(crate) struct Case {
    pub(crate) number: u32,
    pub(crate) run: Box<dyn FnOnce(Cluster) -> BoxFuture<'static, ()> + Send>,
}

/// Returns a case: its number in the specification, and its checks.
pub(crate) fn case<F>(number: u32, run: impl FnOnce(Cluster) -> F + Send + 'static) -> Case
where
    F: Future<Output = ()> + Send + 'static,
{
    Case { number, run: Box::new(move |cluster| Box::pin(run(cluster))) }
}

/// The cluster under test, with a namespace for one case.
#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    pub(crate) namespace: String,
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

    pub(crate) fn at(&self, pointer: &str) -> Value {
        self.json().pointer(pointer).cloned().unwrap_or(Value::Null)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
        self.json()["items"].as_array().unwrap().iter().map(name).collect()
    }

    pub(crate) fn version(&self) -> u64 {
        version(&self.json())
    }

    /// Asserts the code and the reason.
    pub(crate) fn is(&self, code: u16, reason: &str) {
        assert_eq!(self.code, code, "{}", self.text);
        assert_eq!(self.json()["reason"].as_str().unwrap_or_default(), reason, "{}", self.text);
    }
}

pub(crate) fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

impl Cluster {
    pub(crate) fn connect(server: &Config, number: u32) -> Self {
        let mut config = server.clone();
        config.default_retry = false;
        let process = std::process::id();
        Self { client: Client::try_from(config).unwrap(), namespace: format!("conformance-{process}-{number}") }
    }

    pub(crate) async fn create_namespace(&self) {
        let body = json!({"metadata": {"name": self.namespace}});
        assert_eq!(self.post("/api/v1/namespaces", &body).await.code, 201);
    }

    /// The config maps of the case's namespace.
    pub(crate) fn config_maps(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.namespace)
    }

    /// The config maps that the case itself created.
    pub(crate) fn own(&self, query: &str) -> String {
        format!("{}?labelSelector=t%3D1&{query}", self.config_maps())
    }

    pub(crate) fn config_map(&self, name: &str) -> String {
        format!("{}/{name}", self.config_maps())
    }

    pub(crate) fn widgets(&self) -> String {
        format!("/apis/demo.example.com/v1/namespaces/{}/widgets", self.namespace)
    }

    pub(crate) fn pods(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace)
    }

    pub(crate) async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Answer {
        let (parts, body) = self.open(method, path, headers, body).await;
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Answer { code: parts.status.as_u16(), headers: parts.headers, text }
    }

    async fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> (http::response::Parts, Body) {
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "user-agent") {
            request = request.header("user-agent", "conf/1");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.client.send(request.body(Body::from(body)).unwrap()).await.unwrap().into_parts()
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], Vec::new()).await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Answer {
        self.send("GET", path, &[("accept", accept)], Vec::new()).await
    }

    pub(crate) async fn write(&self, method: &str, path: &str, media_type: &str, body: &Value) -> Answer {
        self.send(method, path, &[("content-type", media_type)], body.to_string().into_bytes()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.write("POST", path, "application/json", body).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.write("PUT", path, "application/json", body).await
    }

    pub(crate) async fn merge(&self, path: &str, body: &Value) -> Answer {
        self.write("PATCH", path, "application/merge-patch+json", body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[], Vec::new()).await
    }

    /// Creates a config map with label `t=1` and returns it.
    pub(crate) async fn make(&self, name: &str) -> Value {
        let created = self.post(&self.config_maps(), &config_map(name)).await;
        assert_eq!(created.code, 201, "{}", created.text);
        created.json()
    }

    /// Returns the current version of a list of config maps.
    pub(crate) async fn now(&self) -> u64 {
        self.get(&self.config_maps()).await.version()
    }

    /// Waits until a list at version 0 shows all writes. The server answers it from its watch cache, which may lag
    /// behind.
    pub(crate) async fn catch_up(&self) {
        // The server answers a list of the current state from the same cache, once the cache is current.
        self.now().await;
    }

    pub(crate) async fn watch(&self, path: &str) -> Watch {
        self.watch_as(path, &[("accept", "application/json")]).await
    }

    pub(crate) async fn watch_as(&self, path: &str, headers: &[(&str, &str)]) -> Watch {
        let (parts, body) = self.open("GET", path, headers, Vec::new()).await;
        Watch { code: parts.status.as_u16(), headers: parts.headers, body, buffer: Vec::new() }
    }
}

pub(crate) fn config_map(name: &str) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "labels": {"t": "1"}}, "data": {"k": "v"}})
}

pub(crate) fn widget(name: &str, size: i64) -> Value {
    json!({"kind": "Widget", "apiVersion": "demo.example.com/v1", "metadata": {"name": name}, "spec": {"size": size, "replicas": 1}})
}

/// A watch that is read event by event.
pub(crate) struct Watch {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    body: Body,
    buffer: Vec<u8>,
}

impl Watch {
    /// Returns the next event, or `None` at the end. Panics if no event arrives within 30 seconds.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let bytes = self.bytes().await?;
            self.buffer.extend_from_slice(&bytes);
        }
    }

    pub(crate) async fn bytes(&mut self) -> Option<Bytes> {
        let frame = tokio::time::timeout(Duration::from_secs(30), self.body.frame()).await.expect("in time")?;
        Some(frame.unwrap().into_data().unwrap())
    }

    pub(crate) async fn event(&mut self) -> Value {
        self.next().await.expect("an event")
    }

    /// Returns the next event as `TYPE name`.
    pub(crate) async fn told(&mut self) -> String {
        told(&self.event().await)
    }

    pub(crate) async fn rest(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

pub(crate) fn told(event: &Value) -> String {
    let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default();
    format!("{} {name}", event["type"].as_str().unwrap()).trim_end().to_owned()
}

pub(crate) fn ends_initial_events(event: &Value) -> bool {
    event["type"] == "BOOKMARK" && event["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true"
}
