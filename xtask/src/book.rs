//! `cargo xtask book`: builds the guides as a book, if mdBook is installed.

use std::process::Command;
use std::time::Duration;

use crate::within;

/// The time limit for rendering.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn run() -> Result<(), String> {
    if Command::new("mdbook").arg("--version").output().is_err() {
        println!("book: skipped, mdbook is not installed (cargo install mdbook)");
        return Ok(());
    }
    within(LIMIT, "book", Command::new("mdbook").args(["build", "docs"]))
}
