//! Every code block in README.md, the READMEs of the crates and the guides in `docs` compiles, and runs where it can.
//!
//! `build.rs` finds the blocks ([`blocks`]) and writes each into a module of its own; `tests/blocks.rs` is all of them. What a
//! block says decides how it is treated:
//!
//! | block | what becomes of it |
//! |---|---|
//! | ```` ```rust ```` | the body of an async function that may use `?`. It has `server`, an embedded API server with a few objects in it (see `doc_server`), `client`, a client of it, and the names in [`prelude`]; it is run |
//! | ```` ```rust,no_run ```` | the same, and is compiled only: it needs a cluster, or does not end |
//! | one with a `fn main` or a `#[test]` in it | a whole file: it gets no names but those it imports, as if it were pasted. `main` is run unless `no_run`, tests always |
//!
//! What a reader need not see stands in a comment of its own right before the block, and is compiled in front of it:
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

/// What a block gives in the end.
pub type Outcome = Result<(), Box<dyn Error>>;

/// No block takes that long, unless it hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// What every block that is no whole file may name.
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

/// Runs a block, with a server of its own.
///
/// # Panics
///
/// If the block fails, or does not end: it is a test.
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

/// What a `main` gives.
pub trait Ended {
    /// Fails if it failed.
    fn check(self);
}

impl Ended for () {
    fn check(self) {}
}

impl<E: std::fmt::Debug> Ended for Result<(), E> {
    fn check(self) {
        self.expect("main ends well");
    }
}
