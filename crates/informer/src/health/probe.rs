//! Probes: parts of a program that report whether they are live and ready.

use std::fmt;
use std::time::Duration;

/// A part of a program that reports liveness and readiness, with reasons: the controllers and the election of a
/// manager, or a part of your own. `kube-informer-inspect` serves them as `/livez` and `/readyz`.
///
/// ```
/// use kube_informer::{AnyProbe, Problem};
///
/// struct Database { connected: bool }
///
/// impl AnyProbe for Database {
///     fn live(&self) -> Vec<Problem> {
///         Vec::new() // A restart would not help.
///     }
///
///     fn ready(&self) -> Vec<Problem> {
///         if self.connected { Vec::new() } else { vec![Problem::new("database", "not connected")] }
///     }
/// }
///
/// let problems = Database { connected: false }.ready();
/// assert_eq!(problems[0].to_string(), "database: not connected");
/// ```
pub trait AnyProbe: Send + Sync + 'static {
    /// Returns why a restart of the program would help. Empty if it would not.
    fn live(&self) -> Vec<Problem>;

    /// Returns why the program should receive no work yet. Empty if it should.
    fn ready(&self) -> Vec<Problem>;

    /// Returns the elections that the program takes part in.
    fn elections(&self) -> Vec<ElectionHealth> {
        Vec::new()
    }
}

/// The state of an election, as one candidate knows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ElectionHealth {
    /// The lease, as `namespace/name`.
    pub lease: String,
    /// The identity of this candidate.
    pub identity: String,
    /// The identity of the leader as last seen.
    pub leader: Option<String>,
    /// True while this candidate leads.
    pub leads: bool,
    /// How long the term of this candidate is still valid if the lease is not renewed; `None` if it does not lead.
    pub term_left: Option<Duration>,
}

/// Why a program is not live, or not ready.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The part of the program, such as the name of an informer.
    pub part: String,
    /// The reason.
    pub why: String,
}

impl Problem {
    /// Makes a problem of a part and a reason.
    pub fn new(part: impl Into<String>, why: impl Into<String>) -> Self {
        Self { part: part.into(), why: why.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.part, self.why)
    }
}
