//! Lines on stdout.

use std::io::{self, Write as _};
use std::process;

/// Writes one line, at once. If nobody reads any more, the command is done: that is no failure.
pub(crate) fn say(line: &str) {
    let mut stdout = io::stdout().lock();
    if writeln!(stdout, "{line}").and_then(|()| stdout.flush()).is_err() {
        process::exit(0);
    }
}
