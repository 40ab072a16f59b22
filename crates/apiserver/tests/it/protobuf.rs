//! Objects in protobuf from end to end, as a Go client sends and reads them.

use crate::support::*;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use kube_embedded_apiserver::ApiServer;
use tower::ServiceExt;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Sends a body in protobuf, and returns the code and the body of the response.
async fn send(server: &ApiServer, method: &str, path: &str, body: Bytes) -> (u16, Bytes) {
    let request = Request::builder().method(method).uri(path).header("accept", PROTOBUF);
    let request = request.header("content-type", PROTOBUF).body(Full::new(body)).unwrap();
    let (parts, body) = server.clone().oneshot(request).await.unwrap().into_parts();
    assert_eq!(parts.headers["content-type"], PROTOBUF);
    (parts.status.as_u16(), body.collect().await.unwrap().to_bytes())
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_read_in_protobuf_can_be_written_back() {
    let server = server();
    put_config_map(&server, "a");
    let path = format!("{CONFIG_MAPS}/a");
    let (code, read) = send(&server, "GET", &path, Bytes::new()).await;
    assert_eq!((code, read.starts_with(b"k8s\0")), (200, true));
    let before = server.revision();
    let (code, written) = send(&server, "PUT", &path, read.clone()).await;
    assert_eq!((code, &written), (200, &read));
    assert_eq!(server.revision(), before);
    let (code, refused) = send(&server, "GET", &format!("{CONFIG_MAPS}/nope"), Bytes::new()).await;
    assert_eq!((code, refused.starts_with(b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Status")), (404, true));
    assert_eq!(send(&server, "PUT", &path, Bytes::from_static(b"k8s\0\xff")).await.0, 400);
}
