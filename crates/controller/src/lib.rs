//! Adds work queues, controllers, leader election, finalizers and events to the caches of [`kube_informer`].
//!
//! ```
//! use std::sync::Arc;
//! use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
//! use kube_client::{Api, Client, Resource as _, api::PostParams};
//! use kube_controller::{Controller, Action, Request};
//! use kube_informer::{CancellationToken, SharedInformer, SharedInformerFactory};
//!
//! struct Context {
//!     client: Client,
//!     maps: SharedInformer<ConfigMap>,
//!     cancel: CancellationToken,
//! }
//!
//! /// Creates a ConfigMap for each deployment, with the same name.
//! async fn reconcile(request: Request<Deployment>, context: Arc<Context>) -> Result<Action, kube_client::Error> {
//!     let Some(deployment) = request.object() else { return Ok(Action::await_change()) }; // The deployment is deleted.
//!     if context.maps.store().contains(request.key()) {
//!         context.cancel.cancel(); // The ConfigMap exists, so the example ends.
//!         return Ok(Action::await_change());
//!     }
//!     let mut map = ConfigMap::default();
//!     map.metadata.name = deployment.metadata.name.clone();
//!     map.metadata.owner_references = Some(deployment.controller_owner_ref(&()).into_iter().collect());
//!     let maps = Api::namespaced(context.client.clone(), request.key().namespace().unwrap_or_default());
//!     // The key is reconciled again only after the cache shows the ConfigMap, so it is never created twice.
//!     request.write(&context.maps, maps.create(&PostParams::default(), &map)).await?;
//!     Ok(Action::await_change())
//! }
//!
//! # doc_server::with(async |server| {
//! # server.create("deployments.apps", Some("web"), serde_json::json!({"metadata": {"name": "shop"}}))?;
//! let factory = SharedInformerFactory::new(server.client());
//! let (deployments, maps) = (factory.informer::<Deployment>()?, factory.informer::<ConfigMap>()?);
//! let cancel = CancellationToken::new();
//! let context = Context { client: server.client(), maps: maps.clone(), cancel: cancel.clone() };
//! Controller::new(&deployments).owns(&maps).run(cancel, reconcile, Arc::new(context)).await?;
//! # assert!(server.get("configmaps", Some("web"), "shop").is_ok());
//! # Ok(()) });
//! ```
//!
//! | module | purpose |
//! |---|---|
//! | [`queue`] | holds items, such as keys of objects, and hands them to workers; usable alone |
//! | [`limiter`] | decides how long an item waits before it is tried again |
//! | [`controller`] | reconciles an object when it changes, or when an object that belongs to it changes |
//! | [`finalizer`], [`recorder`] | clean-up before an object is deleted, and events for users |
//! | [`condition`], [`status_patch`], [`apply`] | conditions, writes to the status, and server-side apply |
//! | [`elector`], [`term`] | leader election: one of several copies of a program acts, for a term |
//! | [`manager`] | runs informers, an election, controllers and other tasks as one program |
//! | [`metrics`] | the metrics of queues, controllers and elections |

mod key;
pub mod metrics;
pub mod limiter;
pub mod queue;
pub mod term;
pub mod controller;
mod refusal;
pub mod finalizer;
pub mod condition;
pub mod status_patch;
pub mod apply;
pub mod recorder;
pub mod elector;
pub mod manager;

pub use controller::{Action, Controller, ControllerHandle, Request, RunError, WatchSource, WriteError, predicate};
pub use elector::{ElectionSettings, LeaderElector};
pub use finalizer::Finalizer;
pub use limiter::RateLimiter;
pub use manager::{Manager, Probe};
pub use queue::{DelayingQueue, Item, Priority, Queue, WorkQueue};
pub use recorder::{EventRecorder, EventType, Published};
pub use term::{LeadershipLost, Term};
