//! The server in its process: built, handed about, read and written directly, and looked after.

pub(crate) mod server;
pub(crate) mod builder;
pub(crate) mod direct;
pub(crate) mod listen;
pub(crate) mod admin;
