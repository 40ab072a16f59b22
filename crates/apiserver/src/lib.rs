//! A Kubernetes-compatible API server in memory: in process or over HTTP, with no cluster.
//!
//! An [`ApiServer`] stores objects of all built-in kinds and of custom ones, and answers list, watch and writes the way
//! a real API server does. It is made for tests, simulations and demonstrations:
//!
//! - in process it needs no port and no task, and works on a paused tokio clock;
//! - all chance comes from one seed, so that a run can be repeated;
//! - [`Faults`] make things go wrong on purpose, and tell what did;
//! - over HTTP ([`ApiServer::serve`]) kubectl, curl and clients in any language can talk to it.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube_client::api::{Api, ListParams};
//! use kube_embedded_apiserver::{ApiServer, Fault, Verb};
//! use serde_json::json;
//!
//! let server = ApiServer::builder().seed(1).build();
//! server.create("configmaps", Some("default"), json!({"metadata": {"name": "a"}}))?;
//! server.faults().add(Fault::status(503).verb(Verb::List).nth(1));
//!
//! let api: Api<ConfigMap> = Api::default_namespaced(server.client());
//! assert!(api.list(&ListParams::default()).await.is_err());
//! assert_eq!(api.list(&ListParams::default()).await?.items.len(), 1);
//! assert_eq!(server.faults().count("status"), 1);
//! # Ok(())
//! # }
//! ```

mod accept;
mod admin;
mod auth;
mod builder;
mod chance;
mod clock;
mod collection;
mod compress;
mod crd;
mod deadline;
mod direct;
mod discovery;
mod dispatch;
mod event;
mod fault;
mod general;
mod http;
mod hub;
mod journal;
mod kubeconfig;
mod list;
mod namespace;
mod object;
mod pace;
mod query;
mod render;
mod reply;
mod resource;
mod route;
mod selector;
mod server;
mod service;
mod status;
mod storage;
#[cfg(feature = "tls")]
mod tls;
mod verb;
mod watch;
mod workload;
mod write;

pub use builder::ApiServerBuilder;
pub use fault::{Action, Fault, FaultId, Faults, Firing, ListFlaw};
pub use http::HttpServer;
pub use journal::RequestRecord;
pub use list::AnsweredFrom;
pub use reply::Body;
pub use resource::Resource;
pub use server::{ApiServer, History, Saved};
pub use status::{Status, StatusCause, StatusDetails};
#[cfg(feature = "tls")]
pub use tls::{Tls, TlsError};
pub use verb::Verb;
pub use workload::{Step, Workload};
