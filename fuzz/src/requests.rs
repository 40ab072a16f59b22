//! Requests of a client, for the embedded server.

use bytes::Bytes;
use kube_embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::ask::{Ask, encoded};

/// Any method, path, query and body, a line each. The server always answers, and never with an internal error.
pub fn routes(input: &[u8]) {
    let server = small();
    let mut parts = input.splitn(4, |byte| *byte == b'\n').map(String::from_utf8_lossy);
    let method = parts.next().unwrap_or_default();
    let target = parts.next().unwrap_or_default();
    let content_type = parts.next().unwrap_or_default();
    let body = parts.next().unwrap_or_default();
    crate::run(answer(&server, &method, &target, &content_type, body.as_bytes().to_vec()));
    intact(&server);
}

/// Any continue token: the server accepts or refuses it, and lists no object twice.
pub fn continue_tokens(input: &[u8]) {
    let Ok(token) = std::str::from_utf8(input) else { return };
    let server = small();
    let target = format!("/api/v1/configmaps?limit=1&continue={}", encoded(token));
    let (code, body) = crate::run(answer(&server, "GET", &target, "", Vec::new()));
    match code {
        200 => {
            let list: Value = serde_json::from_slice(&body).expect("a list");
            assert!(list["items"].as_array().is_some_and(|items| items.len() <= 2), "{list}");
        }
        400 | 410 => {}
        other => panic!("{token:?}: {other}"),
    }
}

/// Any patch, of the type in the first byte: the server applies or refuses it, and the object keeps its identity.
pub fn patches(input: &[u8]) {
    let Some((kind, patch)) = input.split_first() else { return };
    let kinds =
        ["application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json"];
    let kind = kinds[usize::from(*kind) % kinds.len()];
    let server = small();
    let target = "/api/v1/namespaces/default/configmaps/a";
    crate::run(answer(&server, "PATCH", target, kind, patch.to_vec()));
    intact(&server);
}

/// Any body for create, update and delete: the server accepts or refuses it.
pub fn writes(input: &[u8]) {
    let server = small();
    let collection = "/api/v1/namespaces/default/configmaps";
    let object = "/api/v1/namespaces/default/configmaps/a";
    for (method, target) in [("POST", collection), ("PUT", object), ("DELETE", object)] {
        for kind in ["application/json", "application/yaml"] {
            crate::run(answer(&server, method, target, kind, input.to_vec()));
        }
    }
    let protobuf = "application/vnd.kubernetes.protobuf";
    crate::run(answer(&server, "DELETE", "/api/v1/namespaces/default/configmaps/b", protobuf, input.to_vec()));
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    crate::run(answer(&server, "POST", definitions, "application/json", input.to_vec()));
}

/// Creates a server with two config maps.
fn small() -> ApiServer {
    let server = ApiServer::builder().seed(1).build();
    for name in ["a", "b"] {
        let map = json!({"metadata": {"name": name, "labels": {"app": name}}, "data": {"list": "1", "text": "x"}});
        server.create("configmaps", Some("default"), map).expect("a config map");
    }
    server
}

/// Checks that stored objects have their kind and can be found by their name.
fn intact(server: &ApiServer) {
    let (_, objects) = server.list("configmaps").expect("a list");
    for object in objects {
        assert_eq!((&object["kind"], &object["apiVersion"]), (&json!("ConfigMap"), &json!("v1")));
        let metadata = &object["metadata"];
        let namespace = metadata["namespace"].as_str();
        let name = metadata["name"].as_str().expect("a name");
        assert!(metadata["uid"].is_string() && metadata["resourceVersion"].is_string(), "{object}");
        assert_eq!(server.get("configmaps", namespace, name).expect("the object exists"), object);
    }
}

/// Sends a request, and returns code and body of the response; of a watch only the code.
pub(crate) async fn answer(
    server: &ApiServer,
    method: &str,
    target: &str,
    content_type: &str,
    body: Vec<u8>,
) -> (u16, Bytes) {
    let answer = Ask { method, target, content_type, body, ..Ask::default() }.send(server).await;
    (answer.code, answer.body)
}
