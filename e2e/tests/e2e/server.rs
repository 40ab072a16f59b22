//! Plain requests to a server, and the list of its objects.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Request;
use kube_client::client::Body;
use kube_client::{Client, Config};
use serde_json::{Value, json};
use tokio::time::Instant;

/// The objects of a collection, by key.
pub(crate) type Objects = BTreeMap<String, Value>;

/// A collection that is written and watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Collection {
    ConfigMaps,
    Widgets,
}

impl Collection {
    /// Returns the path of the collection, in one namespace or in all.
    pub(crate) fn path(self, namespace: Option<&str>) -> String {
        let (root, plural) = match self {
            Self::ConfigMaps => ("/api/v1", "configmaps"),
            Self::Widgets => ("/apis/demo.example.com/v1", "widgets"),
        };
        match namespace {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}"),
            None => format!("{root}/{plural}"),
        }
    }
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.demo.example.com";
/// The time limit for the slowest request; a stopped server is given up earlier.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client for a server. It panics if a required response is missing, and does not retry.
#[derive(Clone)]
pub(crate) struct Server {
    client: Client,
}

impl Server {
    pub(crate) fn connect(config: Config) -> Self {
        Self { client: kube_informer::client_from(config).unwrap() }
    }

    /// Sends a request; returns `None` if there is no complete response in time.
    pub(crate) async fn try_send(
        &self,
        method: &str,
        path: &str,
        body: &Value,
        within: Duration,
    ) -> Option<(u16, Value)> {
        let media_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path).header("content-type", media_type);
        let request = request.body(Body::from(bytes)).unwrap();
        let answer = async {
            let (parts, body) = self.client.send(request).await.ok()?.into_parts();
            let bytes = body.collect_bytes().await.ok()?;
            Some((parts.status.as_u16(), serde_json::from_slice(&bytes).unwrap_or_default()))
        };
        tokio::time::timeout(within, answer).await.ok().flatten()
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        self.try_send(method, path, body, PATIENCE).await.unwrap_or_else(|| panic!("{method} {path}: no answer"))
    }

    pub(crate) async fn create_namespace(&self, name: &str) {
        let (code, answer) = self.send("POST", "/api/v1/namespaces", &json!({"metadata": {"name": name}})).await;
        assert!(code == 201 || code == 409, "{answer}");
    }

    /// Returns all current objects of a collection, and the version of the list.
    pub(crate) async fn list(&self, collection: Collection) -> (String, Objects) {
        let deadline = Instant::now() + PATIENCE;
        let mut list = loop {
            match self.send("GET", &collection.path(None), &Value::Null).await {
                (200, list) => break list,
                // A server that has just started, or has a new CRD, may answer 429.
                (429, _) if Instant::now() < deadline => tokio::time::sleep(Duration::from_millis(100)).await,
                (code, answer) => panic!("{code} {answer}"),
            }
        };
        let text = |object: &Value, field: &str| object["metadata"][field].as_str().unwrap().to_owned();
        let key = |object: &Value| format!("{}/{}", text(object, "namespace"), text(object, "name"));
        let Value::Array(items) = list["items"].take() else { panic!("no list") };
        (text(&list, "resourceVersion"), items.into_iter().map(|object| (key(&object), object)).collect())
    }

    /// Installs a CRD with subresources and a selectable field, and waits until it is served.
    pub(crate) async fn define_widgets(&self) {
        let (code, answer) = self.send("POST", DEFINITIONS, &widgets()).await;
        assert_eq!(code, 201, "{answer}");
        self.wait_for_widgets().await;
    }

    /// Waits until widgets are served, which takes some time after a restart.
    pub(crate) async fn wait_for_widgets(&self) {
        // Discovery is updated last.
        while self.send("GET", "/apis/demo.example.com/v1", &Value::Null).await.0 != 200
            || self.send("GET", &Collection::Widgets.path(None), &Value::Null).await.0 != 200
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Deletes the CRD and with it all widgets, and waits until it is gone.
    pub(crate) async fn remove_widgets(&self) {
        assert_eq!(self.send("DELETE", WIDGETS, &Value::Null).await.0, 200);
        while self.send("GET", WIDGETS, &Value::Null).await.0 != 404 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn widgets() -> Value {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "widgets.demo.example.com"},
        "spec": {
            "group": "demo.example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {
                        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                        "properties": {"size": {"type": "integer"}, "replicas": {"type": "integer"}},
                    },
                    "status": anything,
                }}},
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                }},
                "selectableFields": [{"jsonPath": ".spec.size"}],
            }],
        },
    })
}
