//! `informer demo`: everything in one process, with no cluster.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube_embedded_apiserver::{ApiServer, Fault, Verb, Workload};
use kube_informer::{Event, Index, SharedInformer, SharedInformerFactory};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::ending;
use crate::failure::Failure;
use crate::say::say;

/// How many writes a second the cluster sees.
const RATE: f64 = 8.0;

/// How long the first lists may take: the server is in this process.
const SYNCED: Duration = Duration::from_secs(30);

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How long to go on, such as 5s or 2m; otherwise until Ctrl-C.
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration)]
    duration: Option<Duration>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let server = ApiServer::new();
    let mut workload = Workload::new(7).nodes(3).pods(12);
    for _ in 0..40 {
        workload.step(&server);
    }

    let clock = Clock(Instant::now());
    let factory = SharedInformerFactory::new(server.client());
    let cannot = |error| Failure::new("cannot follow the embedded server", error);
    let pods = factory.informer::<Pod>().map_err(cannot)?;
    let deployments = factory.informer::<Deployment>().map_err(cannot)?;
    let by_node = pods
        .add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone())
        .map_err(|error| Failure::new("cannot index pods by node", error))?;
    pods.on_error(move |error| clock.say(&format!("! pods: {error}")));
    deployments.on_error(move |error| clock.say(&format!("! deployments: {error}")));
    pods.on_event(move |event| tell_of_pod(clock, &event));
    deployments.on_event(move |event| tell_of_deployment(clock, &event));

    factory.start().map_err(|error| Failure::new("cannot start", error))?;
    factory.synced().within(SYNCED).await.map_err(|error| Failure::new("cannot sync", error))?;
    let version = pods.store().version().map_or_else(String::new, |version| version.to_string());
    clock.say(&format!("  synced: {} pods at version {version}", pods.store().len()));

    let end = CancellationToken::new();
    tokio::select! {
        () = workload.run(server.clone(), RATE, end.clone()) => {}
        () = trouble(&server, clock) => {}
        () = ending::after(arguments.duration) => {}
    }

    print_table(clock, &pods, &by_node);
    factory.stop().await;
    Ok(())
}

/// Things break, again and again.
async fn trouble(server: &ApiServer, clock: Clock) {
    loop {
        tokio::time::sleep(Duration::from_millis(1200)).await;
        clock.say("  the connection breaks: the watch goes on where it was");
        server.disconnect_watches();

        tokio::time::sleep(Duration::from_millis(1200)).await;
        let pods = server.list("pods").map(|(_, pods)| pods).unwrap_or_default();
        let Some((namespace, name)) = pods.iter().find_map(settled) else { continue };
        clock.say(&format!("  the server is away for a moment; meanwhile {namespace}/{name} goes and history is lost"));
        server.faults().add(Fault::status(503).verb(Verb::Watch).resource("pods").times(1));
        server.disconnect_watches();
        // If it went by itself just now, all the better.
        let _ = server.delete("pods", Some(namespace), name);
        server.compact();
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
}

/// Namespace and name of a pod that would stay if nobody touched it.
fn settled(pod: &serde_json::Value) -> Option<(&str, &str)> {
    let metadata = &pod["metadata"];
    let stays = pod["status"]["phase"] == "Running" && metadata["deletionTimestamp"].is_null();
    stays.then_some((metadata["namespace"].as_str()?, metadata["name"].as_str()?))
}

fn tell_of_pod(clock: Clock, event: &Event<Pod>) {
    let key = event.key();
    clock.say(&match event {
        Event::Added { object, initial: true } => format!("+ pod {key} is {} (from the start)", state(object)),
        Event::Added { object, initial: false } => format!("+ pod {key} is {}", state(object)),
        Event::Updated { old, new } if state(old) == state(new) => format!("~ pod {key} restarted"),
        Event::Updated { old, new } => format!("~ pod {key} was {}, is {}", state(old), state(new)),
        Event::Deleted(gone) if gone.is_final() => format!("- pod {key}"),
        Event::Deleted(_) => format!("- pod {key} (nobody saw it go: noticed by listing again)"),
        Event::Resynced(_) => return,
    });
}

fn tell_of_deployment(clock: Clock, event: &Event<Deployment>) {
    let key = event.key();
    clock.say(&match event {
        Event::Added { initial: true, .. } | Event::Resynced(_) => return,
        Event::Added { object, .. } => format!("+ deployment {key} wants {} pods", replicas(object)),
        Event::Updated { old, new } if replicas(old) == replicas(new) => format!("~ deployment {key} rolls"),
        Event::Updated { old, new } => {
            format!("~ deployment {key} wanted {}, wants {} pods", replicas(old), replicas(new))
        }
        Event::Deleted(_) => format!("- deployment {key}"),
    });
}

/// What is known at the end, read from the cache through the index.
fn print_table(clock: Clock, pods: &SharedInformer<Pod>, by_node: &Index<Pod>) {
    clock.say(&format!("  the cache holds {} pods; by node, through an index:", pods.store().len()));
    say("");
    say(&format!("  {:<8} {:>4} {:>8}  SOME OF THEM", "NODE", "PODS", "RUNNING"));
    for node in by_node.values() {
        let mut here = by_node.get(&node);
        here.sort_unstable_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        let running = here.iter().filter(|pod| state(pod) == "Running").count();
        let names: Vec<_> = here.iter().take(3).filter_map(|pod| pod.metadata.name.as_deref()).collect();
        say(&format!("  {node:<8} {:>4} {running:>8}  {}", here.len(), names.join(", ")));
    }
}

/// Writes lines with the time since the start.
#[derive(Clone, Copy)]
struct Clock(Instant);

impl Clock {
    fn say(self, line: &str) {
        say(&format!("{:6.2} s  {line}", self.0.elapsed().as_secs_f64()));
    }
}

fn state(pod: &Pod) -> &str {
    if pod.metadata.deletion_timestamp.is_some() {
        return "Terminating";
    }
    let scheduled = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    match pod.status.as_ref().and_then(|status| status.phase.as_deref()) {
        Some("Pending") if scheduled => "Scheduled",
        phase => phase.unwrap_or("Unknown"),
    }
}

fn replicas(deployment: &Deployment) -> i32 {
    deployment.spec.replicas.unwrap_or_default()
}
