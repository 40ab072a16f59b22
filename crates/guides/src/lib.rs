//! Compiles every block of Rust in README.md, the READMEs of the crates and the guides in `docs`, and runs those that
//! end.
//!
//! `build.rs` finds the blocks ([`blocks`]) and writes each one as a module; `tests/blocks.rs` includes them. The kind
//! of block decides what happens to it:
//!
//! | block | treatment |
//! |---|---|
//! | ```` ```rust ```` | The block is the body of an async function and may use `?`. It can use `server`, an embedded
//! API server with three objects (see `doc_server`), `client`, a client for it, and the names in [`prelude`]. The block
//! is run. |
//! | ```` ```rust,no_run ```` | The same, but the block is only compiled: it needs a cluster, or does not end. |
//! | a block with `fn main` or `#[test]` | The block is a whole file, and uses only names that it imports. Its `main`
//! is run unless the block has `no_run`; its tests are always run. |
//!
//! Code that the reader does not need stands in a comment directly before the block. It is compiled before the block:
//!
//! ```text
//! <!-- rust
//! let pods = SharedInformerFactory::new(client.clone()).informer::<Pod>()?;
//! -->
//! ```

pub mod blocks;

use std::error::Error;
use std::time::Duration;

use kube_client::Client;
use kube_embedded_apiserver::ApiServer;

/// The result of a block.
pub type Outcome = Result<(), Box<dyn Error>>;

/// The time limit for a block.
const LIMIT: Duration = Duration::from_secs(60);

/// Names that a block can use unless it is a whole file.
pub mod prelude {
    pub use std::error::Error;
    pub use std::sync::Arc;
    pub use std::time::Duration;

    pub use futures_util::StreamExt as _;
    pub use k8s_openapi::api::apps::v1::Deployment;
    pub use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, Secret, Service};
    pub use kube_client::api::{ListParams, Patch, PatchParams, PostParams};
    pub use kube_client::core::{ApiResource, DynamicObject, GroupVersionKind};
    pub use kube_client::{Api, Client, Resource as _, ResourceExt as _};
    pub use kube_controller::{
        Action, Controller, ControllerHandle, DelayingQueue, ElectionSettings, EventRecorder, EventType, Finalizer,
        Item, LeaderElector, Manager, Priority, Probe, Published, Queue, RateLimiter, Request, RunError, Term,
        WatchSource, WorkQueue, limiter, predicate,
    };
    pub use kube_embedded_apiserver::{ApiServer, Fault, History, Verb};
    pub use kube_informer::*;
    pub use serde_json::json;

    pub use crate::Outcome;
}

/// Runs a block with an API server.
///
/// # Panics
///
/// If the block fails, or takes longer than a minute.
pub fn run<F, R>(block: F)
where
    F: FnOnce(ApiServer, Client) -> R,
    R: Future<Output = Outcome>,
{
    doc_server::with(async |server| {
        let client = server.client();
        tokio::time::timeout(LIMIT, block(server, client)).await?
    });
}

/// The result of a `main` function.
pub trait MainResult {
    /// Panics if the result is an error.
    fn check(self);
}

impl MainResult for () {
    fn check(self) {}
}

impl<E: std::fmt::Debug> MainResult for Result<(), E> {
    fn check(self) {
        self.expect("main succeeds");
    }
}
