//! Shared informers for Kubernetes. A program names the resources that it needs. An informer keeps an exact, indexed
//! copy of each resource in memory by list and watch, calls any number of handlers with every change in order, and
//! answers reads from memory.
//!
//! ```
//! use std::time::Duration;
//! use k8s_openapi::api::core::v1::Pod;
//! use kube_informer::{Event, Selector, SharedInformerFactory};
//!
//! # doc_server::with(async |server| {
//! // An API server in this process; `kube_informer::client().await?` gives a client of a cluster.
//! let server = kube_embedded_apiserver::ApiServer::new();
//! # let pod = serde_json::json!({"metadata": {"name": "a", "labels": {"app": "shop"}}, "spec": {"nodeName": "worker-7", "containers": []}});
//! server.create("pods", Some("default"), pod)?;
//!
//! let factory = SharedInformerFactory::new(server.client());
//! let pods = factory.informer::<Pod>()?;
//! let by_node = pods.add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone())?;
//! pods.on_error(|error| eprintln!("pods: {error}"));
//! pods.on_event(|event| match event {
//!     Event::Added { object, .. } => println!("+ {:?}", object.metadata.name),
//!     Event::Updated { new, .. } => println!("~ {:?}", new.metadata.name),
//!     Event::Deleted(gone) => println!("- {}", gone.key()),
//!     Event::Resynced(_) => {}
//! });
//! factory.start()?;
//! factory.synced().within(Duration::from_secs(30)).await?; // An error says what is missing, and why.
//!
//! assert_eq!(by_node.get("worker-7").len(), 1);
//! let shop: Selector = "app=shop".parse()?;
//! assert_eq!(pods.lister().namespace("default").list(&shop).len(), 1);
//! factory.stop().await;
//! # Ok(()) });
//! ```
//!
//! | to do | use |
//! |---|---|
//! | make informers, and share them | [`SharedInformerFactory`], [`client()`], [`InformerRequest`], [`Selection`], [`InformerOptions`] |
//! | receive changes | [`SharedInformer::on_event`], [`EventHandler`] (with the guarantees), [`AsyncEventHandler`], [`EventStream`], [`Event`] |
//! | build one state from several kinds | [`Consumer`] |
//! | read objects | [`Store`], [`Snapshot`], [`Lister`], [`Index`], [`Selector`], [`Lookup`], [`Lingering`] |
//! | wait | [`SharedInformer::synced`], [`wait_for`](SharedInformer::wait_for), [`saw`](SharedInformer::saw), [`wait_for_latest`](SharedInformer::wait_for_latest), [`Wait`], [`Store::changed_since`] |
//! | choose what is kept of each object | a type: `Pod`, [`View`], [`Compact`], [`Metadata`], [`Identity`]; your own with [`Object`] and [`Decode`] |
//! | know how the informer does | [`Health`], [`InformerError`], [`AnyInformer`] |
//! | build something else from the parts | [`parts`]: the reflector, the queues, the writer of a store, sources |

mod time;
mod lock;
mod yield_point;
mod object;
mod representation;
mod settings;
mod source;
mod store;
mod queue;
mod reflector;
mod health;
mod processor;
mod apply;
mod lister;
mod informer;
#[cfg(feature = "kube")]
mod factory;
pub mod parts;
#[doc(hidden)]
pub mod internal;
#[cfg(test)]
mod testing;

#[cfg(feature = "kube")]
pub use factory::{FactoryBuilder, FactoryError, InformerRequest, SharedInformerFactory, client, client_from};
pub use health::{
    AnyProbe, AnyQueue, Counts, ElectionHealth, FailingItem, HandlerHealth, Health, HealthChanges, InformerError,
    LingeringHealth, PartHealth, Problem, QueueHealth, RecentFailure, Undecodable, WorkTimes,
};
pub use informer::{
    AnyEvent, AnyInformer, Consumer, ConsumerHandle, Difference, EventKind, InformerBuilder, InvalidChange,
    InvalidChanges, Lookup, NamespaceGuard, NamespaceState, Registration, ScopeError, SharedInformer, StartError,
    StillRunning, VerifyError, Wait, WaitError,
};
pub use lister::{Lister, NamespaceLister};
pub use object::{
    Id, KeyError, KeyRef, Object, ObjectKey, Owner, ResourceType, ResourceVersion, Scope, Selector, SelectorError,
};
pub use processor::{
    AsyncEventHandler, BatchReason, Deleted, Delivery, Event, EventHandler, EventHandlerFuncs, EventStream,
    FilteringEventHandler, HandlerGuard, HandlerHandle, RemoveError, RemoveMode,
};
pub use reflector::{IncompleteReason, ListReason, Phase, ReflectorError};
#[cfg(feature = "compact")]
pub use representation::Compact;
pub use representation::{
    Decode, DecodeError, Identity, ManagedFields, Metadata, Projection, Raw, StaticResource, View,
};
pub use settings::{BackoffOptions, InformerOptions, QueueOrder, Selection, SelectionError};
pub use source::{BadObject, SourceError, Status};
pub use store::{Index, IndexError, IndexValues, Lingering, Revision, Snapshot, Store};
/// The token that stops a reflector, or a loop over changes.
pub use tokio_util::sync::CancellationToken;

/// Returns the message of a panic.
fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let message = panic.downcast_ref::<&str>().map(|message| (*message).to_owned());
    message.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
