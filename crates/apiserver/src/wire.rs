//! Between bytes and API calls: routes, authentication, dispatch, connections.

pub(crate) mod route;
pub(crate) mod auth;
pub(crate) mod guard;
pub(crate) mod render;
pub(crate) mod call;
pub(crate) mod general;
pub(crate) mod dispatch;
pub(crate) mod service;
#[cfg(feature = "tls")]
pub(crate) mod tls;
pub(crate) mod kubeconfig;
pub(crate) mod http;
