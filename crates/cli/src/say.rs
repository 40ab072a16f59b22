//! Output to stdout and stderr.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process;

use crate::failure::Failure;

/// Writes one line to stdout and flushes it.
///
/// If the reader has closed the pipe, the process exits with success; after any other error it exits with a failure.
pub(crate) fn say(line: &str) {
    let mut stdout = io::stdout().lock();
    let Err(error) = writeln!(stdout, "{line}").and_then(|()| stdout.flush()) else { return };
    match unless_closed(Err(error)) {
        Ok(()) => process::exit(0),
        Err(failure) => {
            remark(&failure);
            process::exit(failure.exit_code().into());
        }
    }
}

/// Writes one line to stderr, and ignores errors.
pub(crate) fn remark(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Writes bytes to stdout. A pipe that the reader has closed is not a failure.
pub(crate) fn write(text: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    unless_closed(stdout.write_all(text).and_then(|()| stdout.flush()))
}

/// Turns an error into a failure, except for a closed pipe: its reader has read enough.
pub(crate) fn unless_closed(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new("cannot write to stdout", error)),
        _ => Ok(()),
    }
}
