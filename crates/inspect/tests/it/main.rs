//! What the router promises, one file per promise.

#![allow(clippy::unwrap_used, reason = "tests say what is wrong by panicking")]

mod guarded;
mod mistakes;
mod mounted;
mod objects;
mod private;
mod probes;
mod serving;
mod shown;
mod stream;
mod world;
