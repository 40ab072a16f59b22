//! What each request does: how the server serves lists, watches, writes and the other API calls.

pub(crate) mod list;
pub(crate) mod watch;
pub(crate) mod webhook;
pub(crate) mod write;
pub(crate) mod review;
pub(crate) mod action;
pub(crate) mod selector;
pub(crate) mod namespace;
pub(crate) mod crd;
pub(crate) mod garbage;
pub(crate) mod discovery;
pub(crate) mod table;
pub(crate) mod openapi;
