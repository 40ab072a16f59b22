use crate::support::*;
use kube_embedded_apiserver::{Action, Fault};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const DEADLINE: Duration = Duration::from_secs(30);

/// Sends one request as text and reads until the text `until` has come, or the connection ends.
async fn exchange(stream: &mut TcpStream, path: &str, until: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: test/1\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    read_until(stream, until).await
}

async fn read_until(stream: &mut TcpStream, until: &str) -> String {
    let mut text = String::new();
    let mut buffer = vec![0; 64 * 1024];
    while !text.contains(until) {
        let read = tokio::time::timeout(DEADLINE, stream.read(&mut buffer)).await.unwrap().unwrap();
        if read == 0 {
            break;
        }
        text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
    text
}

#[tokio::test]
async fn lists_have_a_length_and_watches_are_chunked() {
    let server = server();
    put_config_map(&server, "a");
    let listening = server.serve("127.0.0.1:0").await.unwrap();
    assert_eq!(listening.url(), format!("http://{}", listening.addr()));
    let mut stream = TcpStream::connect(listening.addr()).await.unwrap();
    let list = exchange(&mut stream, CONFIG_MAPS, "]}\n").await;
    assert!(list.starts_with("HTTP/1.1 200 OK\r\n"), "{list}");
    assert!(list.contains("content-length:") && list.contains("content-type: application/json"), "{list}");
    let watch = exchange(&mut stream, &format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=1"), "0\r\n\r\n").await;
    assert!(watch.contains("transfer-encoding: chunked"), "{watch}");
    assert!(watch.contains("\r\n{\"type\":\"ADDED\",\"object\":{\"kind\":\"ConfigMap\""), "{watch}");
    drop(stream);
    listening.stop().await;
}

#[tokio::test]
async fn curl_sees_an_indented_list_and_a_watch_line_by_line() {
    let server = server();
    put_config_map(&server, "a");
    let listening = server.serve("127.0.0.1:0").await.unwrap();
    let curl = async |path: &str, until: &str| {
        let mut stream = TcpStream::connect(listening.addr()).await.unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        read_until(&mut stream, until).await
    };
    let list = curl("/api/v1/namespaces/default/configmaps", "\n}").await;
    assert!(list.contains("{\n  \"apiVersion\": \"v1\",\n") || list.contains("{\n  \"kind\": "), "{list}");
    let watch = curl("/api/v1/namespaces/default/configmaps?watch=true", "}}\n").await;
    assert!(
        watch.contains("transfer-encoding: chunked") && watch.contains("{\"type\":\"ADDED\",\"object\":{"),
        "{watch}"
    );
    listening.stop().await;
}

#[tokio::test]
async fn faults_reach_sockets() {
    let watch = format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=1");
    // What is asked for, what goes wrong, and whether an answer begins and whether it ends as it should.
    for (path, fault, begins, ends) in [
        (CONFIG_MAPS, Fault::reset(), false, false),
        (CONFIG_MAPS, Fault::reset_after_bytes(10), true, false),
        (watch.as_str(), Fault::reset_after_bytes(40), true, false),
        (watch.as_str(), Fault::new(Action::ResetAfterEvents(1)), true, false),
        (watch.as_str(), Fault::end_after_events(1), true, true),
        (watch.as_str(), Fault::new(Action::ConnectionClose), true, true),
        (watch.as_str(), Fault::status(503), true, true),
    ] {
        let server = server();
        put_config_map(&server, "a");
        server.faults().add(fault.clone());
        let listening = server.serve("127.0.0.1:0").await.unwrap();
        let mut stream = TcpStream::connect(listening.addr()).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = tokio::time::timeout(DEADLINE, stream.read_to_end(&mut answer)).await.unwrap();
        let answer = String::from_utf8(answer).unwrap();
        assert_eq!(answer.starts_with("HTTP/1.1 "), begins, "{fault:?}: {answer}");
        assert_eq!(answer.ends_with("0\r\n\r\n") || answer.contains("content-length:"), ends, "{fault:?}: {answer}");
        assert_eq!(server.faults().fired().len(), 1);
        listening.stop().await;
    }
}

#[tokio::test]
async fn a_request_that_is_never_answered_ends_with_the_server() {
    let server = server();
    server.faults().add(Fault::new(Action::NoAnswer));
    let listening = server.serve("127.0.0.1:0").await.unwrap();
    let mut stream = TcpStream::connect(listening.addr()).await.unwrap();
    stream.write_all(b"GET /api/v1/pods HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let silent = tokio::time::timeout(Duration::from_millis(200), stream.read_u8()).await;
    assert!(silent.is_err());
    listening.stop().await;
    assert!(stream.read_u8().await.is_err());
}

#[tokio::test]
async fn stopping_cuts_connections_and_frees_the_port() {
    let server = server();
    let listening = server.serve("127.0.0.1:0").await.unwrap();
    let address = listening.addr();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let path = format!("{CONFIG_MAPS}?watch=true&allowWatchBookmarks=true");
    assert!(exchange(&mut stream, &path, "initial-events-end").await.contains("BOOKMARK"));
    listening.stop().await;
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(DEADLINE, stream.read_to_end(&mut rest)).await.unwrap();
    assert!(!rest.ends_with(b"0\r\n\r\n"));
    assert!(TcpStream::connect(address).await.is_err());
    let again = server.serve(address).await.unwrap();
    drop(again);
}
