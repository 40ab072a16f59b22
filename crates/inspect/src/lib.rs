//! Shows the state and the objects of a program's informers: a read-only [`axum`] router that any program can mount,
//! with a live page.
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use kube_informer::SharedInformerFactory;
//! use kube_informer_inspect::Inspection;
//!
//! # doc_server::with(async |server| {
//! let factory = SharedInformerFactory::new(server.client());
//! let pods = factory.informer::<Pod>()?;
//! pods.add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone())?;
//! factory.start()?;
//!
//! // A server on a free loopback port:
//! let serving = Inspection::of(factory.weak_informers()).title("shop").serve("127.0.0.1:0").await?;
//! println!("open {}", serving.url());
//!
//! // Or a part of the program's own routes:
//! let inspection = Inspection::of(factory.weak_informers()).token("open sesame");
//! let app: axum::Router = axum::Router::new().nest("/inspect", inspection.router());
//! # drop(app);
//! serving.stop().await;
//! # Ok(()) });
//! ```
//!
//! # Paths
//!
//! All paths are read by `GET`; other methods are answered with 405. Responses are JSON, with the types in [`model`].
//! Unknown or invalid parameters are answered with 400 and a [`model::Failure`] with a hint.
//!
//! | path | response |
//! |---|---|
//! | `/` | the live page |
//! | `/api/informers` | [`model::Overview`]: all informers and work queues |
//! | `/api/informers/{id}` | [`model::Informer`] |
//! | `/api/informers/{id}/keys?prefix=&after=&limit=` | [`model::Keys`]: the keys in the cache, in pages; with `index=`
//! and `value=` those with this value of an index |
//! | `/api/informers/{id}/values?index=&prefix=&after=&limit=` | [`model::Values`]: the values of an index |
//! | `/api/informers/{id}/object?key=` | [`model::Object`] |
//! | `/api/informers/{id}/history?key=` | [`model::History`]: the last changes of an object, field by field |
//! | `/api/queues` | a list of [`model::Queue`] |
//! | `/api/stream?changes=false&informer=` | server-sent events: `health` with a [`model::Overview`] every second, and
//! at once when the phase of an informer changes; `changes` with [`model::Changes`] |
//! | `/livez` | [`model::Probe`]: 503 if an informer has stopped, otherwise 200 |
//! | `/readyz?fresh=30s` | [`model::Probe`]: 200 if every informer is synced, and with `fresh` has received a message
//! of its server within that time; otherwise 503 with the reasons |
//! | `/metrics` | the text of the function that was passed to [`Inspection::metrics`] |
//!
//! # Costs
//!
//! Without a reader there are no costs. Changes are recorded from the first request for `api/stream` or
//! `api/informers/{id}/history` until 30 s after the last one. During that time each event is encoded as JSON once or
//! twice. The memory is bounded: the last ten states of at most 500 objects, 8 MiB in all. Events that arrive faster
//! than a page can show them are dropped and counted.
//! # Access
//!
//! [`Inspection::serve`] listens on loopback, and accepts only requests with a loopback host name, so that another
//! site's page cannot read it by DNS rebinding. Any other address needs a [token](Inspection::token). A mounted router
//! requires the token; without a token it answers only probes, unless the program calls [`Inspection::open`] and checks
//! access itself. The probes, `/livez` and `/readyz`, never need the token.
//!
//! The data and the last-applied annotation of Secrets are never shown. Secrets can be found only by the index of
//! namespaces, because other indexes may contain their data.

pub mod model;
mod answer;
mod guard;
mod parameters;
mod ids;
mod difference;
mod recorder;
mod state;
mod objects;
mod informers;
mod probes;
mod stream;
mod page;
mod router;
mod serve;
mod inspection;

pub use inspection::Inspection;
pub use serve::{ServeError, Serving};

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
