//! The server in its process: built, handed about, read and written directly, and looked after.

pub(crate) mod server;
pub(crate) mod builder;
pub(crate) mod direct;
pub(crate) mod hub;
pub(crate) mod clock;
pub(crate) mod chance;
pub(crate) mod pace;
pub(crate) mod journal;
pub(crate) mod kubeconfig;
pub(crate) mod admin;
