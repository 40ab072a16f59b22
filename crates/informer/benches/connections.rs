//! Measures the start of twenty informers with kube's own client, which uses HTTP/1, and with ours, which uses HTTP/2:
//! `cargo bench -p kube-informer --bench connections`. The server is a separate process with TLS.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_types,
    missing_docs,
    reason = "a benchmark prints, and measures real time"
)]

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::config::{Config, KubeConfigOptions, Kubeconfig};
use kube_embedded_apiserver::{ApiServer, Tls};
use kube_informer::{InformerRequest, Selection, SharedInformerFactory};
use serde_json::json;

const INFORMERS: usize = 20;
const OBJECTS: usize = 500; // For each informer, of four kilobytes.
const ROUNDS: usize = 5;
const END: &str = "---";

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.iter().any(|argument| argument == "serve") {
        return serve().await;
    }
    // `cargo test --benches` only checks that it builds.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let mut server = Command::new(&arguments[0]);
    let mut server = server.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let printed = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
    let kubeconfig: Vec<String> = printed.take_while(|line| line != END).collect();
    let kubeconfig = Kubeconfig::from_yaml(&kubeconfig.join("\n")).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let mut least = [(Duration::MAX, Duration::MAX, 0); 2];
    for round in 0..ROUNDS * 2 {
        let way = round % 2;
        let measured = start(&config, way == 1).await;
        let known = &mut least[way];
        *known = (known.0.min(measured.0), known.1.min(measured.1), measured.2);
    }
    println!("{INFORMERS} informers of {OBJECTS} objects each; the least of {ROUNDS} rounds");
    for (name, (time, cpu, connections)) in ["kube's client, HTTP/1", "ours, HTTP/2"].iter().zip(least) {
        let (time, cpu) = (time.as_secs_f64() * 1e3, cpu.as_secs_f64() * 1e3);
        println!("{name:<24} {connections:>4} connections {time:>8.0} ms to sync {cpu:>8.0} ms of processor time");
    }
    drop(server.stdin.take());
    server.wait().unwrap();
}

/// Prints a kubeconfig, and serves until the standard input ends.
async fn serve() {
    let server = ApiServer::new();
    for informer in 0..INFORMERS {
        for number in 0..OBJECTS {
            let labels = json!({"informer": informer.to_string()});
            let object = json!({"metadata": {"name": format!("m-{informer}-{number}"), "labels": labels}, "data": {"text": "x".repeat(4000)}});
            server.create("configmaps", Some("default"), object).unwrap();
        }
    }
    let listening = server.serve_tls("127.0.0.1:0", Tls::generate().unwrap()).await.unwrap();
    println!("{}\n{END}", listening.kubeconfig());
    let end = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    end.await.unwrap().unwrap();
}

/// Returns the time and the processor time until all informers are synced, and the number of open connections.
async fn start(config: &Config, ours: bool) -> (Duration, Duration, usize) {
    let mut config = config.clone();
    config.default_retry = false;
    let port = config.cluster_url.port_u16().unwrap();
    let client = match ours {
        true => kube_informer::client_from(config).unwrap(),
        false => kube_client::Client::try_from(config).unwrap(),
    };
    let factory = SharedInformerFactory::new(client);
    let (start, cpu) = (Instant::now(), processor_time());
    for informer in 0..INFORMERS {
        let selection = Selection::new().labels(format!("informer={informer}")).unwrap();
        factory.informer_with::<ConfigMap>(InformerRequest::new().select(selection)).unwrap();
    }
    factory.start().unwrap();
    factory.synced().await.unwrap();
    let (time, cpu) = (start.elapsed(), processor_time() - cpu);
    let connections = connections(port);
    factory.stop().await;
    (time, cpu, connections)
}

/// Returns the number of open connections to a port, or 0 if the system does not report it.
fn connections(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap_or_default();
    let remote = format!(":{port:04X}");
    let columns = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    columns.filter(|columns| columns.len() > 3 && columns[2].ends_with(&remote) && columns[3] == "01").count()
}

/// Returns the processor time of this process, in steps of ten milliseconds, or 0 if the system does not report it.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks: u64 = text
        .rsplit(')')
        .next()
        .into_iter()
        .flat_map(str::split_whitespace)
        .skip(11)
        .take(2)
        .flat_map(str::parse::<u64>)
        .sum();
    Duration::from_millis(ticks * 10)
}
