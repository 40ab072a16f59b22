//! The parts of an informer, usable one by one, as client-go's `tools/cache`. A program that uses
//! [`SharedInformer`](crate::SharedInformer) needs none of them.
//!
//! A [`Reflector`] lists and watches a source ([`ListWatch`]: [`KubeSource`], two closures with [`ListWatchFns`], or
//! your own) and writes [`Delta`]s to a [`Sink`]. [`Changes`] is a queue with such a sink: [`OrderedQueue`] keeps the
//! order of the stream, [`DeltaFifo`] keeps the changes of one object together. A loop pops [`Batch`]es from it and
//! does what the program wants, such as to write to a store through its only [`StoreWriter`].
//!
//! | client-go | here |
//! |---|---|
//! | `ListerWatcher` | [`ListWatch`] |
//! | `Reflector`, `ReflectorStore` | [`Reflector`], [`Sink`] |
//! | `RealFIFO`, `DeltaFIFO`, `Queue` | [`OrderedQueue`], [`DeltaFifo`], [`DeltaQueue`] |
//! | `Pop`, `processLoop` | [`Changes::pop`], [`Changes::process`] |
//! | `ThreadSafeStore` | [`Store::new`](crate::Store::new), [`StoreWriter`], [`Transaction`] |
//!
//! A cache of your own, from these parts:
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube_informer::parts::{Batch, Changes, DeltaFifo, KeyDelta, KubeSource, Reflector, Work};
//! use kube_informer::{CancellationToken, InformerOptions, Store};
//! # doc_server::with(async |server| {
//! let (store, mut writer) = Store::<ConfigMap>::new(0);
//! let (sink, mut changes) = Changes::new(DeltaFifo::new().emit_replaced(true), store.clone());
//! let reflector = Reflector::new(KubeSource::new(server.client()), sink, &InformerOptions::new());
//! let cancel = CancellationToken::new();
//!
//! let mut apply = |batch: Batch<ConfigMap>| match batch.work {
//!     Work::Object(key, deltas) => for delta in deltas {
//!         match delta {
//!             KeyDelta::Deleted(_) => _ = writer.remove(&key),
//!             KeyDelta::Added(object) | KeyDelta::Updated(object) | KeyDelta::Replaced(object) => _ = writer.put(object),
//!             _ => {} // A resync, or an object that could not be decoded.
//!         }
//!     },
//!     Work::Listed(mark) => {
//!         writer.set_version(mark.version);
//!         cancel.cancel(); // The first list is applied: enough for an example.
//!     }
//!     _ => {}
//! };
//! let work = async {
//!     while !cancel.is_cancelled() {
//!         changes.pop(&mut apply).await; // The batch counts as queued until this returns.
//!     }
//! };
//! tokio::join!(reflector.run(cancel.clone()), work);
//! assert!(store.contains("web/a"));
//! # Ok(()) });
//! ```

pub use crate::apply::{Changes, OnError};
pub use crate::object::Cached;
pub use crate::queue::{
    Batch, Delta, DeltaFifo, DeltaQueue, Deltas, KeyDelta, ListMark, OrderedQueue, Pending, Piece, Replacement,
    ScopeChange, Work,
};
pub use crate::reflector::{Reflector, Sink};
#[cfg(feature = "kube")]
pub use crate::source::kube::KubeSource;
pub use crate::source::{
    Decoded, ListEnd, ListOptions, ListPart, ListStream, ListWatch, ListWatchFns, WatchEvent, WatchOptions, WatchStream,
};
pub use crate::store::{StoreWriter, Transaction};
