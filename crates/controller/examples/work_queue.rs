//! A controller built by hand: handler, queue, workers.
//!
//! `cargo run -p kube-controller --example work_queue -- --for 5s`, or with `--kubeconfig ~/.kube/config` for a real cluster.
//! `Controller` does all of this, and also waits for its own writes. This example shows the parts.

#![allow(missing_docs, unreachable_pub, reason = "an example is read as a whole")]

#[macro_use]
#[path = "../../informer/examples/connect/mod.rs"]
mod connect;

use std::time::Duration;

use clap::Parser;
use k8s_openapi::api::core::v1::Pod;
use kube_controller::{Item, Priority, WorkQueue};
use kube_informer::{Event, ObjectKey, SharedInformerFactory, Store};
use tokio::task::JoinSet;

/// Processes each pod that changes, with two workers.
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

    // The handler only adds keys. A key that is added several times waits once.
    let queue: WorkQueue<ObjectKey> = WorkQueue::default();
    let adds = queue.clone();
    pods.on_event(move |event| {
        let priority = match event {
            Event::Added { initial: true, .. } | Event::Resynced(_) => Priority::LOW,
            _ => Priority::NORMAL,
        };
        adds.add_with(event.key(), priority);
    });
    factory.start()?;
    factory.synced().within(Duration::from_secs(30)).await?;

    // Each worker takes one key after the other. The queue never gives one key to two workers.
    let mut workers = JoinSet::new();
    for number in 1..=2 {
        let (queue, store) = (queue.clone(), pods.store());
        workers.spawn(async move {
            while let Some(key) = queue.get().await {
                work(number, key, &store).await;
            }
        });
    }

    arguments.connection.until_the_end().await;
    let later = queue.drain().await;
    say!("done; {} keys were delayed", later.len());
    while workers.join_next().await.is_some() {}
    factory.stop().await;
    Ok(())
}

/// Processes a pod. A pod without a node counts as failed, and is retried with growing delays.
async fn work(worker: u32, key: Item<ObjectKey>, pods: &Store<Pod>) {
    let Some(pod) = pods.get(&*key) else {
        say!("worker {worker}: {} is deleted", *key);
        return key.forget();
    };
    match pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) {
        Some(node) => {
            say!("worker {worker}: {} runs on {node}", *key);
            key.forget();
        }
        None => {
            say!("worker {worker}: {} waits for a node, attempt {}", *key, key.num_requeues() + 1);
            key.retry();
        }
    }
}
