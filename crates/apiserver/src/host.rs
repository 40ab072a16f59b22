//! The server as its process sees it: builder, handle, direct reads and writes, listeners, admin address.

pub(crate) mod server;
mod bootstrap;
pub(crate) mod lease;
pub(crate) mod builder;
pub(crate) mod direct;
pub(crate) mod listen;
pub(crate) mod admin;
