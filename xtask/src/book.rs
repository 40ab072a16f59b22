//! Builds the guides as a book, where mdBook is there. They are readable as files without it.

use std::process::Command;
use std::time::Duration;

use crate::within;

/// It renders a few pages.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn run() -> Result<(), String> {
    if Command::new("mdbook").arg("--version").output().is_err() {
        println!("book: skipped, mdbook is not installed (cargo install mdbook)");
        return Ok(());
    }
    within(LIMIT, "book", Command::new("mdbook").args(["build", "docs"]))
}
