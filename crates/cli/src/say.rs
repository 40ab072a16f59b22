//! Words on stdout, and beside it.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process;

use crate::failure::Failure;

/// Writes one line, at once. If nobody reads any more, the command is done: that is no failure. If it cannot be written for
/// another reason, that is one.
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

/// Writes one line to stderr. If nobody hears it, the command goes on all the same.
pub(crate) fn remark(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Writes all of this, as it is. If nobody reads any more, that is no failure.
pub(crate) fn write(text: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    unless_closed(stdout.write_all(text).and_then(|()| stdout.flush()))
}

/// Whoever closes the pipe has read enough.
pub(crate) fn unless_closed(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new("cannot write to stdout", error)),
        _ => Ok(()),
    }
}
