//! The parts of a fault.

use kube_embedded_apiserver::{Fault, History};

use crate::Error;
use crate::stage::Stage;

/// The namespaces of the objects.
pub(crate) const NAMESPACES: [&str; 2] = ["a", "b"];
/// The value of the label `t` that the selector matches.
pub(crate) const SELECTED: &str = "1";

/// The collection that a client watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchedCollection {
    /// Config maps of all namespaces.
    Everything,
    /// Config maps of one namespace.
    Namespace(&'static str),
    /// Config maps whose label `t` is [`SELECTED`].
    Selected,
    /// Widgets, a custom resource.
    Widgets,
}

impl WatchedCollection {
    pub(crate) fn resource(self) -> &'static str {
        if self == Self::Widgets { "widgets" } else { "configmaps" }
    }
}

/// The certificate of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certificate {
    /// A certificate that clients trust.
    Good,
    /// An expired certificate of an unknown authority.
    Expired,
}

/// The server before the fault.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) followed: WatchedCollection,
    pub(crate) objects: usize,
    /// The size of each object, about.
    pub(crate) bytes: usize,
    /// True if the server supports streaming lists, like Kubernetes 1.34.
    pub(crate) streaming: bool,
    /// True if kube-rs should use streaming lists.
    pub(crate) kube_rs_streams: bool,
    /// Use HTTPS, and so HTTP/2 for clients that support it.
    pub(crate) tls: bool,
    /// Use a proxy that can stop passing bytes.
    pub(crate) wire: bool,
    /// Seconds between bookmarks.
    pub(crate) bookmarks: u64,
    /// The server closes a watch that is this many events behind.
    pub(crate) max_lag: Option<usize>,
    /// The number of initial objects that the server sends every 0.1 s.
    pub(crate) pace: Option<usize>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            followed: WatchedCollection::Everything,
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

/// A step of a fault. Objects change meanwhile.
#[expect(clippy::large_enum_variant, reason = "there are a few hundred, and rows read better without boxes")]
pub(crate) enum Step {
    /// Injects a fault into responses.
    Fault(Fault),
    /// Ends all faults; open responses keep theirs.
    Clear,
    /// Closes all watches.
    Disconnect,
    /// Makes this many changes at once.
    Burst(usize),
    /// Delays the next watch by 0.5 s, so that the following steps are done before it opens.
    Hold,
    /// Forgets the history.
    Compact,
    /// Restarts the server, with or without its history.
    Restart(History),
    /// Stops listening, and closes all connections.
    Stop,
    /// Listens again.
    Serve(Certificate),
    /// Waits for some seconds.
    Wait(f64),
    /// Waits until a fault of this kind was injected this many times, or for 20 s.
    Happens(&'static str, usize),
    /// Saves the state.
    Save,
    /// Restores the saved state, with its resource version.
    Restore,
    /// Stops passing bytes on open connections.
    GoDead,
    /// Stops changing objects.
    Pause,
    /// Changes objects again.
    Resume,
    /// Calls a function.
    Do(fn(&mut Stage) -> Result<(), Error>),
}
