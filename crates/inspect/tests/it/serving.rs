//! The server: on loopback or with a token; `stop` ends all its tasks.

use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt as _;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use kube_informer_inspect::{Inspection, ServeError};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::world::{LIMIT, World};

/// An address that other tests do not use, on Linux, so that its port stays free after the server has stopped.
const OWN: &str = if cfg!(target_os = "linux") { "127.0.0.3:0" } else { "127.0.0.1:0" };

/// Sends a request over a socket, with any host name.
async fn ask(address: std::net::SocketAddr, path: &str, host: &str) -> (StatusCode, String) {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = http1::handshake::<_, Body>(TokioIo::new(stream)).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let request = Request::get(path).header("host", host).body(Body::empty()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(bytes.to_vec()).unwrap())
}

#[tokio::test]
async fn stop_ends_open_streams_and_idle_connections() {
    let world = World::new().await;
    let serving = world.inspection().serve(OWN).await.unwrap();
    let address = serving.address();
    assert_eq!(serving.url(), format!("http://{address}/"));
    assert!(address.ip().is_loopback() && address.port() != 0);
    let (status, text) = ask(address, "/api/informers", &address.to_string()).await;
    assert_eq!(status, StatusCode::OK);
    assert!(text.contains("\"pods\""));

    // An open stream and a silent connection do not delay `stop`.
    let stream = TcpStream::connect(address).await.unwrap();
    let silent = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = http1::handshake::<_, Body>(TokioIo::new(stream)).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let request = Request::get("/api/stream").header("host", "localhost").body(Body::empty()).unwrap();
    let mut listening = sender.send_request(request).await.unwrap().into_body();
    assert!(listening.frame().await.unwrap().is_ok());
    let stops = tokio::time::Instant::now();
    tokio::time::timeout(LIMIT, serving.stop()).await.expect("the server stops");
    // A stream that was not read within two seconds is cut off.
    let cut_off = stops.elapsed() >= Duration::from_secs(2);
    while let Some(frame) = listening.frame().await {
        assert!(frame.is_ok() || cut_off, "the stream ends without an error");
        if frame.is_err() {
            break;
        }
    }
    drop(silent);
    assert!(TcpStream::connect(address).await.is_err(), "the port is closed");
    assert_eq!(world.pods.health().handlers.len(), 1, "recording has ended");
    world.factory.stop().await;
}

#[tokio::test]
async fn a_foreign_host_name_is_refused_on_loopback() {
    let serving = Inspection::of(Vec::new).serve("127.0.0.1:0").await.unwrap();
    let (status, text) = ask(serving.address(), "/api/informers", "rebound.example").await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(text.contains("localhost"), "{text}");
    for own in ["localhost:1234", "127.0.0.1", "[::1]:80"] {
        assert_eq!(ask(serving.address(), "/livez", own).await.0, StatusCode::OK, "{own}");
    }
    serving.stop().await;
    let serving = Inspection::of(Vec::new).token("t").serve("127.0.0.1:0").await.unwrap();
    assert_eq!(
        ask(serving.address(), "/api/informers?token=t", "inner.example").await.0,
        StatusCode::OK,
        "with a token any host name is accepted"
    );
    assert_eq!(ask(serving.address(), "/api/informers", "localhost").await.0, StatusCode::UNAUTHORIZED);
    serving.stop().await;
}

#[tokio::test]
async fn an_address_open_to_other_machines_needs_a_token() {
    let open = Inspection::of(Vec::new).serve("0.0.0.0:0").await;
    assert!(matches!(open, Err(ServeError::NeedsToken(address)) if address.ip().is_unspecified()), "{open:?}");
    let open = Inspection::of(Vec::new).serve("[::]:0").await;
    assert!(matches!(open, Err(ServeError::NeedsToken(_))), "{open:?}");
    let empty = Inspection::of(Vec::new).token("").serve("127.0.0.1:0").await;
    assert!(matches!(empty, Err(ServeError::EmptyToken)), "{empty:?}");
    let wrong = Inspection::of(Vec::new).serve("no address").await;
    assert!(matches!(wrong, Err(ServeError::Address(_))), "{wrong:?}");
}

#[tokio::test]
async fn an_address_in_use_is_an_error() {
    let first = Inspection::of(Vec::new).serve("127.0.0.1:0").await.unwrap();
    let second = Inspection::of(Vec::new).serve(first.address()).await;
    assert!(matches!(second, Err(ServeError::Listen { address, .. }) if address == first.address()), "{second:?}");
    first.stop().await;
}

#[tokio::test]
async fn a_drop_closes_the_port() {
    let serving = Inspection::of(Vec::new).serve(OWN).await.unwrap();
    let address = serving.address();
    drop(serving);
    let gone = async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LIMIT, gone).await.expect("the port is closed");
}
