//! The parts of an informer, connected by hand as in client-go: a reflector lists and watches, a `DeltaFifo` keeps all
//! deltas of one object together, and one loop pops them and writes a store.
//!
//! `cargo run -p kube-informer --example delta_fifo`, or with `--kubeconfig ~/.kube/config` for a real cluster.

#![allow(missing_docs, unreachable_pub, reason = "an example is read as a whole")]

#[macro_use]
mod connect;

use std::error::Error;
use std::sync::Arc;

use clap::Parser;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::parts::{Batch, Changes, DeltaFifo, KeyDelta, KubeSource, OnError, Reflector, StoreWriter, Work};
use kube_informer::{CancellationToken, Deleted, InformerOptions, Store};

/// Keeps a store of all pods current, by hand.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    connection: connect::Connection,
}

#[tokio::main]
async fn main() -> connect::Outcome {
    let arguments = Arguments::parse();
    queue_alone();

    let connected = arguments.connection.connect().await?;
    let (store, mut writer) = Store::<Pod>::new(0);

    // The queue compares each list with the store: objects that are no longer listed must be deleted.
    let (sink, mut changes) = Changes::new(DeltaFifo::new().emit_replaced(true), store.clone());
    let source = KubeSource::new(connected.client.clone());
    let reflector = Reflector::new(source, sink, &InformerOptions::new());
    let report = OnError::Retry(Box::new(|error| say!("! {error}")));

    let cancel = CancellationToken::new();
    let end = async {
        arguments.connection.until_the_end().await;
        cancel.cancel();
    };
    tokio::join!(
        reflector.run(cancel.clone()),
        changes.process(|batch| apply(&mut writer, batch), report, cancel.clone()),
        end,
    );
    say!("the store holds {} pods", store.len());
    Ok(())
}

/// Applies the deltas of one object, oldest first. After an error the batch would be put back into the queue.
fn apply(writer: &mut StoreWriter<Pod>, batch: Batch<Pod>) -> Result<(), Box<dyn Error + Send + Sync>> {
    match batch.work {
        Work::Object(key, deltas) => {
            for delta in deltas {
                // The store decides whether a delta is an add or an update, because only the store knows the previous
                // state.
                let sign = match delta {
                    KeyDelta::Deleted(_) => writer.remove(&key).map(|_| '-'),
                    change => Some(if writer.put(change.object().clone()).is_some() { '~' } else { '+' }),
                };
                sign.into_iter().for_each(|sign| say!("{sign} {key}"));
            }
        }
        Work::Listed(list) => {
            say!("  a list is complete: {} pods", writer.store().len());
            writer.set_version(list.version);
        }
        // Bookmarks, undecodable objects, a server restored from a backup: an informer handles all of them.
        other => say!("  {other:?}"),
    }
    Ok(())
}

/// Uses the queue as a plain value, without server, task and clock.
fn queue_alone() {
    let (store, _writer) = Store::<Pod>::new(0);
    let mut queue = DeltaFifo::new();
    queue.add(pod("a", "1"));
    queue.add(pod("b", "2"));
    queue.update(pod("a", "3"));
    queue.delete(Deleted::Final(pod("a", "4")), &store.snapshot());
    while let Some((key, deltas)) = queue.pop() {
        say!("{key}: {deltas:?}");
    }
    queue.processed();
    say!("");
}

fn pod(name: &str, version: &str) -> Arc<Pod> {
    let mut pod = Pod::default();
    pod.metadata.namespace = Some("web".to_owned());
    pod.metadata.name = Some(name.to_owned());
    pod.metadata.resource_version = Some(version.to_owned());
    Arc::new(pod)
}
