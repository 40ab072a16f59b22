//! The promises of the router, one file for each.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

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
