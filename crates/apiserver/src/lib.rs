//! A Kubernetes-compatible API server in memory: in process or over HTTP, with no cluster.
//!
//! An [`ApiServer`] stores objects of the usual built-in kinds and of custom ones, and answers list, watch and writes the way
//! kube-apiserver does. It is made for tests, simulations and demonstrations:
//!
//! - in process it needs no port and no task, and works on a paused tokio clock;
//! - all random values come from one seed, so that a run can be repeated;
//! - [`Faults`] inject errors, and record which of them fired;
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

//! # What is missing against kube-apiserver
//!
//! - Every kind that is not in [`ApiServer::resources`], such as the claims of devices and flow control. Requests for the API of an `APIService` are not forwarded.
//! - `ValidatingAdmissionPolicy` is stored and has no effect.
//! - The validation of built-in kinds is a short list: what is immutable, what is required, and the commonest mistakes.
//! - Warnings about objects that are accepted, but for unknown and doubled fields.
//! - Admission plugins and policies; users, roles and quotas are stored and never asked.
//! - Webhooks on loopback addresses and in this process are called, for requests of clients. They are not called for direct
//!   writes, for `/scale` and actions such as evictions, and for deletes that follow from another delete. Match conditions
//!   have no `authorizer`. Conversion webhooks are called when an object is written, and not when it is read.
//! - `pods/log`, `pods/exec`, `pods/attach`, `pods/portforward`, `pods/resize`, and every `proxy`.
//! - Rules in CEL: no cost is estimated when a definition is made, it is only limited when a rule runs; no `semver`, no `authorizer`.
//! - Answers in protobuf or CBOR, OpenAPI v2, prose in OpenAPI v3, watches over WebSockets.
//! - Objects whose JSON is nested deeper than 100 levels.
//! - Services have IPv4 addresses alone.

// In reading order: a module uses only modules that stand before it.
#[cfg(test)]
mod truth;
mod status;
mod kinds;
mod storage;
mod message;
mod chance;
mod fault;
mod hub;
mod api;
mod wire;
mod host;
mod workload;

pub use api::table::{TableColumn, TablePrinter};
pub use fault::{Action, Fault, FaultId, Faults, Firing, ListFlaw};
pub use host::admin::FaultError;
pub use host::builder::ApiServerBuilder;
pub use host::server::{ApiServer, History, Saved};
pub use hub::admission::Admission;
pub use hub::journal::AnsweredFrom;
pub use hub::journal::RequestRecord;
pub use kinds::Resource;
pub use message::reply::Body;
pub use message::verb::Verb;
pub use status::{Status, StatusCause, StatusDetails};
pub use wire::http::HttpServer;
#[cfg(feature = "tls")]
pub use wire::tls::{Tls, TlsError};
pub use workload::{Step, Workload};
