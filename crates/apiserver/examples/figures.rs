//! Measures the server: `cargo run --release -p kube-embedded-apiserver --example figures`.
//!
//! Clients run in the same process, so the figures are of server and clients together.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use http::Request;
use http_body_util::{BodyExt, Empty};
use kube_embedded_apiserver::ApiServer;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower::ServiceExt;

const WATCH: &str = "/api/v1/namespaces/default/configmaps?watch=true&allowWatchBookmarks=true";

#[tokio::main]
async fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let runs = |name: &str| wanted.is_empty() || wanted.iter().any(|asked| asked == name);
    if runs("start") {
        start().await;
    }
    if runs("writes") {
        writes(20_000);
        apply(2_000).await;
    }
    // First, while the process holds little other memory.
    if runs("idle") {
        idle(10_000).await;
    }
    if runs("pods") {
        pods(100_000).await;
    }
    if runs("process") {
        fan_out(Over::Process, 1_000, Load { rate: Some(100), writes: 1_000, bytes: 1_000 }).await;
        limit(Over::Process, 1_000).await;
    }
    if runs("http") {
        fan_out(Over::Http, 100, Load { rate: Some(200), writes: 2_000, bytes: 1_000 }).await;
        limit(Over::Http, 100).await;
    }
}

/// Measures the time to the first answer of a new server, for the first and the second server of a process.
async fn start() {
    for which in ["first", "second"] {
        let started = Instant::now();
        let server = ApiServer::new();
        let request = Request::get("/api/v1/namespaces/default").body(Empty::<bytes::Bytes>::new()).unwrap();
        let answer = server.oneshot(request).await.unwrap();
        assert!(answer.status().is_success());
        println!("start: the {which} server of a process has answered after {:.2?}", started.elapsed());
    }
}

/// Creates objects of about 1 KB in process, with defaults and field owners.
fn writes(count: usize) {
    let server = ApiServer::builder().history(1_000).build();
    let started = cpu();
    for index in 0..count {
        let object = json!({"metadata": {"name": format!("m{index}"), "labels": {"app": "web"}}, "data": {"k": "x".repeat(900)}});
        server.create("configmaps", Some("default"), object).unwrap();
    }
    let took = cpu() - started;
    println!("writes: {:.0} creates of 1 KB a second on one core", count as f64 / took.as_secs_f64());
}

/// Applies a deployment of 9 KB by two managers in turn, and compares this with updates of the same object.
async fn apply(count: usize) {
    let server = ApiServer::builder().history(100).build();
    let path = "/apis/apps/v1/namespaces/default/deployments/d";
    let deployment = |number: usize| {
        let env: Vec<Value> =
            (0..135).map(|index| json!({"name": format!("N{index}"), "value": "x".repeat(40)})).collect();
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
            "replicas": number, "selector": {"matchLabels": {"app": "d"}},
            "template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "i", "env": env}]}}}})
    };
    let send = async |method: &str, path: &str, media_type: &str, body: String| {
        let request = Request::builder().method(method).uri(path).header("content-type", media_type);
        let request = request.body(http_body_util::Full::new(bytes::Bytes::from(body))).unwrap();
        let answer = server.clone().oneshot(request).await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.status());
    };
    let as_manager = |name: &str| format!("{path}?fieldManager={name}&force=true");
    send("PATCH", &as_manager("one"), "application/apply-patch+yaml", deployment(1).to_string()).await;
    let mut took = [Duration::ZERO; 2];
    for number in 0..count {
        let started = cpu();
        send("PUT", path, "application/json", deployment(number).to_string()).await;
        took[0] += cpu() - started;
        let (manager, started) = (["one", "two"][number % 2], cpu());
        let body = deployment(number + 1).to_string();
        send("PATCH", &as_manager(manager), "application/apply-patch+yaml", body).await;
        took[1] += cpu() - started;
    }
    let [update, apply] = took.map(|took| took.as_secs_f64() * 1e6 / count as f64);
    let bytes = deployment(1).to_string().len();
    println!(
        "apply: {apply:.0} us for a deployment of {bytes} bytes by two managers, {:.1} x an update of {update:.0} us",
        apply / update
    );
}

/// Returns the processor time of this process so far.
fn cpu() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), u32::try_from(spent.tv_nsec).unwrap_or(0))
}

/// How clients reach the server.
#[derive(Debug, Clone, Copy)]
enum Over {
    Process,
    Http,
}

/// The load to write.
#[derive(Debug, Clone, Copy)]
struct Load {
    /// Writes per second; without a rate, as fast as possible.
    rate: Option<u64>,
    writes: usize,
    bytes: usize,
}

/// Stores many pods of about 9 KB and lists them.
async fn pods(count: usize) {
    let server = ApiServer::builder().history(1_000).build();
    let before = resident();
    let started = Instant::now();
    for index in 0..count {
        server.create("pods", Some("default"), pod(index)).unwrap();
    }
    let took = started.elapsed();
    let stored = resident().saturating_sub(before);
    println!("pods: {count} created in {took:.2?}, {:.0} a second", count as f64 / took.as_secs_f64());
    println!("pods: {} bytes of memory each, for {} bytes of JSON", stored / count, pod(7).to_string().len());
    let before = resident();
    let started = Instant::now();
    let request = Request::get("/api/v1/pods").body(Empty::<bytes::Bytes>::new()).unwrap();
    let mut body = server.clone().oneshot(request).await.unwrap().into_body();
    let (mut bytes, mut peak, mut chunks) = (0_usize, 0, 0_usize);
    while let Some(frame) = body.frame().await {
        bytes += frame.unwrap().into_data().unwrap().len();
        chunks += 1;
        if chunks.is_multiple_of(50) {
            peak = peak.max(resident().saturating_sub(before));
        }
    }
    let took = started.elapsed();
    println!(
        "pods: list of {} MB in {chunks} chunks in {took:.2?}, peak extra memory {:.1} MB",
        bytes / 1_000_000,
        peak as f64 / 1e6
    );
    let started = Instant::now();
    let (mut pages, mut next) = (0, String::new());
    loop {
        let request = Request::get(format!("/api/v1/pods?limit=500{next}")).body(Empty::<bytes::Bytes>::new()).unwrap();
        let bytes = server.clone().oneshot(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
        pages += 1;
        let head = String::from_utf8_lossy(&bytes[..300]).into_owned();
        let Some((_, token)) = head.split_once("\"continue\":\"") else { break };
        next = format!("&continue={}", token.split('"').next().unwrap());
    }
    println!("pods: the same list in {pages} pages of 500 in {:.2?}", started.elapsed());
}

fn pod(index: usize) -> Value {
    let env: Vec<Value> = (0..70)
        .map(|number| json!({"name": format!("VARIABLE_{number}"), "value": format!("value-{index}-{number}-{}", "x".repeat(80))}))
        .collect();
    json!({
        "metadata": {"name": format!("pod-{index:06}"), "labels": {"app": format!("app-{}", index % 100), "tier": "web"}},
        "spec": {"nodeName": format!("node-{}", index % 500), "containers": [{"name": "main", "image": "registry.example.com/app:1", "env": env}]},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

/// Raises the rate until events are late, and then writes as fast as possible.
async fn limit(over: Over, watchers: usize) {
    let mut rate = 200;
    loop {
        let writes = rate * 3;
        let late = fan_out(over, watchers, Load { rate: Some(rate as u64), writes, bytes: 1_000 }).await;
        if late > Duration::from_millis(100) {
            println!("{over:?}: limit with {watchers} watchers between {} and {rate} writes a second", rate * 2 / 3);
            break;
        }
        rate = rate * 3 / 2;
    }
    fan_out(over, watchers, Load { rate: None, writes: 2_000, bytes: 1_000 }).await;
}

/// Opens many watches, writes, and checks that every watcher received every event. Prints the latencies and returns the
/// 99th percentile.
async fn fan_out(over: Over, watchers: usize, load: Load) -> Duration {
    let server = ApiServer::builder().history(load.writes * 2).build();
    let listening = server.serve("127.0.0.1:0").await.unwrap();
    let origin = Instant::now();
    let (ready, mut waiting) = mpsc::channel(watchers);
    let mut clients = JoinSet::new();
    for _ in 0..watchers {
        let (server, ready, address) = (server.clone(), ready.clone(), listening.addr());
        clients.spawn(async move {
            let mut watcher = Watcher::new(origin, load.writes);
            match over {
                Over::Process => {
                    let request = Request::get(WATCH).body(Empty::<bytes::Bytes>::new()).unwrap();
                    let mut body = server.oneshot(request).await.unwrap().into_body();
                    body.frame().await;
                    ready.send(()).await.unwrap();
                    while !watcher.is_done() {
                        let frame = body.frame().await.unwrap().unwrap();
                        let bytes = frame.data_ref().unwrap();
                        watcher.places.push(bytes.as_ptr().addr());
                        watcher.take(bytes);
                    }
                }
                Over::Http => {
                    let mut stream = TcpStream::connect(address).await.unwrap();
                    let request = format!("GET {WATCH} HTTP/1.1\r\nhost: x\r\n\r\n");
                    stream.write_all(request.as_bytes()).await.unwrap();
                    let mut buffer = vec![0; 64 * 1024];
                    let first = stream.read(&mut buffer).await.unwrap();
                    assert!(first > 0);
                    ready.send(()).await.unwrap();
                    while !watcher.is_done() {
                        let read = stream.read(&mut buffer).await.unwrap();
                        assert!(read > 0, "closed after {} events", watcher.latencies.len());
                        watcher.take(&buffer[..read]);
                    }
                }
            }
            (watcher.latencies, watcher.places)
        });
    }
    for _ in 0..watchers {
        waiting.recv().await.unwrap();
    }
    let started = Instant::now();
    write(&server, origin, load).await;
    let wrote = started.elapsed();
    let mut latencies = Vec::new();
    let mut places = Vec::new();
    let deadline = Duration::from_secs(120);
    while let Some(ended) =
        tokio::time::timeout(deadline, clients.join_next()).await.expect("every watcher hears everything")
    {
        let (late, place) = ended.unwrap();
        latencies.extend(late);
        places.push(place);
    }
    // Events with the same memory address were encoded once, for all watchers. Sockets copy the bytes.
    if matches!(over, Over::Process) {
        assert!(places.iter().all(|place| *place == places[0]), "every watcher is sent the same bytes");
        println!("{over:?}: {} events encoded once each, shared by {watchers} watchers", places[0].len());
    }
    let took = started.elapsed();
    latencies.sort_unstable();
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    println!(
        "{over:?}: {watchers} watchers x {} writes of {} bytes ({}): all {} events heard, {:.0} a second; \
         writes took {wrote:.2?}; latency p50 {:.2?} p99 {:.2?} max {:.2?}",
        load.writes,
        load.bytes,
        load.rate.map_or("as fast as it goes".to_owned(), |rate| format!("{rate} a second")),
        latencies.len(),
        latencies.len() as f64 / took.as_secs_f64(),
        at(0.5),
        at(0.99),
        at(1.0),
    );
    listening.stop().await;
    at(0.99)
}

/// Writes a load. Each object carries the time of its write.
async fn write(server: &ApiServer, origin: Instant, load: Load) {
    let padding = "x".repeat(load.bytes.saturating_sub(300));
    let started = Instant::now();
    for index in 0..load.writes {
        if let Some(rate) = load.rate {
            tokio::time::sleep_until(started + Duration::from_secs_f64(index as f64 / rate as f64)).await;
        } else {
            tokio::task::yield_now().await;
        }
        let sent = format!("{:020}", origin.elapsed().as_nanos());
        let object = json!({"metadata": {"name": format!("n{index}")}, "data": {"padding": padding, "sent": sent}});
        server.create("configmaps", Some("default"), object).unwrap();
    }
}

/// Reads the times of writes from the bytes of a watch.
struct Watcher {
    origin: Instant,
    expected: usize,
    latencies: Vec<Duration>,
    /// The memory address of the bytes of each event.
    places: Vec<usize>,
    rest: Vec<u8>,
}

impl Watcher {
    fn new(origin: Instant, expected: usize) -> Self {
        Self { origin, expected, latencies: Vec::with_capacity(expected), places: Vec::new(), rest: Vec::new() }
    }

    fn is_done(&self) -> bool {
        self.latencies.len() >= self.expected
    }

    fn take(&mut self, bytes: &[u8]) {
        const MARK: &[u8] = b"\"sent\":\"";
        self.rest.extend_from_slice(bytes);
        let now = self.origin.elapsed();
        let mut from = 0;
        while let Some(end) = self.rest[from..].iter().position(|byte| *byte == b'\n') {
            let line = &self.rest[from..from + end];
            // The mark stands near the end of the line.
            if let Some(at) = line.windows(MARK.len()).rposition(|window| window == MARK) {
                let digits = std::str::from_utf8(&line[at + MARK.len()..at + MARK.len() + 20]).unwrap();
                self.latencies.push(now.saturating_sub(Duration::from_nanos(digits.parse().unwrap())));
            }
            from += end + 1;
        }
        self.rest.drain(..from);
    }
}

/// Opens many watches without any events.
async fn idle(count: usize) {
    let server = ApiServer::new();
    let before = resident();
    let mut watches = Vec::new();
    for _ in 0..count {
        let request = Request::get(WATCH).body(Empty::<bytes::Bytes>::new()).unwrap();
        let mut body = server.clone().oneshot(request).await.unwrap().into_body();
        body.frame().await;
        watches.push(body);
    }
    println!("idle: {count} watches in process, {} bytes each", resident().saturating_sub(before) / count);
}

/// Returns the resident memory of the process, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    status.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}
