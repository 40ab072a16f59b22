//! Prints the changes of the pods of one namespace.
//!
//! `cargo run -p kube-informer --example pods`, or with `--kubeconfig ~/.kube/config --namespace web` for a real cluster.

#![allow(missing_docs, unreachable_pub, reason = "an example is read as a whole")]

#[macro_use]
mod connect;

use std::time::Duration;

use clap::Parser;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{Event, Selection, SharedInformerFactory};

/// Prints the changes of the pods of one namespace.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    connection: connect::Connection,
    /// The namespace to follow.
    #[arg(long, short, default_value = "default")]
    namespace: String,
}

#[tokio::main]
async fn main() -> connect::Outcome {
    let arguments = Arguments::parse();
    let connected = arguments.connection.connect().await?;

    let selection = Selection::new().namespace(arguments.namespace)?;
    let factory = SharedInformerFactory::builder(connected.client.clone()).select(selection).build();
    let pods = factory.informer::<Pod>()?;
    let by_node = pods.add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone())?;
    pods.on_error(|error| say!("! {error}"));
    pods.on_event(|event| match event {
        Event::Added { object, .. } => say!("+ {} is {}", name(&object), state(&object)),
        Event::Updated { old, new } => say!("~ {} was {}, is {}", name(&new), state(&old), state(&new)),
        Event::Deleted(gone) => say!("- {}", gone.key()),
        Event::Resynced(_) => {}
    });
    factory.start()?;
    factory.synced().within(Duration::from_secs(30)).await?;
    say!("synced: {} pods", pods.store().len());

    arguments.connection.until_the_end().await;
    for node in by_node.values() {
        say!("{node} runs {} pods", by_node.count(&node));
    }
    factory.stop().await;
    Ok(())
}

fn name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

/// Returns about the same status as `kubectl get pods`.
fn state(pod: &Pod) -> &str {
    if pod.metadata.deletion_timestamp.is_some() {
        return "Terminating";
    }
    let placed = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    match pod.status.as_ref().and_then(|status| status.phase.as_deref()) {
        Some("Pending") if placed => "ContainerCreating",
        phase => phase.unwrap_or("Unknown"),
    }
}
