use crate::support::*;
use kube_embedded_apiserver::{Action, Fault};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const DEADLINE: Duration = Duration::from_secs(30);

/// Sends one request as text, and reads until `until` has arrived or the connection ends.
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
async fn curl_receives_an_indented_list_and_a_watch_line_by_line() {
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
    let (head, body) = list.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("content-type: application/json"), "{head}");
    assert!(body.starts_with("{\n  \"apiVersion\": \"v1\",\n  \"items\": [\n    {\n"), "{body}");
    assert!(body.contains("\n  \"kind\": \"ConfigMapList\",\n"), "{body}");
    let watch = curl("/api/v1/namespaces/default/configmaps?watch=true", "}}\n\r\n").await;
    let (head, body) = watch.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("transfer-encoding: chunked") && head.contains("content-type: application/json"), "{head}");
    // One chunk: its size in hexadecimal, the event on a line of its own, and the end of the chunk.
    let (size, rest) = body.split_once("\r\n").unwrap();
    let (line, after) = rest.split_at(usize::from_str_radix(size, 16).unwrap());
    let event: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!((told(&event).as_str(), line.ends_with("}}\n"), after), ("ADDED a", true, "\r\n"));
    listening.stop().await;
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

#[tokio::test]
async fn an_installed_curl_reads_a_list_and_a_watch() {
    let server = server();
    put_config_map(&server, "a");
    let listening = server.serve("127.0.0.1:0").await.unwrap();
    let curl = async |path: &str| {
        let url = format!("{}{path}", listening.url());
        let output = tokio::process::Command::new("curl").args(["-sS", "--max-time", "20", &url]).output().await;
        output.ok().map(|output| String::from_utf8(output.stdout).unwrap())
    };
    // Without an installed curl, the test above checks the same bytes.
    if let Some(list) = curl(CONFIG_MAPS).await {
        assert_eq!(serde_json::from_str::<serde_json::Value>(&list).unwrap()["items"][0]["metadata"]["name"], "a");
        let watch = curl(&format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=1")).await.unwrap();
        assert_eq!(
            watch.lines().map(|line| told(&serde_json::from_str(line).unwrap())).collect::<Vec<_>>(),
            ["ADDED a"]
        );
        assert!(server.requests().iter().all(|record| record.status == Some(200)));
    }
    listening.stop().await;
}
