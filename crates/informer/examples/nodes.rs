//! A late handler: the informer syncs first, and a handler that is added then receives all cached objects.
//!
//! `cargo run -p kube-informer --example nodes`, or with `--kubeconfig ~/.kube/config` for a real cluster.

#![allow(missing_docs, unreachable_pub, reason = "an example is read as a whole")]

#[macro_use]
mod connect;

use std::time::Duration;

use clap::Parser;
use k8s_openapi::api::core::v1::Node;
use kube_informer::{Event, Selector, SharedInformerFactory};

/// Prints the nodes of a cluster and their changes.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    connection: connect::Connection,
}

#[tokio::main]
async fn main() -> connect::Outcome {
    let arguments = Arguments::parse();
    let connected = arguments.connection.connect().await?;

    let factory = SharedInformerFactory::new(connected.client.clone());
    let nodes = factory.informer::<Node>()?;
    nodes.on_error(|error| say!("! {error}"));
    factory.start()?;
    factory.synced().within(Duration::from_secs(30)).await?;
    say!("synced: {} nodes are cached, and no handler is registered yet", nodes.store().len());

    // The new handler first receives the cached objects as initial adds, and then every change. It receives nothing
    // twice and misses nothing, however fast the objects change.
    let handler = nodes.on_event(|event| match event {
        Event::Added { object, initial: true } => say!("= {}", name(&object)),
        Event::Added { object, initial: false } => say!("+ {}", name(&object)),
        Event::Updated { new, .. } => {
            say!("~ {} is {}", name(&new), if is_ready(&new) { "ready" } else { "not ready" })
        }
        Event::Deleted(gone) => say!("- {}", gone.key()),
        Event::Resynced(_) => {}
    });
    handler.synced().await;
    say!("the handler has received all of them");

    // Reads send no request: the lister reads from memory.
    let linux: Selector = "kubernetes.io/os=linux".parse()?;
    let mut found = nodes.lister().list(&linux);
    found.sort_unstable_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    for node in found {
        say!("{} runs {}", name(&node), kubelet(&node));
    }

    arguments.connection.until_the_end().await;
    factory.stop().await;
    Ok(())
}

fn name(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}

fn kubelet(node: &Node) -> &str {
    let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
    info.map_or("an unknown kubelet", |info| &info.kubelet_version)
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
