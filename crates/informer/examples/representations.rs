//! The type parameter of an informer decides how much of an object it keeps: a few fields of pods and nodes, secrets
//! without their data, and whole pods as compressed bytes.
//!
//! `cargo run -p kube-informer --example representations`, or with `--kubeconfig ~/.kube/config` for a real cluster.

#![allow(missing_docs, unreachable_pub, reason = "an example is read as a whole")]

#[macro_use]
mod connect;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use k8s_openapi::api::core::v1::{Node, Pod, Secret};
use kube_informer::{Compact, Projection, SharedInformerFactory, View};
use serde::Deserialize;

/// The fields that a scheduler reads from a pod. Other fields are not stored. `Box<str>` and boxed slices take no more
/// memory than their contents.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodView {
    spec: PodSpecView,
    #[serde(default)]
    status: PodStatusView,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpecView {
    node_name: Option<Box<str>>,
    containers: Box<[ContainerView]>,
}

#[derive(Deserialize)]
struct ContainerView {
    image: Option<Box<str>>,
}

#[derive(Deserialize, Default)]
struct PodStatusView {
    phase: Option<Box<str>>,
}

impl Projection for PodView {
    type Of = Pod;
}

/// The capacity of a node, and whether it accepts pods.
#[derive(Deserialize)]
struct NodeView {
    #[serde(default)]
    spec: NodeSpecView,
    #[serde(default)]
    status: NodeStatusView,
}

#[derive(Deserialize, Default)]
struct NodeSpecView {
    #[serde(default)]
    unschedulable: bool,
}

#[derive(Deserialize, Default)]
struct NodeStatusView {
    #[serde(default)]
    allocatable: BTreeMap<Box<str>, Box<str>>,
}

impl Projection for NodeView {
    type Of = Node;
}

/// A secret without its data: metadata and type.
#[derive(Deserialize)]
struct SecretView {
    #[serde(rename = "type")]
    kind: Option<Arc<str>>,
}

impl Projection for SecretView {
    type Of = Secret;
}

/// Prints repeatedly what the caches can tell.
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
    let pods = factory.informer::<View<PodView>>()?;
    let nodes = factory.informer::<View<NodeView>>()?;
    let secrets = factory.informer::<View<SecretView>>()?;
    // The whole object in a twenty-fifth of the memory of a `Pod`. Each field is read on request.
    let whole = factory.informer::<Compact<Pod>>()?;
    let by_node = pods.add_index("node", |pod: &View<PodView>| pod.spec.node_name.clone())?;
    factory.start()?;
    factory.synced().within(Duration::from_secs(30)).await?;

    let report = async {
        loop {
            for node in &nodes.store().snapshot() {
                let (name, closed) = (node.metadata().name(), node.spec.unschedulable);
                let here = by_node.get(name);
                let running = here.iter().filter(|pod| pod.status.phase.as_deref() == Some("Running")).count();
                let images = here.iter().flat_map(|pod| &pod.spec.containers).filter_map(|part| part.image.as_deref());
                let memory = node.status.allocatable.get("memory").map_or("unknown", |memory| memory);
                let images = images.collect::<std::collections::BTreeSet<_>>().len();
                say!("{name}: {running} pods run {images} images, memory {memory}, closed: {closed}");
            }
            let types: BTreeMap<_, usize> = secrets.store().iter().fold(BTreeMap::new(), |mut types, secret| {
                *types.entry(secret.kind.as_deref().unwrap_or("Opaque").to_owned()).or_default() += 1;
                types
            });
            say!("secrets by type: {types:?}");
            if let Some(pod) = whole.store().iter().next() {
                // One field is read without decoding the rest. The whole object is an `Arc<Pod>`, which stays decoded
                // for some time.
                let service_account: Option<String> = pod.get("/spec/serviceAccountName")?;
                let containers = pod.decode()?.spec.as_ref().map_or(0, |spec| spec.containers.len());
                let bytes = pod.stored_bytes();
                say!(
                    "one of {} pods in {bytes} bytes: {containers} containers, {service_account:?}",
                    whole.store().len()
                );
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    tokio::select! {
        outcome = report => outcome,
        () = arguments.connection.until_the_end() => {
            factory.stop().await;
            Ok(())
        }
    }
}
