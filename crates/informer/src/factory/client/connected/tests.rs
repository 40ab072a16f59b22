#![allow(clippy::disallowed_methods, reason = "what passes bytes on ends with the test")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_embedded_apiserver::{Action, ApiServer, Fault, Tls, Verb};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, tcp};

use super::*;
use crate::{Selection, SharedInformerFactory};

/// A proxy between a client and a server. It can stop to forward bytes without closing its connections.
#[derive(Clone, Default)]
struct Line {
    open: Arc<AtomicUsize>,
    cut: Arc<AtomicBool>,
}

impl Line {
    /// Returns the port of the proxy.
    async fn to(&self, server: String) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, line) = (listener.local_addr().unwrap().port(), self.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                line.open.fetch_add(1, Ordering::Relaxed);
                line.cut.store(false, Ordering::Relaxed);
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = TcpStream::connect(&server).await.unwrap().into_split();
                let passing = line.clone();
                tokio::spawn(async move {
                    passing.clone().pass(from_client, to_server).await;
                    passing.open.fetch_sub(1, Ordering::Relaxed);
                });
                tokio::spawn(line.clone().pass(from_server, to_client));
            }
        });
        port
    }

    async fn pass(self, mut from: tcp::OwnedReadHalf, mut to: tcp::OwnedWriteHalf) {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = from.read(&mut buffer).await {
            if self.cut.load(Ordering::Relaxed) {
                return std::future::pending().await;
            }
            if to.write_all(&buffer[..read]).await.is_err() {
                return;
            }
        }
    }
}

/// Returns the configuration of a client that connects to a TLS server through the proxy.
async fn config(server: &ApiServer, line: &Line) -> Config {
    let listening = server.serve_tls("127.0.0.1:0", Tls::generate().unwrap()).await.unwrap();
    let url = listening.url();
    let address = url.trim_start_matches("https://").trim_end_matches('/').to_owned();
    let port = line.to(address).await;
    let kubeconfig = listening.kubeconfig().replace(&url, &format!("https://127.0.0.1:{port}"));
    // The API server must run until the end of the test.
    std::mem::forget(listening);
    let kubeconfig = Kubeconfig::from_yaml(&kubeconfig).unwrap();
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap()
}

/// Makes a client that connects through the proxy.
async fn connect(server: &ApiServer, line: &Line, patience: Patience) -> Client {
    client(config(server, line).await, patience).unwrap()
}

/// Starts this many informers, each with a watch of its own.
fn start(client: Client, informers: usize) -> SharedInformerFactory {
    let factory = SharedInformerFactory::new(client);
    for number in 0..informers {
        let selection = Selection::new().labels(format!("number={number}")).unwrap();
        factory.informer_with::<ConfigMap>(crate::InformerRequest::new().select(selection)).unwrap();
    }
    factory.start().unwrap();
    factory
}

fn watching(factory: &SharedInformerFactory) -> usize {
    factory.informers().iter().filter(|informer| informer.health().is_watching()).count()
}

/// Waits until a condition is true.
async fn until(what: &str, reached: impl Fn() -> bool) {
    let start = tokio::time::Instant::now();
    while !reached() {
        assert!(start.elapsed() < Duration::from_secs(60), "never came true: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn fifty_informers_share_one_connection() {
    let (server, line) = (ApiServer::new(), Line::default());
    let factory = start(connect(&server, &line, Patience::default()).await, 50);
    factory.synced().await.unwrap();
    assert_eq!(factory.informers().len(), 50);
    // Connections that were opened before the first one was established are closed again.
    until("one connection", || line.open.load(Ordering::Relaxed) == 1).await;
    until("all watch on the one that is left", || watching(&factory) == 50).await;
    factory.stop().await;
}

#[tokio::test]
async fn streams_beyond_the_limit_of_a_connection_get_another_connection() {
    let (server, line) = (ApiServer::new(), Line::default());
    let patience = Patience { idle: Duration::from_secs(1), ..Patience::default() };
    let client = connect(&server, &line, patience).await;
    let factory = start(client.clone(), 110);
    until("all watch", || watching(&factory) == 110).await;
    let asked = tokio::time::timeout(Duration::from_secs(10), client.apiserver_version()).await;
    asked.expect("nothing holds up another request").unwrap();
    until("two connections", || line.open.load(Ordering::Relaxed) == 2).await;
    assert_eq!(watching(&factory), 110);
    factory.stop().await;
    until("none is kept that nobody uses", || line.open.load(Ordering::Relaxed) == 0).await;
    client.apiserver_version().await.unwrap();
}

#[tokio::test]
async fn a_watch_that_the_server_ends_is_opened_again() {
    let (server, line) = (ApiServer::new(), Line::default());
    let factory = SharedInformerFactory::new(connect(&server, &line, Patience::default()).await);
    let maps = factory.informer::<ConfigMap>().unwrap();
    factory.start().unwrap();
    factory.synced().await.unwrap();
    // `GOAWAY` for the connection, `RST_STREAM` for the stream.
    for (number, action) in [Action::ConnectionClose, Action::ResetAfterEvents(1)].into_iter().enumerate() {
        server.faults().add(Fault::new(action).verb(Verb::Watch).times(1));
        server.disconnect_watches();
        for part in ["a", "b"] {
            let name = format!("{part}-{number}");
            server.create("configmaps", Some("default"), serde_json::json!({"metadata": {"name": name}})).unwrap();
            until(&name, || maps.store().contains(&*format!("default/{name}"))).await;
        }
    }
    let fired = ["connection_close", "reset_after_events"].map(|kind| server.faults().count(kind));
    assert_eq!(fired, [1, 1]);
    factory.stop().await;
}

#[tokio::test]
async fn a_ping_detects_a_dead_connection() {
    let (server, line) = (ApiServer::new(), Line::default());
    let patience = Patience {
        ping_after: Duration::from_millis(300),
        ping_within: Duration::from_secs(2),
        idle: Duration::from_millis(200),
    };
    let factory = SharedInformerFactory::new(connect(&server, &line, patience).await);
    let maps = factory.informer::<ConfigMap>().unwrap();
    factory.start().unwrap();
    factory.synced().await.unwrap();
    // After this its watch is alone on its connection, and no other request uses that connection.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let cut = tokio::time::Instant::now();
    line.cut.store(true, Ordering::Relaxed);
    server.create("configmaps", Some("default"), serde_json::json!({"metadata": {"name": "a"}})).unwrap();
    while maps.store().get("default/a").is_none() {
        assert!(cut.elapsed() < Duration::from_secs(60), "nobody noticed: {:#?}", maps.health());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(line.open.load(Ordering::Relaxed) > 1, "the dead one was never closed by the other side");
    factory.stop().await;
}

/// A watch that is opened again must find the connection that other watches still use.
#[test]
fn a_connection_is_kept_for_longer_than_a_watch_takes() {
    assert!(Patience::default().idle > crate::reflector::SHORTEST_WATCH * 2);
}

#[tokio::test]
async fn a_response_may_have_hundreds_of_headers() {
    let (server, line) = (ApiServer::new(), Line::default());
    server.faults().add(Fault::new(Action::Warnings(300)));
    let client = connect(&server, &line, Patience::default()).await;
    client.apiserver_version().await.unwrap();
}

#[tokio::test]
async fn a_tls_handshake_without_end_fails() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap()).parse().unwrap();
    let mut config = Config::new(url);
    config.connect_timeout = Some(Duration::from_millis(300));
    let client = client(config, Patience::default()).unwrap();
    let asked = tokio::time::timeout(Duration::from_secs(10), client.apiserver_version()).await;
    assert!(asked.expect("it is given up").is_err());
}

#[tokio::test]
async fn the_timeouts_of_the_configuration_apply() {
    let (server, line) = (ApiServer::new(), Line::default());
    let mut config = config(&server, &line).await;
    config.read_timeout = Some(Duration::from_secs(2));
    let client = client(config, Patience::default()).unwrap();
    client.apiserver_version().await.unwrap();
    line.cut.store(true, Ordering::Relaxed);
    let asked = tokio::time::timeout(Duration::from_secs(30), client.apiserver_version()).await;
    assert!(asked.expect("it is given up long before a ping would be missed").is_err());
}
