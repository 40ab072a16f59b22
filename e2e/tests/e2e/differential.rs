//! Sends the same random writes to the embedded server and to kube-apiserver, and compares every response, object and
//! managed field.
//!
//! Objects are valid by construction, because the embedded server validates few rules of built-in kinds; invalid
//! changes come from a list. `E2E_SEED` and `E2E_OPERATIONS` repeat a run, or make it longer. For a difference, the
//! test prints the shortest sequence of writes that still shows it.

mod change;
mod objects;
mod shown;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Request;
use kube_client::client::Body;
use kube_client::{Client, Config};
use kube_embedded_apiserver::ApiServer;
use kube_informer_e2e::{Assets, Cluster};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::from_environment;
use change::{Change, changes};
use objects::gears;
use shown::{Symbols, difference};

/// The number of concurrent sequences: kube-apiserver has a high latency, but handles many requests at once.
const LANES: u64 = 8;
/// The number of writes in a sequence.
const LENGTH: usize = 50;

/// A server, and the namespace for a sequence.
#[derive(Clone)]
struct Side {
    client: Client,
    namespace: String,
    /// The requests, if they are to be printed.
    trace: Option<Arc<Mutex<Vec<String>>>>,
}

/// A response of a server.
#[derive(Debug, Clone)]
struct Answer {
    code: u16,
    warnings: Vec<String>,
    body: Value,
}

impl Side {
    async fn send(&self, method: &str, path: &str, media_type: &str, body: &Value) -> Answer {
        let sent = if body.is_null() { String::new() } else { body.to_string() };
        let bytes = sent.clone().into_bytes();
        let request = Request::builder().method(method).uri(path).header("user-agent", "differ/1");
        let request = request.header("content-type", media_type).body(Body::from(bytes)).unwrap();
        let (parts, body) = self.client.send(request).await.unwrap().into_parts();
        let bytes = body.collect_bytes().await.unwrap();
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes)));
        let warnings = parts.headers.get_all("warning").iter().map(|value| value.to_str().unwrap().to_owned());
        if let Some(trace) = &self.trace {
            trace.lock().unwrap().push(format!("  {method} {path} {sent}"));
        }
        Answer { code: parts.status.as_u16(), warnings: warnings.collect(), body }
    }

    async fn create_namespace(&self) {
        let body = json!({"metadata": {"name": self.namespace}});
        let made = self.send("POST", "/api/v1/namespaces", "application/json", &body).await;
        assert_eq!(made.code, 201, "{}", made.body);
    }
}

/// The two servers.
#[derive(Clone)]
struct Pair {
    real: Client,
    embedded: Client,
}

impl Pair {
    fn sides(&self, namespace: &str) -> [Side; 2] {
        [&self.real, &self.embedded].map(|client| Side {
            client: client.clone(),
            namespace: namespace.to_owned(),
            trace: None,
        })
    }

    /// Makes the same changes on both servers, and returns the first difference.
    async fn run(&self, namespace: &str, changes: &[Change]) -> Option<String> {
        self.run_on(self.sides(namespace), changes).await
    }

    async fn run_on(&self, sides: [Side; 2], changes: &[Change]) -> Option<String> {
        for side in &sides {
            side.create_namespace().await;
        }
        let mut symbols = [Symbols::default(), Symbols::default()];
        for (number, change) in changes.iter().enumerate() {
            let (real, embedded) = tokio::join!(change.make(&sides[0]), change.make(&sides[1]));
            let [mut first, mut second] = [real, embedded];
            let [one, two] = &mut symbols;
            one.cut(&mut first);
            two.cut(&mut second);
            if let Some(difference) = difference(&first, &second) {
                return Some(format!("change {number} {change:?}\n{difference}"));
            }
        }
        None
    }

    /// Returns the shortest sequence that still shows a difference, with the difference.
    async fn shrink(&self, name: &str, mut changes: Vec<Change>, mut found: String) -> String {
        let (mut attempt, mut size) = (0, changes.len() / 2);
        while size > 0 && attempt < 150 {
            let mut start = 0;
            while start < changes.len() && attempt < 150 {
                let mut fewer = changes.clone();
                fewer.drain(start..(start + size).min(changes.len()));
                attempt += 1;
                match self.run(&format!("{name}-{attempt}"), &fewer).await {
                    Some(still) => (changes, found) = (fewer, still),
                    None => start += size,
                }
            }
            size /= 2;
        }
        // Once more, to record the requests.
        let (trace, mut sides) = (Arc::default(), self.sides(&format!("{name}-shown")));
        sides[0].trace = Some(Arc::clone(&trace));
        found = self.run_on(sides, &changes).await.unwrap_or(found);
        let steps = trace.lock().unwrap().join("\n");
        format!("{steps}\n{found}")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_write_is_answered_like_kube_apiserver() {
    let cluster = Cluster::start_plain(&Assets::ready().unwrap()).await.unwrap();
    println!("differential: {cluster}");
    let embedded = ApiServer::new().serve("127.0.0.1:0").await.unwrap();
    let client = |mut config: Config| {
        config.default_retry = false;
        kube_informer::client_from(config).unwrap()
    };
    let pair = Arc::new(Pair {
        real: client(cluster.operator().await.unwrap()),
        embedded: client(Config::new(embedded.url().parse().unwrap())),
    });
    for side in pair.sides("default") {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        assert_eq!(side.send("POST", path, "application/json", &gears()).await.code, 201);
        while side.send("GET", "/apis/differ.example.com/v1/gears", "", &Value::Null).await.code != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    let seed = from_environment("E2E_SEED", rand::random());
    let operations = from_environment("E2E_OPERATIONS", 20_000);
    println!("differential: {operations} writes, E2E_SEED={seed}");
    let sequences = operations.div_ceil(LENGTH as u64);
    let mut lanes = JoinSet::new();
    for lane in 0..LANES {
        let pair = pair.clone();
        lanes.spawn(async move {
            let mut found = Vec::new();
            for sequence in (lane..sequences).step_by(LANES as usize) {
                let made = changes(seed.wrapping_add(sequence), LENGTH);
                let name = format!("differ-{sequence}");
                if let Some(difference) = pair.run(&name, &made).await {
                    found.push((name, made, difference));
                    if found.len() >= 2 {
                        break;
                    }
                }
            }
            found
        });
    }
    let found: Vec<_> = lanes.join_all().await.into_iter().flatten().collect();
    let mut texts = Vec::new();
    for (name, changes, difference) in found.iter().take(from_environment("E2E_SHOWN", 3) as usize) {
        texts.push(pair.shrink(name, changes.clone(), difference.clone()).await);
    }
    println!("differential: {} of {sequences} sequences differ", found.len());
    assert!(found.is_empty(), "E2E_SEED={seed}\n{}", texts.join("\n\n"));
    embedded.stop().await;
}
