//! The state that all routes share.

use std::sync::Arc;
use std::time::Duration;

use kube_informer::{AnyInformer, AnyProbe, AnyQueue};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::answer::Refusal;
use crate::ids::{InformerIds, Informers};
use crate::recorder::Recorder;

/// Returns the current work queues.
pub(crate) type Queues = Arc<dyn Fn() -> Vec<Arc<dyn AnyQueue>> + Send + Sync>;

/// What the program set before it served the routes.
pub(crate) struct Settings {
    pub(crate) informers: Informers,
    pub(crate) queues: Vec<Queues>,
    pub(crate) probes: Vec<Arc<dyn AnyProbe>>,
    pub(crate) metrics: Option<Arc<dyn Fn() -> String + Send + Sync>>,
    pub(crate) fresh_within: Duration,
    pub(crate) title: String,
    pub(crate) token: Option<String>,
}

/// The state that all routes share.
pub(crate) struct InspectionState {
    pub(crate) settings: Settings,
    ids: Arc<InformerIds>,
    pub(crate) recorder: Recorder,
    /// Ends the streams when it is cancelled.
    pub(crate) closing: CancellationToken,
    pub(crate) streams: Arc<Semaphore>,
}

impl InspectionState {
    /// Creates the state of the routes; `closing` ends their streams.
    pub(crate) fn new(settings: Settings, closing: CancellationToken) -> Arc<Self> {
        let ids = Arc::new(InformerIds::new(settings.informers.clone()));
        let recorder = Recorder::new(ids.clone());
        // More than users need, and few enough that open streams cannot keep the program busy.
        let streams = Arc::new(Semaphore::new(32));
        Arc::new(Self { settings, ids, recorder, closing, streams })
    }

    /// Returns the current informers with their ids.
    pub(crate) fn informers(&self) -> Vec<(String, AnyInformer)> {
        self.ids.all()
    }

    /// Returns the informer with an id, or a refusal that names the informers that there are.
    pub(crate) fn informer(&self, id: &str) -> Result<AnyInformer, Refusal> {
        let informers = self.informers();
        if let Some((_, informer)) = informers.iter().find(|(known, _)| known == id) {
            return Ok(informer.clone());
        }
        let known: Vec<&str> = informers.iter().map(|(id, _)| id.as_str()).collect();
        let hint = match known.as_slice() {
            [] => "there are no informers at the moment".to_owned(),
            known => format!("the informers are: {}", known.join(", ")),
        };
        Err(Refusal::missing(format!("there is no informer {id:?}"), hint))
    }
}
