//! Every block of Rust in README and guides: a module each, named for its file and line.

#![allow(
    unused,
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::all,
    clippy::restriction,
    reason = "it is read in Markdown"
)]

include!(concat!(env!("OUT_DIR"), "/blocks.rs"));
