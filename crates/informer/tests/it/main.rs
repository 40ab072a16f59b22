//! What the library promises, one file per promise.
//!
//! Tests named `star_` and a number are the cases of client-go that a port must keep. Where this one means to differ,
//! the test shows what it does instead and says so. Letters with a number are clauses of client-go's behaviour (`R-12`)
//! and its known defects (`B-38`).

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests say what is wrong by panicking, and print")]

mod backoff;
mod changes;
mod defects;
mod delta_fifo;
mod ending;
mod factory;
mod figures;
mod forms;
mod handlers;
mod hostile;
mod lifecycle;
mod on_request;
mod over_http;
mod per_object;
mod processing;
mod queue;
mod relist;
mod requests;
mod resync;
mod script;
mod store;
mod streaming;
mod transform;
mod unreadable;
mod waiting;
