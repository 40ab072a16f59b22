//! Three indexes of pods: by node, by image and by application. Every change updates them.
//!
//! `cargo run -p kube-informer --example indexes`, or with `--kubeconfig ~/.kube/config` for a real cluster.

#![allow(missing_docs, unreachable_pub, reason = "an example is read as a whole")]

#[macro_use]
mod connect;

use std::time::Duration;

use clap::Parser;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{SharedInformer, SharedInformerFactory};

/// Prints repeatedly where the pods run and which images they use.
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
    let pods = factory.informer::<Pod>()?;
    pods.on_error(|error| say!("! {error}"));

    // An index function returns no value, one, or many for each object, as strings.
    pods.add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone())?;
    // The same without a copy of each value: the function passes values that it borrows from the pod.
    pods.add_index_with("image", |pod: &Pod, add| {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        containers.filter_map(|container| container.image.as_deref()).for_each(add);
    })?;
    factory.start()?;
    factory.synced().within(Duration::from_secs(30)).await?;

    // An index may be added late: it is filled from the cached objects.
    pods.add_index("app", |pod: &Pod| pod.metadata.labels.as_ref()?.get("app").cloned())?;

    tokio::select! {
        () = report(&pods) => {}
        () = arguments.connection.until_the_end() => {}
    }
    factory.stop().await;
    Ok(())
}

async fn report(pods: &SharedInformer<Pod>) {
    loop {
        for name in ["node", "image", "app"] {
            let Some(index) = pods.store().index(name) else { continue };
            let counts: Vec<_> = index.values().iter().map(|value| format!("{value} {}", index.count(value))).collect();
            say!("by {name}: {}", counts.join(", "));
        }
        // Reads that must be consistent use a snapshot: objects and indexes at one point in time. A snapshot costs the
        // same at any size, and blocks no writer.
        let snapshot = pods.store().snapshot();
        let everywhere = snapshot.by_index("namespace", "default").count();
        let placed = snapshot.by_index("namespace", "default").filter(|pod| is_placed(pod)).count();
        say!("in namespace default: {placed} of {everywhere} pods have a node; {} pods in total", snapshot.len());
        say!("");
        tokio::time::sleep(Duration::from_millis(750)).await;
    }
}

fn is_placed(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
}
