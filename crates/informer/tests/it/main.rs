//! The promises of the library, one file for each.
//!
//! Tests named `star_` and a number are the cases of client-go that a port must keep. Where this library differs on
//! purpose, the test shows its behaviour and a comment says so. Letters with a number are clauses of client-go's
//! behaviour (`R-12`) and its known defects (`B-38`).

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a failed test panics, and some tests print figures")]

mod any;
mod backoff;
mod batches;
mod bounds;
mod changes;
mod consumers;
mod defects;
mod delta_fifo;
mod edges;
mod ending;
mod factory;
mod figures;
mod filtered;
mod forms;
mod full_speed;
mod handlers;
mod hostile;
mod idle;
mod lifecycle;
mod lingering;
mod log_enricher;
mod log_lines;
mod long_lists;
mod marks;
mod on_request;
mod optional;
mod over_http;
mod patience;
mod per_object;
mod pieces;
mod popped_batches;
mod private;
mod processing;
mod queue;
mod recovery;
mod relist;
mod removed_handlers;
mod requests;
mod resync;
mod revision;
mod saw;
mod scopes;
mod script;
mod stopping;
mod store;
mod streaming;
mod texts;
mod transform;
mod unreadable;
mod user_code;
mod verify;
mod versions;
mod waiting;
