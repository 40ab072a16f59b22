//! Shared informers for Kubernetes: a program names the resources it cares about; the library keeps an exact, indexed,
//! local copy of each by list and watch, tells any number of handlers of every change in order, and answers reads from
//! memory.
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use kube_informer::{Event, Selector, SharedInformerFactory};
//! # use serde_json::json;
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! // An API server in this process; `kube_informer::client().await?` gives a client of a cluster.
//! let server = kube_embedded_apiserver::ApiServer::new();
//! # let pod = json!({"metadata": {"name": "a", "labels": {"app": "shop"}}, "spec": {"nodeName": "worker-7", "containers": []}});
//! server.create("pods", Some("default"), pod)?;
//!
//! let factory = SharedInformerFactory::new(server.client());
//! let pods = factory.informer::<Pod>()?;
//! let by_node = pods.add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone())?;
//! pods.on_event(|event| match event {
//!     Event::Added { object, .. } => println!("+ {:?}", object.metadata.name),
//!     Event::Updated { new, .. } => println!("~ {:?}", new.metadata.name),
//!     Event::Deleted(gone) => println!("- {}", gone.key()),
//!     Event::Resynced(_) => {}
//! });
//! factory.start()?;
//! factory.synced().await?;
//!
//! assert_eq!(by_node.get("worker-7").len(), 1);
//! let shop: Selector = "app=shop".parse()?;
//! assert_eq!(pods.lister().namespace("default").list(&shop).len(), 1);
//! factory.stop().await;
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The modules, in the order in which data passes through them:
//!
//! | module | what it does |
//! |---|---|
//! | [`object`] | says what the cache needs to know of an object |
//! | [`source`] | gets lists and watch events from a server |
//! | [`reflector`] | keeps asking, whatever goes wrong |
//! | [`queue`] | keeps changes in order |
//! | [`store`] | holds the objects and their indexes |
//! | [`apply`] | makes the changes to the store |
//! | [`processor`] | tells the handlers |
//! | [`informer`], [`factory`], [`lister`] | what programs use |
//! | [`health`] | says how it is going |

pub mod object;
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
#[cfg(test)]
mod testing;

#[cfg(feature = "kube")]
pub use factory::{SharedInformerFactory, client, client_from};
pub use health::{Health, InformerError, Phase};
pub use informer::SharedInformer;
pub use lister::{Lister, Selector};
pub use object::{Object, ObjectKey, ResourceVersion};
pub use processor::{
    AsyncEventHandler, Deleted, Delivery, Event, EventHandler, EventStream, Filtered, HandlerHandle, HandlerOptions,
    Handlers, Removal,
};
pub use queue::{Delta, DeltaFifo, QueueOrder};
pub use reflector::Reflector;
pub use source::ListWatch;
pub use store::{Index, Snapshot, Store};
/// What ends a reflector, or an informer that is run by hand.
pub use tokio_util::sync::CancellationToken;

/// What a panic said, if it said something.
fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
