//! Request bodies in protobuf, as a Go client sends them.

use crate::support::*;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::ServiceExt;

/// What client-go sends with a body in protobuf.
const ACCEPT: &str = "application/vnd.kubernetes.protobuf, */*";

#[tokio::test(start_paused = true)]
async fn go_client_writes_in_protobuf_and_reads_json() {
    let server = server();
    // The kind in an envelope, then a ConfigMap with a name and one entry.
    let body = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x0d\x0a\x03\x0a\x01p\x12\x06\x0a\x01k\x12\x01v";
    let request = Request::post(CONFIG_MAPS).header("accept", ACCEPT);
    let request = request.header("content-type", "application/vnd.kubernetes.protobuf");
    let request = request.body(Full::new(Bytes::from_static(body))).unwrap();
    let (parts, body) = server.oneshot(request).await.unwrap().into_parts();
    assert_eq!((parts.status.as_u16(), &parts.headers["content-type"]), (201, &"application/json".parse().unwrap()));
    let created: Value = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap();
    assert_eq!((&created["metadata"]["name"], &created["data"]["k"]), (&"p".into(), &"v".into()));
}
