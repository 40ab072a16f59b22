//! Why a controller does not run.

use kube_informer::informer::{StartError, WaitError};

/// Why a controller did not begin, or ended by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// There is one run of a controller at a time.
    #[error("controller {0:?} is running already")]
    AlreadyRunning(String),
    /// Owners are found by their kind.
    #[error(
        "controller {0:?} owns objects, but its informer does not say of which kind its own are: name it with `InformerBuilder::resource`"
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
    /// One of its informers was stopped: what it would act on is not kept up to date any longer.
    #[error("controller {name:?} has lost its cache")]
    CacheLost {
        /// Which controller.
        name: String,
        /// Which of them, and why.
        source: WaitError,
    },
    /// Something that it was given panicked where no reconcile is to blame: a limiter, or an object's own methods.
    #[error("a worker of controller {name:?} panicked: {message}")]
    WorkerPanicked {
        /// Which controller.
        name: String,
        /// What was said.
        message: String,
    },
    /// Its leadership was lost; all work was dropped.
    #[error("controller {0:?} has lost its leadership")]
    LeadershipLost(String),
}
