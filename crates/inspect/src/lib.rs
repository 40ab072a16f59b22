//! Shows what the informers of a program are doing, and what they hold: a read-only [`axum`] router that any program can mount,
//! with one live page on it.
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
//! // By itself, on a port of this machine that is free:
//! let serving = Inspection::of(factory.weak_informers()).title("shop").serve("127.0.0.1:0").await?;
//! println!("open {}", serving.url());
//!
//! // Or among the routes that the program has anyway:
//! let inspection = Inspection::of(factory.weak_informers()).token("open sesame");
//! let app: axum::Router = axum::Router::new().nest("/inspect", inspection.router());
//! # drop(app);
//! serving.stop().await;
//! # Ok(()) });
//! ```
//!
//! # What can be asked
//!
//! All of it by `GET`; anything else is answered with 405. Answers are JSON, as the types in [`model`] say. Parameters that
//! nobody knows, or that make no sense, are answered with 400 and a [`model::Failure`] that says what to do.
//!
//! | path | answer |
//! |---|---|
//! | `/` | the live page |
//! | `/api/informers` | [`model::Overview`]: every informer, and every queue of work |
//! | `/api/informers/{id}` | [`model::Informer`] |
//! | `/api/informers/{id}/keys?prefix=&after=&limit=` | [`model::Keys`]: what the cache holds, a page at a time; with `index=` and `value=` what has that value in an index |
//! | `/api/informers/{id}/values?index=&prefix=&after=&limit=` | [`model::Values`]: the values of an index |
//! | `/api/informers/{id}/object?key=` | [`model::Object`] |
//! | `/api/informers/{id}/history?key=` | [`model::History`]: its last changes, field by field |
//! | `/api/queues` | a list of [`model::Queue`] |
//! | `/api/stream?changes=false&informer=` | server-sent events: `health` with a [`model::Overview`] once a second, and at once when an informer does something else; `changes` with [`model::Changes`] |
//! | `/livez` | [`model::Probe`]: 200 unless an informer has stopped, else 503 |
//! | `/readyz?fresh=30s` | [`model::Probe`]: 200 if every informer has synced, and has heard of its server within that time if it is given; else 503 with what is missing, and why |
//! | `/metrics` | what the function given to [`Inspection::metrics`] renders |
//!
//! # What it costs
//!
//! Nothing while nobody looks. Changes are recorded from the first request for `api/stream` or `api/informers/{id}/history` until
//! half a minute after the last: each event is then written as JSON once or twice, which is too much for a program that nobody
//! watches. What is recorded is bounded: the last ten states of at most 500 objects, 8 MiB in all. What comes too fast for a
//! page is left out, counted, and said.
//!
//! # Who may look
//!
//! [`Inspection::serve`] listens on loopback only, and answers only those who call it by a name of this machine, so that a web
//! page elsewhere cannot read it by giving its own name this address. Any other address needs a [token](Inspection::token). A
//! router that a program mounts by itself asks for the token; without one it answers probes alone, unless the program says that it
//! is [open](Inspection::open) and sees to the rest by itself.
//!
//! Of Secrets neither data nor the last applied configuration is ever shown, and they can be looked up by no index but that of
//! their namespace, since an index may be made of what they hold.

mod answer;
mod difference;
mod guard;
mod inspection;
mod informers;
pub mod model;
mod objects;
mod page;
mod parameters;
mod probes;
mod recorder;
mod router;
mod serve;
mod stream;

pub use inspection::Inspection;
pub use serve::{ServeError, Serving};

/// What the README shows compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
