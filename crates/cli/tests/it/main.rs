//! The command as a whole: arguments in; stdout, stderr and exit code out.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a test may read the environment")]

mod command;
mod demo;
mod errors;
mod faults;
mod get;
mod load;
mod manners;
#[cfg(unix)]
mod pty;
mod serve;
mod snapshot;
#[cfg(unix)]
mod terminal;
#[cfg(unix)]
mod top;
mod watch;
