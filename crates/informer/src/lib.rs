//! Shared informers for Kubernetes: a program names the resources it cares about; the library keeps an exact, indexed,
//! local copy of each by list and watch, tells any number of handlers of every change in order, and answers reads from
//! memory.
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
//! | `apply` | makes the changes to the store |
//! | [`processor`] | tells the handlers |
//! | [`informer`], [`factory`], [`lister`] | what programs use |
//! | [`health`] | says how it is going |

mod apply;
#[cfg(feature = "kube")]
pub mod factory;
pub mod health;
pub mod informer;
pub mod lister;
pub mod object;
pub mod processor;
pub mod queue;
pub mod reflector;
pub mod source;
pub mod store;

#[cfg(feature = "kube")]
pub use factory::{SharedInformerFactory, client, client_from};
pub use health::{Health, InformerError, Phase};
pub use informer::SharedInformer;
pub use lister::Lister;
pub use object::{Object, ObjectKey, ResourceVersion};
pub use processor::{Deleted, Delivery, Event, EventHandler, HandlerHandle, Removal};
pub use reflector::Reflector;
pub use source::ListWatch;
pub use store::{Index, Snapshot, Store};

#[cfg(test)]
mod testing;

/// What a panic said, if it said something.
fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
