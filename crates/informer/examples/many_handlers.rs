//! Many handlers on one informer: a fast one, a slow one, one that blocks its thread, one with a filter and one that
//! panics. Each receives every event, in order, at its own pace, and none delays the others.
//!
//! `cargo run -p kube-informer --example many_handlers`, or with `--kubeconfig ~/.kube/config` for a real cluster.

#![allow(missing_docs, unreachable_pub, reason = "an example is read as a whole")]

#[macro_use]
mod connect;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Parser;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    AsyncEventHandler, Deleted, Delivery, EventHandlerFuncs, FilteringEventHandler, RemoveMode, SharedInformerFactory,
};

/// Adds five handlers of the same pods.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    connection: connect::Connection,
}

/// The number of events that a handler received.
#[derive(Clone, Default)]
struct Count(Arc<AtomicU64>);

impl Count {
    /// Counts one more event, and returns its number.
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

#[tokio::main]
async fn main() -> connect::Outcome {
    let arguments = Arguments::parse();
    let connected = arguments.connection.connect().await?;
    // The informer catches panics of handlers and reports them. The default hook would print them a second time.
    std::panic::set_hook(Box::new(|_| {}));

    let factory = SharedInformerFactory::new(connected.client.clone());
    let pods = factory.informer::<Pod>()?;
    pods.on_error(|error| say!("! {error}"));
    let [brisk, slow, blocking, picky, clumsy] = std::array::from_fn(|_| Count::default());

    // A closure is the shortest form. It runs on the runtime, and must be short.
    let count = brisk.clone();
    let brisk_handle = pods.register().name("brisk").on_event(move |_| {
        count.next();
    });

    // This handler is slow. Its queue does not grow without end, because it keeps only the latest state of each object.
    let slow_handle = pods.register().name("slow").delivery(Delivery::Latest).async_handler(Slow(slow.clone()));

    // Code that blocks gets a thread for each call.
    let count = blocking.clone();
    let blocking_handle = pods.register().name("blocking").on_event_blocking(move |_| {
        std::thread::sleep(Duration::from_millis(50));
        count.next();
    });

    // Only running pods. A pod that starts to run is an add, and one that stops is a delete.
    let count = picky.clone();
    let running = EventHandlerFuncs::new().on_add(move |pod: Arc<Pod>, _| {
        say!("{} runs ({} so far)", pod.metadata.name.as_deref().unwrap_or_default(), count.next());
    });
    let picky_handle = pods.register().name("picky").handler(FilteringEventHandler::new(is_running, running));

    // A panic costs this handler the event, and no other handler anything.
    let count = clumsy.clone();
    let clumsy_handle = pods.register().name("clumsy").on_event(move |event| {
        assert!(!count.next().is_multiple_of(20), "stumbled over {}", event.key());
    });

    factory.start()?;
    factory.synced().within(Duration::from_secs(30)).await?;
    arguments.connection.until_the_end().await;

    let counts = [brisk, slow, blocking, picky, clumsy];
    let handles = [brisk_handle, slow_handle, blocking_handle, picky_handle, clumsy_handle];
    for (Count(count), handle) in counts.iter().zip(&handles) {
        let told = count.load(Ordering::Relaxed);
        say!("{:<8} received {told:>3}, {:>2} wait", handle.name(), handle.backlog());
    }
    // Handlers can be added and removed while the informer runs. These removals discard the waiting events.
    for handle in handles {
        handle.remove(RemoveMode::Discard).await?;
    }
    factory.stop().await;
    Ok(())
}

/// A handler with its own state and async methods.
struct Slow(Count);

impl AsyncEventHandler<Pod> for Slow {
    async fn on_add(&mut self, _pod: Arc<Pod>, _initial: bool) {
        self.take_time().await;
    }

    async fn on_update(&mut self, _old: Arc<Pod>, _new: Arc<Pod>) {
        self.take_time().await;
    }

    async fn on_delete(&mut self, _gone: Deleted<Pod>) {
        self.take_time().await;
    }
}

impl Slow {
    async fn take_time(&mut self) {
        tokio::time::sleep(Duration::from_millis(200)).await;
        self.0.next();
    }
}

fn is_running(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
}
