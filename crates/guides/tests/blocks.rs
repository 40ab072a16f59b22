//! The blocks of Rust in README and guides: a module for each, named after its file and line.

#![allow(
    unused,
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::all,
    clippy::restriction,
    reason = "the code is written for readers of Markdown"
)]

include!(concat!(env!("OUT_DIR"), "/blocks.rs"));
