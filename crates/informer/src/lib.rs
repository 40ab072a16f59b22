//! Shared informers for Kubernetes: a program names the resources it cares about; the library keeps an exact, indexed,
//! local copy of each by list and watch, tells any number of handlers of every change in order, and answers reads from
//! memory.
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
//! factory.synced().within(Duration::from_secs(30)).await?; // Or says what is missing, and why.
//!
//! assert_eq!(by_node.get("worker-7").len(), 1);
//! let shop: Selector = "app=shop".parse()?;
//! assert_eq!(pods.lister().namespace("default").list(&shop).len(), 1);
//! factory.stop().await;
//! # Ok(()) });
//! ```
//!
//! The modules, in the order in which data passes through them:
//!
//! | module | what it does |
//! |---|---|
//! | [`object`] | says what a cache asks of an object |
//! | [`representation`] | makes objects from what a server sends, and decides what is kept of them |
//! | [`settings`] | holds what to ask for, and how to keep it |
//! | [`source`] | gets lists and watch events from a server |
//! | [`reflector`] | keeps asking, whatever goes wrong |
//! | [`queue`] | keeps changes in order |
//! | [`store`] | holds the objects and their indexes |
//! | [`apply`] | makes the changes to the store |
//! | [`processor`] | tells the handlers; what they may rely on stands there |
//! | [`informer`], [`factory`], [`lister`] | what programs use |
//! | [`health`] | says how it is going |

pub mod object;
pub mod representation;
pub mod settings;
pub mod source;
pub mod reflector;
pub mod queue;
pub mod store;
pub mod apply;
pub mod processor;
pub mod informer;
#[cfg(feature = "kube")]
pub mod factory;
pub mod lister;
pub mod health;
#[doc(hidden)]
pub mod seam;
#[cfg(feature = "__measured_locks")]
#[doc(hidden)]
pub mod lock;
#[cfg(not(feature = "__measured_locks"))]
mod lock;
mod time;
#[cfg(test)]
mod testing;

#[cfg(feature = "kube")]
pub use factory::{InformerRequest, SharedInformerFactory, client, client_from};
pub use health::{Health, InformerError};
pub use informer::{AnyInformer, SharedInformer};
pub use lister::Lister;
pub use object::{Object, ObjectKey, ResourceVersion, Selector};
pub use processor::{
    AsyncEventHandler, Delivery, Event, EventHandler, EventStream, Filtered, HandlerHandle, Handlers, Removal,
};
pub use queue::{Deleted, Delta, DeltaFifo, QueueOrder};
pub use reflector::{Phase, Reflector};
#[cfg(feature = "compact")]
pub use representation::Compact;
pub use representation::View;
pub use settings::{InformerOptions, Selection};
pub use source::ListWatch;
pub use store::{Index, Snapshot, Store};
/// What ends a reflector, or a loop over changes that is run by hand.
pub use tokio_util::sync::CancellationToken;

/// What a panic said, if it said something.
fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
