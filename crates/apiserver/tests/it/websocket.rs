//! Watches over WebSockets.

use crate::support::*;
use futures_util::{SinkExt, StreamExt};
use http::Request;
use kube_embedded_apiserver::{ApiServer, HttpServer};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

const WATCH: &str = "/api/v1/namespaces/default/configmaps?watch=true";

/// Returns a request for an upgrade, as fabric8's client sends it.
fn upgrade(listening: &HttpServer, path: &str) -> Request<()> {
    let mut request = format!("ws://{}{path}", listening.addr()).into_client_request().unwrap();
    request.headers_mut().insert("origin", listening.url().parse().unwrap());
    request
}

async fn open(listening: &HttpServer, request: Request<()>) -> Result<WebSocketStream<TcpStream>, u16> {
    let stream = TcpStream::connect(listening.addr()).await.unwrap();
    match client_async(request, stream).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(response)) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

async fn next(socket: &mut WebSocketStream<TcpStream>) -> Message {
    socket.next().await.expect("a message").unwrap()
}

/// Returns the next event, which must be a text message with one line.
async fn next_event(socket: &mut WebSocketStream<TcpStream>) -> String {
    let message = next(socket).await.into_text().unwrap();
    let line = message.as_str().strip_suffix('\n').expect("a line");
    told(&serde_json::from_str::<Value>(line).unwrap())
}

#[tokio::test]
async fn each_event_of_a_watch_is_one_message() {
    let server = server();
    put_config_map(&server, "a");
    put_config_map(&server, "b");
    let listening = server.serve("127.0.0.1:0").await.unwrap();
    let mut request = upgrade(
        &listening,
        &format!("{WATCH}&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
    );
    request.headers_mut().insert("accept-encoding", "gzip".parse().unwrap());
    let mut socket = open(&listening, request).await.unwrap();
    for expected in ["ADDED a", "ADDED b", "BOOKMARK"] {
        assert_eq!(next_event(&mut socket).await, expected);
    }
    socket.send(Message::Text("messages of the client have no effect".into())).await.unwrap();
    socket.send(Message::Ping("7".into())).await.unwrap();
    assert_eq!(next(&mut socket).await, Message::Pong("7".into()));
    put_config_map(&server, "c");
    assert_eq!(next_event(&mut socket).await, "ADDED c");
    socket.close(None).await.unwrap();
    assert!(next(&mut socket).await.is_close());
    assert!(socket.next().await.is_none());
    listening.stop().await;
    assert_eq!(server.open_watches(), 0);
}

#[tokio::test]
async fn the_end_of_a_watch_closes_the_socket_and_a_broken_watch_does_not() {
    let server = server();
    let listening = server.serve("127.0.0.1:0").await.unwrap();
    let mut socket = open(&listening, upgrade(&listening, &format!("{WATCH}&timeoutSeconds=1"))).await.unwrap();
    let Message::Close(Some(frame)) = next(&mut socket).await else { panic!("no close frame") };
    assert_eq!(frame.code, CloseCode::Normal);
    put_config_map(&server, "a");
    let mut socket = open(&listening, upgrade(&listening, WATCH)).await.unwrap();
    assert_eq!(next_event(&mut socket).await, "ADDED a");
    server.disconnect_watches();
    assert!(socket.next().await.is_some_and(|ended| ended.is_err()));
    listening.stop().await;
}

#[tokio::test]
async fn events_in_protobuf_are_binary_messages() {
    let server = server();
    put_config_map(&server, "a");
    let listening = server.serve("127.0.0.1:0").await.unwrap();
    let mut request = upgrade(&listening, WATCH);
    let accept = "application/vnd.kubernetes.protobuf;stream=watch";
    request.headers_mut().insert("accept", accept.parse().unwrap());
    let mut socket = open(&listening, request).await.unwrap();
    let Message::Binary(event) = next(&mut socket).await else { panic!("a text message") };
    // The type is the first field of the event. The length prefix of the plain stream is missing.
    assert!(event.starts_with(b"\x0a\x05ADDED\x12"), "{event:?}");
    listening.stop().await;
}

#[tokio::test]
async fn a_handshake_is_judged_as_by_kube_apiserver() {
    let server = server();
    let listening = server.serve("127.0.0.1:0").await.unwrap();
    let with = async |path: &str, name: &'static str, value: Option<&str>| {
        let mut request = upgrade(&listening, path);
        match value {
            Some(value) => drop(request.headers_mut().insert(name, value.parse().unwrap())),
            None => drop(request.headers_mut().remove(name)),
        }
        open(&listening, request).await.err()
    };
    assert_eq!(with(WATCH, "origin", None).await, Some(403));
    assert_eq!(with(WATCH, "origin", Some("http://evil.example.com")).await, Some(403));
    assert_eq!(with(WATCH, "sec-websocket-protocol", Some("one, two")).await, Some(400));
    assert_eq!(with(WATCH, "sec-websocket-protocol", Some("one")).await, None, "it is sent back");
    assert_eq!(with(WATCH, "accept", Some("*/*")).await, None);
    // Nothing but a watch is upgraded, and the error of a watch is an ordinary response.
    assert_eq!(with(CONFIG_MAPS, "accept", Some("*/*")).await, Some(200));
    assert_eq!(with("/api/v1/nopes?watch=true", "accept", Some("*/*")).await, Some(404));
    listening.stop().await;
}

#[tokio::test]
async fn a_token_may_be_a_subprotocol() {
    let server = ApiServer::builder().seed(1).token("secret").build();
    let listening = server.serve("127.0.0.1:0").await.unwrap();
    // "c2VjcmV0" is "secret" in base64.
    const RIGHT: &str = "base64url.bearer.authorization.k8s.io.c2VjcmV0";
    for (protocols, refused) in [
        (format!("{RIGHT}, base64.binary.k8s.io"), None),
        (format!("base64.binary.k8s.io, {RIGHT}x"), Some(401)),
        (RIGHT.to_owned(), Some(401)),
        ("base64.binary.k8s.io".to_owned(), Some(401)),
    ] {
        let mut request = upgrade(&listening, WATCH);
        request.headers_mut().insert("sec-websocket-protocol", protocols.parse().unwrap());
        assert_eq!(open(&listening, request).await.err(), refused, "{protocols}");
    }
    listening.stop().await;
}
