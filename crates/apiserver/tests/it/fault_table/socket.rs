//! Faults that need a connection: over TCP, TLS and HTTP/2.

use super::*;
use h2::client::SendRequest;
use http::Request;
use kube_embedded_apiserver::HttpServer;
use std::io::ErrorKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const DEADLINE: Duration = Duration::from_secs(30);

async fn serve(fault: Fault) -> (ApiServer, HttpServer) {
    let server = two();
    server.faults().add(fault);
    let listening = server.serve("127.0.0.1:0").await.unwrap();
    (server, listening)
}

/// Returns everything that arrives on a connection after one request, and how the connection ends.
async fn exchanged(listening: &HttpServer, path: &str) -> (String, Result<(), ErrorKind>) {
    let mut stream = TcpStream::connect(listening.addr()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let ended = tokio::time::timeout(DEADLINE, stream.read_to_end(&mut bytes)).await.unwrap();
    (String::from_utf8(bytes).unwrap(), ended.map(|_| ()).map_err(|error| error.kind()))
}

pub(super) async fn connections_are_refused() {
    let server = two();
    let listening = server.serve("127.0.0.1:0").await.unwrap();
    let address = listening.addr();
    assert!(TcpStream::connect(address).await.is_ok());
    listening.stop().await;
    assert_eq!(TcpStream::connect(address).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_eq!(on_record(&server), ["stop"]);
    let again = server.serve(address).await.unwrap();
    assert!(TcpStream::connect(address).await.is_ok());
    again.stop().await;
}

pub(super) async fn a_connection_is_reset_before_the_answer() {
    let (server, listening) = serve(Fault::reset()).await;
    for path in [CONFIG_MAPS, WATCH] {
        assert_eq!(exchanged(&listening, path).await, (String::new(), Err(ErrorKind::ConnectionReset)));
    }
    assert_eq!(on_record(&server), ["reset_before_answer"; 2]);
    listening.stop().await;
}

pub(super) async fn a_connection_is_reset_between_events() {
    let (server, listening) = serve(Fault::new(Action::ResetAfterEvents(2))).await;
    let (text, ended) = exchanged(&listening, WATCH).await;
    assert_eq!(
        (text.matches("\"ADDED\"").count(), text.ends_with("}\n\r\n"), ended),
        (2, true, Err(ErrorKind::ConnectionReset))
    );
    assert_eq!(on_record(&server), ["reset_after_events"]);
    listening.stop().await;
}

pub(super) async fn a_connection_is_reset_within_an_event() {
    let (server, listening) = serve(Fault::reset_after_bytes(40)).await;
    let (text, ended) = exchanged(&listening, WATCH).await;
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    assert_eq!((&body[..4], body.len(), ended), ("28\r\n", 4 + 40 + 2, Err(ErrorKind::ConnectionReset)));
    assert_eq!(on_record(&server), ["reset_after_bytes"]);
    listening.stop().await;
}

pub(super) async fn a_list_is_cut_short() {
    // The header announces more bytes than arrive.
    let (server, listening) = serve(Fault::reset_after_bytes(20)).await;
    let (text, ended) = exchanged(&listening, CONFIG_MAPS).await;
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-length: ") && !head.contains("content-length: 20\r\n"), "{head}");
    assert_eq!((body.len(), ended), (20, Err(ErrorKind::ConnectionReset)));
    assert_eq!(on_record(&server), ["reset_after_bytes"]);
    listening.stop().await;
    // The HTTP body is complete, and the JSON of the list is not.
    let (server, listening) = serve(Fault::new(Action::EndAfterBytes(20))).await;
    let mut stream = TcpStream::connect(listening.addr()).await.unwrap();
    let request = format!("GET {CONFIG_MAPS} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.contains("\r\n14\r\n{\"kind\":") && text.ends_with("\r\n0\r\n\r\n"), "{text}");
    assert_eq!(on_record(&server), ["end_after_bytes"]);
    listening.stop().await;
}

/// An HTTP/2 client.
struct Client {
    requests: SendRequest<bytes::Bytes>,
    /// Ends when the connection ends.
    connection: JoinSet<Result<(), h2::Error>>,
}

impl Client {
    async fn connect(listening: &HttpServer) -> Self {
        let stream = TcpStream::connect(listening.addr()).await.unwrap();
        let (requests, connection) = h2::client::handshake(stream).await.unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(connection);
        Self { requests, connection: tasks }
    }

    /// Sends a request, and reads the body until it ends. Both may fail with the error of the stream.
    async fn get(&self, path: &str) -> Result<(u16, String), h2::Error> {
        let mut requests = self.requests.clone().ready().await?;
        let request = Request::get(format!("http://localhost{path}")).body(()).unwrap();
        let response = requests.send_request(request, true)?.0.await?;
        let (code, mut body) = (response.status().as_u16(), response.into_body());
        let mut bytes = Vec::new();
        while let Some(piece) = body.data().await {
            let piece = piece?;
            body.flow_control().release_capacity(piece.len())?;
            bytes.extend_from_slice(&piece);
        }
        Ok((code, String::from_utf8(bytes).unwrap()))
    }
}

pub(super) async fn a_connection_is_closed_after_its_answers() {
    let (server, listening) = serve(Fault::new(Action::ConnectionClose).verb(Verb::List)).await;
    // HTTP/1.1: the header announces it, and the connection closes.
    let (text, ended) = exchanged(&listening, CONFIG_MAPS).await;
    assert!(text.contains("connection: close\r\n") && text.ends_with("]}\n") && ended.is_ok(), "{text}");
    // HTTP/2: the server sends GOAWAY, and the open watch continues until its end.
    let mut client = Client::connect(&listening).await;
    let short = WATCH.replace("=300", "=2");
    let (watch, list) = tokio::join!(client.get(&short), async {
        // The watch is open before the list is requested.
        while server.open_watches() == 0 {
            tokio::task::yield_now().await;
        }
        client.get(CONFIG_MAPS).await
    });
    assert_eq!((list.unwrap().0, watch.unwrap().1.matches("\"ADDED\"").count()), (200, 2));
    let ended = tokio::time::timeout(DEADLINE, client.connection.join_next()).await.unwrap();
    assert!(ended.unwrap().unwrap().is_ok());
    assert!(client.get(CONFIG_MAPS).await.is_err());
    assert_eq!(on_record(&server), ["connection_close"; 2]);
    listening.stop().await;
}

pub(super) async fn a_stream_is_reset() {
    let (server, listening) = serve(Fault::reset().nth(1)).await;
    server.faults().add(Fault::reset_after_bytes(40).verb(Verb::Watch));
    let client = Client::connect(&listening).await;
    for path in [CONFIG_MAPS, WATCH] {
        let error = client.get(path).await.unwrap_err();
        assert!(error.is_reset() && error.is_remote(), "{error:?}");
    }
    // The connection stays open.
    assert_eq!(client.get(CONFIG_MAPS).await.unwrap().0, 200);
    assert_eq!(on_record(&server), ["reset_before_answer", "reset_after_bytes"]);
    listening.stop().await;
}

#[cfg(feature = "tls")]
pub(super) async fn the_certificate_is_invalid() {
    use crate::access::tls::connect;
    use kube_embedded_apiserver::Tls;
    let why = async |listening: &HttpServer, authority: &str| {
        connect(listening, authority).await.err().map(|error| error.to_string())
    };
    let server = two();
    let valid = Tls::generate().unwrap();
    let authority = valid.authority().to_owned();
    let mut listening = server.serve_tls("127.0.0.1:0", valid).await.unwrap();
    assert_eq!(why(&listening, &authority).await, None);
    listening.replace_certificate(Tls::generate().unwrap());
    assert!(why(&listening, &authority).await.unwrap().contains("invalid peer certificate"));
    let changed = listening.authority().unwrap().to_owned();
    assert_eq!(why(&listening, &changed).await, None);
    listening.replace_certificate(Tls::expired().unwrap());
    let expired = listening.authority().unwrap().to_owned();
    assert!(why(&listening, &expired).await.unwrap().to_lowercase().contains("expired"));
    listening.replace_certificate(Tls::none().unwrap());
    let none = listening.authority().unwrap().to_owned();
    assert!(why(&listening, &none).await.unwrap().contains("alert"));
    listening.stop().await;
    let counts = server.faults().counts();
    assert_eq!(
        counts.into_iter().collect::<Vec<_>>(),
        [("handshake_failed", 3), ("replace_certificate", 3), ("stop", 1)]
    );
}
