//! From bytes to a call, and from an answer to bytes: connections, who may ask, what a path and an `Accept` header mean.

pub(crate) mod http;
#[cfg(feature = "tls")]
pub(crate) mod tls;
pub(crate) mod service;
pub(crate) mod auth;
pub(crate) mod query;
pub(crate) mod verb;
pub(crate) mod route;
pub(crate) mod accept;
pub(crate) mod deadline;
pub(crate) mod document;
pub(crate) mod protobuf;
pub(crate) mod reply;
pub(crate) mod render;
pub(crate) mod compress;
