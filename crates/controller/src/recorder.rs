//! Events: what a controller did, for people who ask about an object.

mod name;
mod series;

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube_client::api::{Patch, PatchParams, PostParams};
use kube_client::{Api, Client, Error};
use parking_lot::Mutex;
use serde_json::json;

pub use self::series::Published;
use self::series::{About, Series, Step};

/// How long a server may take for one event: nothing waits long for it.
const PATIENCE: Duration = Duration::from_secs(5);
/// As long as a server takes in a note.
const LONGEST_NOTE: usize = 1024;

/// What kind of news an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// All is well.
    Normal,
    /// Somebody should look at it.
    Warning,
}

/// Writes events (`events.k8s.io/v1`) about objects. The same news about the same object is one event that is counted, and
/// about one object there are 25 at first, and then one in five minutes: what exceeds that is counted too, and goes with the
/// next of the same, or with [`flush`](Self::flush).
///
/// Each call says what became of its event, so nothing is lost unheard. What differs from client-go's: there is no task.
///
/// ```
/// use kube_client::{Api, Resource as _};
/// use kube_controller::{EventRecorder, EventType, Published};
/// # use k8s_openapi::api::{core::v1::Pod, events::v1::Event};
///
/// # doc_server::with(async |server| {
/// # let pod = Api::<Pod>::namespaced(server.client(), "web").get("a").await?;
/// let recorder = EventRecorder::new(server.client(), "example.com/my-controller", "pod-1");
/// let about = pod.object_ref(&());
/// let published = recorder.publish(&about, EventType::Normal, "Scaled", "Scale", "three replicas").await?;
/// assert_eq!(published, Published::Created);
/// assert_eq!(recorder.publish(&about, EventType::Normal, "Scaled", "Scale", "three replicas").await?, Published::Counted(2));
/// # let events = Api::<Event>::namespaced(server.client(), "web").list(&Default::default()).await?.items;
/// # assert_eq!((events.len(), events[0].series.as_ref().unwrap().count), (1, 2));
/// # Ok(()) });
/// ```
pub struct EventRecorder {
    client: Client,
    controller: String,
    instance: String,
    series: Mutex<Series>,
}

/// Why an event was not written. It is counted, and goes with the next one about the same.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// The server was not reached, or refused.
    #[error("cannot write event {reason:?} about {about}")]
    Server {
        /// Why the event was to be written.
        reason: String,
        /// The object it is about.
        about: String,
        /// What the server said.
        source: Box<Error>,
    },
    /// The server did not answer in time.
    #[error("event {reason:?} about {about} was not taken within {PATIENCE:?}")]
    TimedOut {
        /// Why the event was to be written.
        reason: String,
        /// The object it is about.
        about: String,
    },
}

impl EventRecorder {
    /// A recorder that speaks for a controller, by its name with a domain, and for one copy of it.
    pub fn new(client: Client, controller: impl Into<String>, instance: impl Into<String>) -> Self {
        Self { client, controller: controller.into(), instance: instance.into(), series: Mutex::default() }
    }

    /// Tells of something: why (`Scaled`, in one word), what was done (`Scale`), and a sentence for people.
    ///
    /// # Errors
    ///
    /// [`EventError`] if it was not written.
    pub async fn publish(
        &self,
        about: &ObjectReference,
        kind: EventType,
        reason: &str,
        action: &str,
        note: &str,
    ) -> Result<Published, EventError> {
        let what = About {
            object: about.clone(),
            kind,
            reason: reason.to_owned(),
            action: action.to_owned(),
            note: shortened(note).to_owned(),
        };
        let step = self.series.lock().next(&what);
        self.take(&what, step).await
    }

    /// Writes what was only counted so far: call it at the end.
    ///
    /// # Errors
    ///
    /// [`EventError`] for the first that was not written; the others are tried all the same.
    pub async fn flush(&self) -> Result<(), EventError> {
        let mut outcome = Ok(());
        // What was never written is created first, and then counted.
        for _ in 0..2 {
            let owed = self.series.lock().owed();
            for (what, step) in owed {
                let written = self.take(&what, step).await;
                outcome = outcome.and(written.map(|_| ()));
            }
        }
        outcome
    }

    /// How many events were let go of unwritten: there is room for some thousand different news.
    pub fn dropped(&self) -> u64 {
        self.series.lock().dropped
    }

    /// How many events were counted and not written yet.
    pub fn unwritten(&self) -> u64 {
        self.series.lock().unwritten()
    }

    async fn take(&self, what: &About, step: Step) -> Result<Published, EventError> {
        let namespace = what.object.namespace.as_deref().filter(|namespace| !namespace.is_empty()).unwrap_or("default");
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let now = MicroTime(Timestamp::now());
        let written = match &step {
            Step::Held(waiting) => return Ok(Published::Held(*waiting)),
            Step::Create => {
                let event = self.event(what, namespace, now);
                tokio::time::timeout(PATIENCE, api.create(&PostParams::default(), &event)).await
            }
            Step::Count { name, count } => {
                let series = json!({"series": EventSeries { count: *count, last_observed_time: now }});
                let patch = Patch::Merge(series);
                tokio::time::timeout(PATIENCE, api.patch(name, &PatchParams::default(), &patch)).await
            }
        };
        let (reason, about) = (what.reason.clone(), what.object.name.clone().unwrap_or_default());
        match written {
            Ok(Ok(event)) => Ok(self.series.lock().written(what, &step, event.metadata.name.unwrap_or_default())),
            Ok(Err(error)) => {
                // The event was deleted, as servers do after an hour: the next one begins anew.
                let gone = matches!(&error, Error::Api(status) if status.code == 404);
                self.series.lock().not_written(what, &step, gone);
                Err(EventError::Server { reason, about, source: Box::new(error) })
            }
            Err(_) => {
                self.series.lock().not_written(what, &step, false);
                Err(EventError::TimedOut { reason, about })
            }
        }
    }

    fn event(&self, what: &About, namespace: &str, now: MicroTime) -> Event {
        Event {
            metadata: ObjectMeta {
                name: Some(name::event_name(what.object.name.as_deref().unwrap_or_default(), rand::random())),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            action: Some(what.action.clone()),
            reason: Some(what.reason.clone()),
            note: Some(what.note.clone()),
            type_: Some(match what.kind {
                EventType::Normal => "Normal".to_owned(),
                EventType::Warning => "Warning".to_owned(),
            }),
            event_time: Some(now),
            regarding: Some(what.object.clone()),
            reporting_controller: Some(self.controller.clone()),
            reporting_instance: Some(self.instance.clone()),
            ..Event::default()
        }
    }
}

/// As much of a text as a server takes.
fn shortened(note: &str) -> &str {
    let end = (0..=note.len().min(LONGEST_NOTE)).rev().find(|end| note.is_char_boundary(*end));
    &note[..end.unwrap_or(0)]
}

impl fmt::Debug for EventRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventRecorder").field("controller", &self.controller).finish_non_exhaustive()
    }
}
