//! What a fault is made of.

use kube_embedded_apiserver::{Fault, History};

use crate::Error;
use crate::stage::Stage;

/// Where life goes on.
pub(crate) const NAMESPACES: [&str; 2] = ["a", "b"];
/// The value of label `t` that a selector asks for.
pub(crate) const SELECTED: &str = "1";

/// What a client follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Followed {
    /// Config maps of all namespaces.
    Everything,
    /// Config maps of one.
    Namespace(&'static str),
    /// Config maps whose label `t` is [`SELECTED`].
    Selected,
    /// Widgets, which somebody defined.
    Widgets,
}

impl Followed {
    pub(crate) fn resource(self) -> &'static str {
        if self == Self::Widgets { "widgets" } else { "configmaps" }
    }
}

/// Which certificate a server shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certificate {
    /// The one that clients trust.
    Good,
    /// One of the past, by an authority that nobody knows.
    Expired,
}

/// The server as it is before anything goes wrong.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) followed: Followed,
    pub(crate) objects: usize,
    /// How large each of them is, about.
    pub(crate) bytes: usize,
    /// Whether watches can begin with the whole state, as since Kubernetes 1.34.
    pub(crate) streaming: bool,
    /// Whether kube-rs is told to ask for that.
    pub(crate) kube_rs_streams: bool,
    /// HTTPS, and so HTTP/2 for who speaks it.
    pub(crate) tls: bool,
    /// A wire in between that can go dead.
    pub(crate) wire: bool,
    /// Seconds between bookmarks.
    pub(crate) bookmarks: u64,
    /// A watch that is so many events behind is closed.
    pub(crate) max_lag: Option<usize>,
    /// The whole state is sent so many objects at a time, ten times a second.
    pub(crate) pace: Option<usize>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            followed: Followed::Everything,
            objects: 200,
            bytes: 0,
            streaming: true,
            kube_rs_streams: false,
            tls: false,
            wire: false,
            bookmarks: 60,
            max_lag: None,
            pace: None,
        }
    }
}

/// One thing that is done. Life goes on meanwhile.
#[expect(clippy::large_enum_variant, reason = "there are a few hundred, and rows read better without boxes")]
pub(crate) enum Step {
    /// A fault of answers from now on.
    Fault(Fault),
    /// No more faults of answers; those under way keep theirs.
    Clear,
    /// Open watches are cut.
    Disconnect,
    /// So many changes at once.
    Burst(usize),
    /// The next watch is answered half a second later: what is done at once is done before it.
    Hold,
    /// History is forgotten.
    Compact,
    /// The server forgets its connections, and its history or not.
    Restart(History),
    /// Nobody listens any more; all connections are gone.
    Stop,
    /// Somebody listens again.
    Serve(Certificate),
    /// So many seconds pass.
    Wait(f64),
    /// Until a fault of this kind has happened so often, or twenty seconds have passed.
    Happens(&'static str, usize),
    /// The state is kept.
    Save,
    /// The state is again what it was when it was kept, and so is the counter of versions.
    Restore,
    /// Nothing passes any more on open connections.
    GoDead,
    /// No changes from now on.
    Pause,
    /// Changes again.
    Resume,
    /// Something of its own.
    Do(fn(&mut Stage) -> Result<(), Error>),
}
