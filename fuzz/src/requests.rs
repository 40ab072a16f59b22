//! What a client asks, to the embedded server.

use bytes::Bytes;
use kube_embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::ask::{Ask, encoded};

/// Any method, path, query and body, one line each: an answer always comes, and it never says that the server is broken.
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

/// Any continue token: taken or refused, and nothing is listed twice.
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

/// Any patch, the first byte says of which type: applied or refused, and the object stays what it is.
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

/// Any body to create, replace or delete with: taken or refused.
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

/// A server with two config maps.
fn small() -> ApiServer {
    let server = ApiServer::builder().seed(1).build();
    for name in ["a", "b"] {
        let map = json!({"metadata": {"name": name, "labels": {"app": name}}, "data": {"list": "1", "text": "x"}});
        server.create("configmaps", Some("default"), map).expect("a config map");
    }
    server
}

/// Whatever was asked: what is stored is still of its kind, and under its own name.
fn intact(server: &ApiServer) {
    let (_, objects) = server.list("configmaps").expect("a list");
    for object in objects {
        assert_eq!((&object["kind"], &object["apiVersion"]), (&json!("ConfigMap"), &json!("v1")));
        let metadata = &object["metadata"];
        let namespace = metadata["namespace"].as_str();
        let name = metadata["name"].as_str().expect("a name");
        assert!(metadata["uid"].is_string() && metadata["resourceVersion"].is_string(), "{object}");
        assert_eq!(server.get("configmaps", namespace, name).expect("it is there"), object);
    }
}

/// The code and the body of an answer; of a watch, nothing but the code.
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
