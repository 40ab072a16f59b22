//! The errors of a controller: of a run, and of a write.

use std::time::Duration;

use kube_informer::{ObjectKey, StartError, WaitError};

use crate::term::LeadershipLost;

/// Why a controller did not start, or ended by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The controller runs already. It can have one run at a time.
    #[error("controller {0:?} is running already")]
    AlreadyRunning(String),
    /// The controller owns objects, but the kind of its primary objects is not known. It finds owners by their kind.
    #[error(
        "controller {0:?} owns objects, but its informer does not know the kind of its objects: set it with `InformerBuilder::resource`"
    )]
    UnknownKind(String),
    /// One of its informers could not be started.
    #[error("controller {name:?} cannot start its informers")]
    Start {
        /// Which controller.
        name: String,
        /// Why.
        source: StartError,
    },
    /// Its caches did not catch up with the API server in time.
    #[error(
        "the caches of controller {name:?} did not sync within {within:?} (see `Controller::sync_within`): {}",
        caches.join("; ")
    )]
    NotSynced {
        /// Which controller.
        name: String,
        /// The limit.
        within: Duration,
        /// The informers that did not sync, each with its state and its last error.
        caches: Vec<String>,
    },
    /// One of its informers was stopped: its cache is not kept up to date any longer.
    #[error("controller {name:?} has lost its cache")]
    CacheLost {
        /// Which controller.
        name: String,
        /// Which informer, and why.
        source: WaitError,
    },
    /// Reconciles could not be ended: they block their threads.
    #[error("controller {name:?} has ended, but reconciles block their threads: {}", names(keys))]
    StillRunning {
        /// Which controller.
        name: String,
        /// The keys whose reconciles have not ended.
        keys: Vec<ObjectKey>,
    },
    /// A part that the program supplied panicked outside of a reconcile: a limiter, or a method of an object.
    #[error("a worker of controller {name:?} panicked: {message}")]
    WorkerPanicked {
        /// Which controller.
        name: String,
        /// The message of the panic.
        message: String,
    },
    /// Its leadership was lost; all work was dropped.
    #[error("controller {0:?} has lost its leadership")]
    LeadershipLost(String),
}

/// Why a write was not sent, failed, or went to the wrong place.
///
/// `?` turns it into a [`kube_client::Error`] where a function returns that.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError<E = kube_client::Error> {
    /// Leadership was lost. Nothing was sent.
    #[error(transparent)]
    LeadershipLost(#[from] LeadershipLost),
    /// The write was carried out, but the informer's cache will never show the object: the informer selects other
    /// objects.
    ///
    /// The reconcile counts as failed for good. It would write again each time.
    #[error(
        "{key} was written, but the cache of informer {informer} will never show it: {why}; \
         write with an informer that selects it"
    )]
    NotSelected {
        /// The written object.
        key: ObjectKey,
        /// The name of the informer.
        informer: String,
        /// Why the informer does not select the object.
        why: String,
    },
    /// The object is of another kind than the objects of the informer. The reconcile counts as failed for good.
    #[error("{key} is not of kind {kind}, which informer {informer} caches; name the informer of its own kind")]
    WrongKind {
        /// The object.
        key: ObjectKey,
        /// The name of the informer.
        informer: String,
        /// The kind of the informer's objects.
        kind: String,
    },
    /// The request failed.
    #[error(transparent)]
    Failed(E),
}

impl WriteError {
    /// Returns the HTTP status code if the API server refused the request: 404 if the object does not exist, 409 for a
    /// conflict.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Failed(kube_client::Error::Api(status)) => Some(status.code),
            _ => None,
        }
    }
}

impl From<WriteError> for kube_client::Error {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Failed(error) => error,
            other => Self::Service(Box::new(other)),
        }
    }
}

fn names(keys: &[ObjectKey]) -> String {
    keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
