//! A server with a few objects, informers for them, and a router.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use futures_util::StreamExt as _;
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube_embedded_apiserver::ApiServer;
use kube_informer::{SharedInformer, SharedInformerFactory};
use kube_informer_inspect::Inspection;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// The data of every Secret.
pub(crate) const HIDDEN: &str = "aHVudGVyMg==";
/// Far longer than any step takes on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Informers for pods, config maps and secrets. Pods have an index by node and a handler.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    pub(crate) factory: SharedInformerFactory,
    pub(crate) pods: SharedInformer<Pod>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl World {
    /// Creates a world and waits until all informers are synced.
    pub(crate) async fn new() -> Self {
        let world = Self::before_start();
        world.factory.start().unwrap();
        world.factory.synced().within(LIMIT).await.unwrap();
        world
    }

    pub(crate) fn before_start() -> Self {
        let server = ApiServer::new();
        for (name, node) in [("a", "worker-1"), ("b", "worker-2"), ("c", "worker-1")] {
            server.create("pods", Some("web"), pod(name, node)).unwrap();
        }
        server.create("configmaps", Some("web"), json!({"metadata": {"name": "m"}, "data": {"color": "red"}})).unwrap();
        let annotations =
            json!({"kubectl.kubernetes.io/last-applied-configuration": format!("{{\"data\":{{\"p\":\"{HIDDEN}\"}}}}")});
        let secret = json!({"metadata": {"name": "s", "annotations": annotations}, "data": {"p": HIDDEN}});
        server.create("secrets", Some("web"), secret).unwrap();
        let factory = SharedInformerFactory::new(server.client());
        let pods = factory.informer::<Pod>().unwrap();
        pods.add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone()).unwrap();
        pods.register().name("audit").on_event(|_| {});
        factory.informer::<ConfigMap>().unwrap();
        let secrets = factory.informer::<Secret>().unwrap();
        let held = |secret: &Secret| {
            let data = secret.data.iter().flatten();
            data.map(|(_, value)| String::from_utf8_lossy(&value.0).into_owned()).collect::<Vec<_>>()
        };
        secrets.add_index("held", held).unwrap();
        Self { server, factory, pods }
    }

    pub(crate) fn inspection(&self) -> Inspection {
        Inspection::of(self.factory.weak_informers())
    }

    pub(crate) fn router(&self) -> Router {
        self.inspection().open().router()
    }

    /// Waits until an object in the cache of pods meets a condition.
    pub(crate) async fn pods_have(&self, key: &str, says: impl Fn(&Pod) -> bool + Send + Sync + 'static) {
        self.pods.wait_for(key, move |pod| pod.is_some_and(&says)).within(LIMIT).await.unwrap();
    }
}

pub(crate) fn pod(name: &str, node: &str) -> Value {
    let spec = json!({"nodeName": node, "containers": [{"name": "main", "image": "shop:1"}]});
    json!({"metadata": {"name": name, "labels": {"app": "shop"}}, "spec": spec})
}

/// Sends a GET request.
pub(crate) async fn get(router: &Router, path: &str) -> Reply {
    send(router, Request::get(path).body(Body::empty()).unwrap()).await
}

/// Sends a GET request that succeeds, and returns its decoded response.
pub(crate) async fn answer<T: DeserializeOwned>(router: &Router, path: &str) -> T {
    let reply = get(router, path).await;
    assert_eq!(reply.status, StatusCode::OK, "{path}: {}", reply.text);
    serde_json::from_str(&reply.text).unwrap()
}

pub(crate) async fn with_method(router: &Router, method: Method, path: &str) -> Reply {
    send(router, Request::builder().method(method).uri(path).body(Body::empty()).unwrap()).await
}

pub(crate) async fn send(router: &Router, request: Request<Body>) -> Reply {
    let response = router.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = tokio::time::timeout(LIMIT, body.collect()).await.unwrap().unwrap().to_bytes();
    Reply { status: parts.status, headers: parts.headers, text: String::from_utf8(bytes.to_vec()).unwrap() }
}

/// A stream of server-sent events.
pub(crate) struct Events {
    body: axum::body::BodyDataStream,
    text: String,
}

impl Events {
    pub(crate) async fn open(router: &Router, path: &str) -> Self {
        let response = router.clone().oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response.into_body().into_data_stream(), text: String::new() }
    }

    /// Waits for the next event, and returns its name and data; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (name, data) = event.split_once('\n').unwrap();
                let name = name.strip_prefix("event: ").unwrap().to_owned();
                let data = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
                self.text = rest.to_owned();
                return Some((name, data));
            }
            let more = tokio::time::timeout(LIMIT, self.body.next()).await.expect("an event arrives within a minute");
            self.text.push_str(std::str::from_utf8(&more?.unwrap()).unwrap());
        }
    }

    /// Waits for an event of this name that meets a condition, and returns its data.
    pub(crate) async fn find(&mut self, name: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let found = async {
            loop {
                let (event, data) = self.next().await.expect("the stream is open");
                if event == name && holds(&data) {
                    return data;
                }
            }
        };
        tokio::time::timeout(LIMIT, found).await.expect("the event arrives within a minute")
    }
}
