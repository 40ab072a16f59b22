//! The promises of the server, seen from a client. One file per promise.
#![allow(missing_docs, clippy::unwrap_used)]

mod abuse;
mod access;
mod compression;
mod definition;
mod discovery;
mod events;
mod fault_table;
mod faults;
mod http;
mod kube;
mod list;
mod model;
mod namespace;
mod pace;
mod patch;
mod remove;
mod runtime;
mod support;
mod watch;
mod workload;
mod write;
