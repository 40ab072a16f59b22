//! Bad requests and large numbers lead to the documented error, without a panic or a task that is left.

use crate::support::*;
use kube_embedded_apiserver::ApiServer;
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

fn alive() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_not_objects_are_refused() {
    let server = server();
    put_config_map(&server, "a");
    let path = format!("{CONFIG_MAPS}/a");
    for body in
        ["", "{", "null", "[]", "\"x\"", "{\"metadata\":5}", "{\"metadata\":{\"name\":5}}", "\u{0}", "{\"kind\":7}"]
    {
        for (method, path) in [("POST", CONFIG_MAPS), ("PUT", path.as_str())] {
            let refused = send_as(&server, method, path, "application/json", body).await;
            assert!(matches!(refused.code, 400 | 422), "{method} {body:?}: {} {}", refused.code, refused.text);
            assert_eq!(refused.json()["kind"], "Status");
        }
        let refused = send_as(&server, "PATCH", &path, "application/merge-patch+json", body).await;
        assert!(matches!(refused.code, 200 | 400 | 422), "{body:?}: {}", refused.code);
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(send_as(&server, "POST", CONFIG_MAPS, "application/json", &deep).await.code, 400);
    assert_eq!(send_as(&server, "POST", CONFIG_MAPS, "application/yaml", "a: &x [*x]").await.code, 400);
    let large = "x".repeat(4 * 1024 * 1024);
    let refused = send_as(&server, "POST", CONFIG_MAPS, "application/json", &large).await;
    assert_eq!((refused.code, &refused.json()["reason"]), (413, &"RequestEntityTooLarge".into()));
}

#[tokio::test(start_paused = true)]
async fn huge_quantities_are_added_without_a_panic() {
    let server = server();
    let container =
        |name: &str, cpu: &str| json!({"name": name, "image": "i", "resources": {"requests": {"cpu": cpu}}});
    for cpu in ["1e29", "-1e29"] {
        let spec = json!({"resources": {"requests": {"memory": "1"}}, "containers": [container("a", cpu), container("b", cpu)]});
        let answer = post(
            &server,
            "/api/v1/namespaces/default/pods",
            &json!({"metadata": {"generateName": "p-"}, "spec": spec}),
        )
        .await;
        assert!(matches!(answer.code, 201 | 422), "{}", answer.text);
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_gets_an_error() {
    let server = server();
    let listening = server.serve("127.0.0.1:0").await.unwrap();
    let large = "x".repeat(4 * 1024 * 1024);
    let mut stream = TcpStream::connect(listening.addr()).await.unwrap();
    let head = format!(
        "POST {CONFIG_MAPS} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        large.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(large.as_bytes()).await.unwrap();
    read_until(&mut stream, "Request entity too large: limit is 3145728").await;
    let stream = TcpStream::connect(listening.addr()).await.unwrap();
    let (requests, connection) = h2::client::handshake(stream).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let request = http::Request::post(format!("http://localhost{CONFIG_MAPS}"));
    let request = request.header("content-type", "application/json").body(()).unwrap();
    let (answer, mut body) = requests.ready().await.unwrap().send_request(request, false).unwrap();
    body.send_data(large.into(), true).unwrap();
    assert_eq!(answer.await.unwrap().status(), 413);
    listening.stop().await;
}

#[tokio::test(start_paused = true)]
async fn invalid_paths_and_queries_are_refused() {
    let server = server();
    for path in ["/", "//", "/apis/x", "/api/v1/namespaces/default/pods/a/b/c/d", "/api/v1/%ff", "/%00", "/watch"] {
        let refused = get(&server, path).await;
        assert_eq!(refused.code, 404, "{path}");
    }
    for query in [
        "limit=99999999999999999999",
        "continue=%ff",
        "resourceVersion=-1",
        "resourceVersion=99999999999999999999999",
        "labelSelector=%00",
        "fieldSelector=%5c",
        "labelSelector=a+in+(",
        "watch=1&timeoutSeconds=x",
        "watch=1&resourceVersion=x",
    ] {
        let refused = get(&server, &format!("{CONFIG_MAPS}?{query}")).await;
        assert!((400..=500).contains(&refused.code), "{query}: {}", refused.code);
        assert_eq!(refused.json()["kind"], "Status", "{query}");
    }
    assert_eq!(get(&server, &format!("{CONFIG_MAPS}?limit=-5&%zz=%zz&=&&")).await.code, 200);
}

#[tokio::test]
async fn half_closed_and_broken_connections_leave_no_task() {
    let before = alive();
    let server = server();
    let listening = server.serve("127.0.0.1:0").await.unwrap();
    let watch = format!("GET {CONFIG_MAPS}?watch=true&allowWatchBookmarks=true HTTP/1.1\r\nhost: localhost\r\n\r\n");
    for bytes in [
        "",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnonsense that is no frame",
        "GET",
        "GET / HTTP/1.1\r\n",
        "NONSENSE\r\n\r\n",
        "POST /api/v1/namespaces HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\nabc",
        watch.as_str(),
    ] {
        let mut stream = TcpStream::connect(listening.addr()).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_millis(200), stream.read_to_end(&mut rest)).await;
        drop((ended, stream));
    }
    for bytes in ["GET / HTTP/1.1\r\nhost: localhost\r\n", watch.as_str()] {
        let mut stream = TcpStream::connect(listening.addr()).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        drop(stream);
    }
    let mut stream = TcpStream::connect(listening.addr()).await.unwrap();
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.ends_with("\r\n\r\nok"), "{text}");
    listening.stop().await;
    assert_eq!(alive(), before);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_idle_watches_in_process_need_no_task() {
    let server = server();
    let before = alive();
    let mut watches = Vec::new();
    for _ in 0..10_000 {
        let path = format!("{CONFIG_MAPS}?watch=1&allowWatchBookmarks=1");
        let mut watch = Watch::open(&server, &path).await;
        assert!(ends_initial_events(&watch.next().await));
        watches.push(watch);
    }
    assert_eq!(alive(), before);
    put_config_map(&server, "a");
    for watch in &mut watches {
        assert_eq!(watch.told().await, "ADDED a");
    }
    assert_eq!(server.open_watches(), 10_000);
    drop(watches);
    assert_eq!((alive(), server.open_watches()), (before, 0));
}

#[tokio::test(start_paused = true)]
async fn large_numbers_and_growing_patches_are_handled() {
    let server = ApiServer::builder().seed(1).bookmark_interval(Duration::MAX).build();
    put_config_map(&server, "a");
    let watch = format!("{CONFIG_MAPS}?watch=1&allowWatchBookmarks=1&timeoutSeconds={}", i64::MAX);
    let mut watch = Watch::open(&server, &watch).await;
    assert_eq!([watch.told().await, watch.told().await], ["ADDED a", "BOOKMARK"]);
    assert!(watch.is_silent_for(Duration::from_secs(1_000_000)).await);
    let list = get(&server, &format!("{CONFIG_MAPS}?limit={}&timeout=1000000h", i64::MAX)).await;
    assert_eq!(list.names(), ["a"]);
    // Each patch copies the data into itself. Two copies double its size, and many copies of one nest it.
    let copy = |to: &str| format!(r#"{{"op":"copy","from":"/data","path":"/data/{to}"}}"#);
    for patch in [[copy("x"), copy("y")].join(","), vec![copy("x"); 150].join(",")] {
        let patch = format!("[{}]", vec![patch; 50].join(","));
        let path = format!("{CONFIG_MAPS}/a");
        let refused = send_as(&server, "PATCH", &path, "application/json-patch+json", &patch).await;
        assert_eq!(refused.code, 413, "{}", refused.text);
        assert_eq!(get(&server, &path).await.json()["data"], serde_json::json!({"k": "v"}));
    }
    let deep = format!(r#"{{"metadata":{{"name":"b"}},"data":{}{}}}"#, "[".repeat(110), "]".repeat(110));
    assert_eq!(send_as(&server, "POST", CONFIG_MAPS, "application/json", &deep).await.code, 400);
    for rate in [f64::NAN, f64::MIN_POSITIVE, -1.0, 0.0] {
        let life = kube_embedded_apiserver::Workload::new(1).run(server.clone(), rate, Default::default());
        assert!(tokio::time::timeout(Duration::from_secs(1_000_000), life).await.is_err(), "{rate}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_with_broken_tokens_get_an_error() {
    let server = ApiServer::builder().seed(1).token("secret").build();
    for value in ["", "Bearer", "Bearer ", "secret", "Basic c2VjcmV0", "Bearer secret2", "Bearer s\u{e9}cret"] {
        let request = http::Request::get(CONFIG_MAPS).header("authorization", value.as_bytes());
        let refused = send(&server, request.body(Default::default()).unwrap()).await;
        assert_eq!((refused.code, &refused.json()["reason"]), (401, &"Unauthorized".into()), "{value:?}");
    }
    let server = ApiServer::builder().seed(1).build();
    for name in ["a", "b"] {
        put_config_map(&server, name);
    }
    let page = get(&server, &format!("{CONFIG_MAPS}?limit=1")).await.json();
    let token = page["metadata"]["continue"].as_str().unwrap();
    for broken in [&token[1..], &token[..token.len() - 2], "e30", "%00", "%ff%fe", &"x".repeat(10_000)] {
        let refused = get(&server, &format!("{CONFIG_MAPS}?limit=1&continue={broken}")).await;
        assert_eq!((refused.code, &refused.json()["reason"]), (400, &"BadRequest".into()), "{broken}");
    }
}

#[tokio::test]
async fn two_thousand_watches_over_sockets_all_receive_the_event() {
    const COUNT: usize = 2_000;
    let before = alive();
    let server = ApiServer::new();
    let listening = server.serve("127.0.0.1:0").await.unwrap();
    let address = listening.addr();
    let (ready, mut waiting) = tokio::sync::mpsc::channel(COUNT);
    let mut clients = JoinSet::new();
    for _ in 0..COUNT {
        let ready = ready.clone();
        clients.spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let request =
                format!("GET {CONFIG_MAPS}?watch=true&allowWatchBookmarks=true HTTP/1.1\r\nhost: localhost\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            read_until(&mut stream, "initial-events-end").await;
            ready.send(()).await.unwrap();
            read_until(&mut stream, "\"name\":\"late\"").await;
        });
    }
    for _ in 0..COUNT {
        waiting.recv().await.unwrap();
    }
    put_config_map(&server, "late");
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    assert!(server.open_watches() > 0);
    listening.stop().await;
    assert_eq!((alive(), server.open_watches()), (before, 0));
}

async fn read_until(stream: &mut TcpStream, text: &str) {
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains(text) {
        let mut buffer = [0; 4096];
        let count = tokio::time::timeout(Duration::from_secs(60), stream.read(&mut buffer)).await.unwrap().unwrap();
        assert!(count > 0);
        read.extend_from_slice(&buffer[..count]);
    }
}
