//! A program with a live page: open the address that it prints.
//!
//! `cargo run -p kube-informer-inspect --example inspected -- --for 5m`. It reads commands from stdin: `fail` lets the
//! server refuse all requests for pods, `heal` ends that. `spoil NAMESPACE/NAME` changes a pod so that its reconcile
//! fails, `touch NAMESPACE/NAME` so that it succeeds. `hold` stops a handler, and `release` lets it go on.

#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example is read as a whole, and prints"
)]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Secret};
use kube_controller::{Action, Controller, ElectionSettings, LeaderElector, Manager, Request};
use kube_embedded_apiserver::{ApiServer, Fault, Workload};
use kube_informer::{CancellationToken, SharedInformerFactory};
use kube_informer_inspect::Inspection;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// The annotation that makes the reconcile of a pod fail.
const SPOILED: &str = "example.com/spoiled";

/// Run informers on a small cluster in this process, and serve a live page.
#[derive(Parser)]
struct Arguments {
    /// The address of the page.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: String,
    /// Require this token.
    #[arg(long)]
    token: Option<String>,
    /// The number of pods, about.
    #[arg(long, default_value_t = 120)]
    pods: usize,
    /// The number of changes per second.
    #[arg(long, default_value_t = 8.0)]
    rate: f64,
    /// How long to run, such as 5s or 2m [default: until Ctrl-C].
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration)]
    duration: Option<Duration>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let (server, mut tasks) = cluster(&arguments)?;

    let factory = SharedInformerFactory::new(server.client());
    let pods = factory.informer::<Pod>()?;
    pods.on_error(|_| {}); // The page shows errors.
    pods.add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone())?;
    pods.add_index("phase", |pod: &Pod| pod.status.as_ref()?.phase.clone())?;
    pods.register().name("audit").on_event(|_| {});
    let (hold, held) = watch::channel(false);
    pods.register().name("reporter").on_event_async(move |_| {
        let mut held = held.clone();
        async move {
            // The sender lives as long as the program, so this ends by `release`.
            let _ = held.wait_for(|held| !held).await;
            // Slow enough that events sometimes wait.
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    });
    let deployments = factory.informer::<Deployment>()?;
    deployments.register().name("rollouts").on_event(|_| {});
    factory.informer::<Node>()?.register().name("capacity").on_event(|_| {});
    factory.informer::<Namespace>()?;
    factory.informer::<Secret>()?;
    factory.informer::<ValidatingWebhookConfiguration>()?;

    let controller = Controller::new(&pods).name("placements").workers(2);
    let queue = Arc::new(controller.handle());
    let settings = ElectionSettings { unique_identity: false, ..Default::default() };
    let elector = LeaderElector::new(server.client(), "shop/placements", "inspected-1", settings)?;
    let manager = Manager::new(factory.clone()).elect(elector).control(controller, reconcile, Arc::new(()));
    let probe = manager.probe();
    let ended = CancellationToken::new();
    let cancel = ended.clone();
    tasks.spawn(async move {
        if let Err(error) = manager.run(cancel).await {
            eprintln!("the manager ended: {error}");
        }
    });

    // A program needs only these lines.
    let inspection = Inspection::of(factory.weak_informers()).queue(queue).probe(probe);
    let mut inspection = inspection.title("inspected").metrics(render(&factory));
    if let Some(token) = arguments.token {
        inspection = inspection.token(token);
    }
    let serving = inspection.serve(&arguments.listen).await?;
    println!("{}", serving.url());

    tokio::select! {
        () = obey(&server, &hold) => {}
        () = at_the_end(arguments.duration) => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    serving.stop().await;
    ended.cancel();
    factory.stop().await;
    Ok(())
}

/// Creates a server whose objects change.
fn cluster(arguments: &Arguments) -> Result<(ApiServer, JoinSet<()>), Box<dyn Error>> {
    let server = ApiServer::new();
    let mut workload = Workload::new(7).nodes(6).pods(arguments.pods).namespaces(["default", "shop", "web"]);
    for _ in 0..arguments.pods * 8 {
        workload.step(&server);
    }
    // The workload does not change or delete this pod.
    let spec = json!({"nodeName": "node-1", "containers": [{"name": "main", "image": "keeper:1"}]});
    server.create("pods", Some("shop"), json!({"metadata": {"name": "keeper"}, "spec": spec}))?;
    let secret = json!({"metadata": {"name": "database"}, "data": {"password": "aHVudGVyMg=="}});
    server.create("secrets", Some("shop"), secret)?;
    let mut tasks = JoinSet::new();
    tasks.spawn(workload.run(server.clone(), arguments.rate, CancellationToken::new()));
    Ok((server, tasks))
}

async fn reconcile(request: Request<Pod>, _: Arc<()>) -> Result<Action, String> {
    // Stands for a request to another service.
    tokio::time::sleep(Duration::from_millis(20)).await;
    let spoiled = |pod: Arc<Pod>| pod.metadata.annotations.iter().flatten().any(|(name, _)| name == SPOILED);
    if request.object().is_some_and(spoiled) {
        return Err("the pod is spoiled".to_owned());
    }
    let placed = request.object().is_none_or(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()));
    Ok(if placed { Action::await_change() } else { Action::requeue(Duration::from_secs(2)) })
}

/// Returns a function that renders metrics as text, like a metrics recorder.
fn render(factory: &SharedInformerFactory) -> impl Fn() -> String + Send + Sync + 'static {
    let informers = factory.weak_informers();
    move || {
        let line = |name: &str, objects: usize| format!("informer_objects{{informer=\"{name}\"}} {objects}\n");
        informers().iter().map(|informer| line(informer.name(), informer.health().objects)).collect()
    }
}

/// Runs the commands from stdin. At the end of stdin it waits for ever.
async fn obey(server: &ApiServer, hold: &watch::Sender<bool>) {
    // On a detached thread: the runtime would wait for a blocked read at the end of the program.
    let (sender, mut lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || std::io::stdin().lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let mut times = 0;
    while let Some(line) = lines.recv().await {
        match line.split_once(' ').unwrap_or((line.as_str(), "")) {
            ("fail", _) => {
                server.faults().add(Fault::status(503).resource("pods"));
                server.disconnect_watches();
            }
            ("heal", _) => server.faults().clear(),
            ("hold", _) => drop(hold.send_replace(true)),
            ("release", _) => drop(hold.send_replace(false)),
            ("touch", key) => {
                times += 1;
                annotate(server, key, &json!({"example.com/touched": format!("time {times}"), SPOILED: null}));
            }
            ("spoil", key) => annotate(server, key, &json!({SPOILED: "true"})),
            _ => eprintln!("unknown command: use fail, heal, hold, release, touch or spoil NAMESPACE/NAME"),
        }
    }
    std::future::pending::<()>().await;
}

/// Sets annotations of a pod, or removes those that are null.
fn annotate(server: &ApiServer, key: &str, annotations: &Value) {
    let (namespace, pod) = key.split_once('/').unwrap_or(("default", key));
    let patch = json!({"metadata": {"annotations": annotations}});
    if let Err(error) = server.patch("pods", Some(namespace), pod, patch) {
        eprintln!("{key}: {error}");
    }
}

async fn at_the_end(duration: Option<Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}
