//! Events (`events.k8s.io/v1`) that a controller writes about objects, for users who run `kubectl describe`.

mod name;
mod series;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube_client::api::{Patch, PatchParams, PostParams};
use kube_client::{Api, Client, Error};
use parking_lot::Mutex;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::warn;

pub use self::series::Published;
use self::series::{About, Series, SeriesStep};
use kube_informer::internal::after;

/// How long the API server may take to answer for one event.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long [`EventRecorder::flush`] may take.
const FLUSH_WITHIN: Duration = Duration::from_secs(5);
/// How many events are written at the same time, in the background and by a flush.
const MOST_WRITERS: usize = 16;
/// The longest note that the API server accepts, in bytes.
const LONGEST_NOTE: usize = 1024;

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// The event is information only.
    Normal,
    /// A user should look at the object.
    Warning,
}

/// Writes events (`events.k8s.io/v1`) about objects.
///
/// Equal events about one object become one event with a count. The recorder writes up to 25 events about one object at
/// once, and then one every five minutes. It counts further events, and writes the count with the next equal event, or
/// when [`flush`](Self::flush) is called.
///
/// In a reconcile use [`record`](Self::record), which does not wait: tasks of the recorder write the events. Call
/// `flush` at the end of the program, because a recorder that is dropped aborts its tasks.
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
/// recorder.record(&about, EventType::Normal, "Scaled", "Scale", "three replicas");
/// recorder.record(&about, EventType::Normal, "Scaled", "Scale", "three replicas");
/// recorder.flush().await?;
/// # let events = Api::<Event>::namespaced(server.client(), "web").list(&Default::default()).await?.items;
/// # assert_eq!((events.len(), events[0].series.as_ref().unwrap().count), (1, 2));
///
/// // Outside of a reconcile, where the caller may wait:
/// let published = recorder.publish(&about, EventType::Normal, "Scaled", "Scale", "three replicas").await?;
/// assert_eq!(published, Published::Counted(3));
/// # Ok(()) });
/// ```
pub struct EventRecorder {
    inner: Arc<Inner>,
    /// The tasks that write the events that are due.
    writers: Mutex<JoinSet<()>>,
}

/// The part of a recorder that it shares with its tasks.
struct Inner {
    client: Client,
    controller: String,
    instance: String,
    series: Mutex<Series>,
    /// The number of tasks that run.
    running: watch::Sender<usize>,
}

/// Why an event was not written. The recorder counts it, and writes the count with the next equal event.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// The API server was not reached, or refused the event.
    #[error("cannot write event {reason:?} about {about}")]
    Server {
        /// The reason of the event.
        reason: String,
        /// The name of the object that the event is about.
        about: String,
        /// The error of the request.
        source: Box<Error>,
    },
    /// The API server did not answer in time.
    #[error("the API server did not answer within {PATIENCE:?} for event {reason:?} about {about}")]
    TimedOut {
        /// The reason of the event.
        reason: String,
        /// The name of the object that the event is about.
        about: String,
    },
    /// The flush ended before all events were written.
    #[error("{unwritten} events were not written within {FLUSH_WITHIN:?}")]
    FlushTimedOut {
        /// The number of events that were not written.
        unwritten: u64,
    },
}

impl EventRecorder {
    /// Makes a recorder for one copy (`instance`) of a controller. The name of the controller has a domain, such as
    /// `example.com/my-controller`.
    pub fn new(client: Client, controller: impl Into<String>, instance: impl Into<String>) -> Self {
        let inner = Inner {
            client,
            controller: controller.into(),
            instance: instance.into(),
            series: Mutex::default(),
            running: watch::Sender::new(0),
        };
        Self { inner: Arc::new(inner), writers: Mutex::default() }
    }

    /// Records an event: a reason in one word (`Scaled`), an action (`Scale`), and a sentence for people.
    ///
    /// It returns at once, and tasks of the recorder write the event. If a write fails, the recorder logs it, and the
    /// event stays [counted](Self::unwritten). Outside of a tokio runtime the recorder only counts events.
    pub fn record(&self, about: &ObjectReference, kind: EventType, reason: &str, action: &str, note: &str) {
        self.inner.series.lock().add(&About::new(about, kind, reason, action, shortened(note)));
        let Ok(runtime) = Handle::try_current() else { return };
        let Some(writer) = Writer::new(&self.inner) else { return };
        let mut writers = self.writers.lock();
        while writers.try_join_next().is_some() {}
        writers.spawn_on(writer.run(), &runtime);
    }

    /// Writes an event with the arguments of [`record`](Self::record), and returns the result.
    ///
    /// This waits up to 5 s for the API server, so do not use it in a reconcile.
    ///
    /// # Errors
    ///
    /// [`EventError`] if the event was not written.
    pub async fn publish(
        &self,
        about: &ObjectReference,
        kind: EventType,
        reason: &str,
        action: &str,
        note: &str,
    ) -> Result<Published, EventError> {
        let what = About::new(about, kind, reason, action, shortened(note));
        let step = self.inner.series.lock().begin(&what);
        if let SeriesStep::Held(waiting) = step {
            return Ok(Published::Held(waiting));
        }
        self.inner.write(what, step).await
    }

    /// Writes all events that were only counted so far. Call it at the end of the program.
    ///
    /// It takes at most 5 s, and writes up to 16 events at the same time.
    ///
    /// # Errors
    ///
    /// [`EventError`] for the first event that was not written, after the others were tried; or
    /// [`FlushTimedOut`](EventError::FlushTimedOut).
    pub async fn flush(&self) -> Result<(), EventError> {
        let deadline = after(Instant::now(), FLUSH_WITHIN);
        let mut running = self.inner.running.subscribe();
        let flush = async {
            let (_, outcome) = tokio::join!(running.wait_for(|running| *running == 0), self.inner.write_owed());
            // The tasks may have left some events unwritten.
            outcome.and(self.inner.write_owed().await)
        };
        match timeout_at(deadline, flush).await {
            // The second try wrote the events that failed at the first.
            Ok(_) if self.unwritten() == 0 => Ok(()),
            Ok(outcome) => outcome,
            Err(_) => Err(EventError::FlushTimedOut { unwritten: self.unwritten() }),
        }
    }

    /// Returns how many events were dropped before they were written. The recorder remembers 4096 different events.
    pub fn dropped(&self) -> u64 {
        self.inner.series.lock().dropped
    }

    /// Returns how many events are counted but not written yet.
    pub fn unwritten(&self) -> u64 {
        self.inner.series.lock().unwritten()
    }
}

/// A write of an event. When it is dropped, the next write of this event may begin.
struct EventWrite<'r> {
    series: &'r Mutex<Series>,
    what: About,
}

impl Drop for EventWrite<'_> {
    fn drop(&mut self) {
        self.series.lock().ended(&self.what);
    }
}

/// A task that writes events that are due. It is counted as long as it may begin another write.
struct Writer {
    inner: Arc<Inner>,
    counted: bool,
}

impl Writer {
    /// Makes a task. Returns `None` if no event is due, or if enough tasks run.
    fn new(inner: &Arc<Inner>) -> Option<Self> {
        inner.series.lock().begin_writer(MOST_WRITERS).then(|| {
            inner.running.send_modify(|running| *running += 1);
            Self { inner: inner.clone(), counted: true }
        })
    }

    /// Writes events until none is due.
    async fn run(mut self) {
        let inner = self.inner.clone();
        loop {
            let next = inner.series.lock().begin_due_or_end();
            let Some((what, step)) = next else {
                self.counted = false;
                return;
            };
            match inner.write(what.clone(), step).await {
                // The same event may have been recorded again meanwhile.
                Ok(_) => inner.series.lock().make_due(&what),
                Err(error) => {
                    let cause = std::error::Error::source(&error);
                    warn!(%error, cause = cause.map(tracing::field::display), "cannot write an event");
                }
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.counted {
            self.inner.series.lock().end_writer();
        }
        self.inner.running.send_modify(|running| *running = running.saturating_sub(1));
    }
}

impl Inner {
    /// Writes all events that were only counted so far, and returns the first error.
    async fn write_owed(&self) -> Result<(), EventError> {
        let mut outcome = Ok(());
        // An event that was never written is created first. Its count is written second.
        for _ in 0..2 {
            let owed = self.series.lock().begin_owed();
            // All writes are made at once, so that each of them ends if this future is dropped.
            let writes: Vec<_> = owed.into_iter().map(|(what, step)| self.write(what, step)).collect();
            let mut written = stream::iter(writes).buffer_unordered(MOST_WRITERS);
            while let Some(written) = written.next().await {
                outcome = outcome.and(written.map(drop));
            }
        }
        outcome
    }

    /// Writes an event for which `Series` has begun a write.
    fn write(&self, what: About, step: SeriesStep) -> impl Future<Output = Result<Published, EventError>> + use<'_> {
        let writing = EventWrite { series: &self.series, what };
        async move {
            let what = &writing.what;
            let (reason, about) = (what.reason.clone(), what.object.name.clone().unwrap_or_default());
            match timeout(PATIENCE, self.send(what, &step)).await {
                Ok(Ok(event)) => Ok(self.series.lock().written(what, &step, event.metadata.name.unwrap_or_default())),
                Ok(Err(error)) => {
                    // The API server deletes events after an hour. The next write creates a new one.
                    let gone = matches!(&error, Error::Api(status) if status.code == 404);
                    self.series.lock().not_written(what, &step, gone);
                    Err(EventError::Server { reason, about, source: Box::new(error) })
                }
                Err(_) => Err(EventError::TimedOut { reason, about }),
            }
        }
    }

    async fn send(&self, what: &About, step: &SeriesStep) -> Result<Event, Error> {
        let namespace = what.object.namespace.as_deref().filter(|namespace| !namespace.is_empty()).unwrap_or("default");
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let now = MicroTime(Timestamp::now());
        match step {
            SeriesStep::Create | SeriesStep::Held(_) => {
                api.create(&PostParams::default(), &self.event(what, namespace, now)).await
            }
            SeriesStep::Count { name, count } => {
                let series = json!({"series": EventSeries { count: *count, last_observed_time: now }});
                api.patch(name, &PatchParams::default(), &Patch::Merge(series)).await
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

/// Returns the note, cut to the length that the API server accepts.
fn shortened(note: &str) -> &str {
    let end = (0..=note.len().min(LONGEST_NOTE)).rev().find(|end| note.is_char_boundary(*end));
    &note[..end.unwrap_or(0)]
}

impl fmt::Debug for EventRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventRecorder").field("controller", &self.inner.controller).finish_non_exhaustive()
    }
}
