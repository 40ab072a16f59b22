//! Records changes of all informers while there are readers, and keeps the last ones.

mod history;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream, SelectAll};
use kube_informer::{AnyEvent, AnyInformer, EventKind};
use parking_lot::Mutex;
use tokio::sync::broadcast;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval};

use self::history::{Histories, RecordedHistory};
use crate::difference::differences;
use crate::ids::InformerIds;
use crate::model::{Change, ChangeKind};

/// How long recording continues after the last reader has gone, so that a reloaded page finds its history.
const LINGER: Duration = Duration::from_secs(30);
/// How often the recorder looks for new informers.
const ROUND: Duration = Duration::from_secs(1);
/// The number of changes that wait for a slow page before it misses some.
const TAIL: usize = 1024;
/// The number of fields that are listed for a change.
const FIELDS: usize = 4;
/// The number of changes after which the task yields.
const TURN: usize = 32;

/// Records changes of all informers while there are readers.
pub(crate) struct Recorder {
    informers: Arc<InformerIds>,
    recording: Arc<Recording>,
    /// The task that records, if there is one; a drop of the recorder aborts it.
    task: Mutex<JoinSet<()>>,
}

struct Recording {
    tail: broadcast::Sender<Arc<Change>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of readers; and when the last one left.
    watchers: usize,
    left: Option<Instant>,
    /// When recording began; `None` while nothing is recorded.
    since: Option<Instant>,
    histories: Histories,
}

/// A reader. Changes are recorded while at least one exists.
pub(crate) struct Watcher(Arc<Recording>);

/// A message from an informer.
enum Message {
    Event(AnyEvent),
    Ended,
}

/// An informer that is recorded.
#[derive(Clone)]
struct RecordedInformer {
    number: u64,
    /// The id. Another informer may get it after this one has stopped.
    id: Arc<str>,
}

type InformerEvents = BoxStream<'static, (RecordedInformer, Message)>;

impl Recorder {
    pub(crate) fn new(informers: Arc<InformerIds>) -> Self {
        let recording = Recording { tail: broadcast::Sender::new(TAIL), state: Mutex::default() };
        Self { informers, recording: Arc::new(recording), task: Mutex::default() }
    }

    /// Starts recording, and continues while the watcher exists and for `LINGER` after that.
    pub(crate) fn watch(&self) -> Watcher {
        let mut task = self.task.lock();
        let starts = {
            let mut state = self.recording.state.lock();
            state.watchers += 1;
            state.left = None;
            state.since.is_none().then(|| state.since = Some(Instant::now())).is_some()
        };
        if starts {
            // Subscribed before this returns, so that the reader misses no later change.
            let mut subscriptions = Subscriptions::new(self.informers.clone());
            subscriptions.add_new();
            while task.try_join_next().is_some() {}
            task.spawn(record(self.recording.clone(), subscriptions));
        }
        Watcher(self.recording.clone())
    }

    /// Stops recording, and waits until the task has ended.
    pub(crate) async fn stop(&self) {
        let mut tasks = std::mem::take(&mut *self.task.lock());
        tasks.shutdown().await;
    }

    /// Returns the recorded changes of an object. A call counts as a reader, so that recording starts or continues.
    pub(crate) fn history(&self, informer: &AnyInformer, key: &str) -> RecordedHistory {
        drop(self.watch());
        let state = self.recording.state.lock();
        let recorded = state.since.map_or(Duration::ZERO, |since| since.elapsed());
        state.histories.of(informer.number(), key, recorded)
    }
}

impl Watcher {
    /// Subscribes to all further changes.
    pub(crate) fn tail(&self) -> broadcast::Receiver<Arc<Change>> {
        self.0.tail.subscribe()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.watchers -= 1;
        if state.watchers == 0 {
            state.left = Some(Instant::now());
        }
    }
}

/// The informers that are recorded.
struct Subscriptions {
    informers: Arc<InformerIds>,
    known: HashSet<u64>,
    events: SelectAll<InformerEvents>,
}

impl Subscriptions {
    fn new(informers: Arc<InformerIds>) -> Self {
        Self { informers, known: HashSet::new(), events: SelectAll::new() }
    }

    /// Subscribes to new informers.
    fn add_new(&mut self) {
        for (id, informer) in self.informers.all() {
            if informer.is_running() && self.known.insert(informer.number()) {
                self.events.push(events_of(id, &informer));
            }
        }
    }
}

fn events_of(id: String, informer: &AnyInformer) -> InformerEvents {
    let recorded = RecordedInformer { number: informer.number(), id: id.into() };
    let messages = informer.changes().map(Message::Event).chain(stream::iter([Message::Ended]));
    messages.map(move |message| (recorded.clone(), message)).boxed()
}

async fn record(recording: Arc<Recording>, mut subscriptions: Subscriptions) {
    let mut round = interval(ROUND);
    let mut turn = 0;
    loop {
        tokio::select! {
            biased;
            _ = round.tick() => {
                {
                    let mut state = recording.state.lock();
                    if state.left.is_some_and(|left| left.elapsed() >= LINGER) {
                        // Reset under the lock that `watch` takes, so that the next reader starts a new task.
                        *state = State::default();
                        return;
                    }
                }
                subscriptions.add_new();
            }
            Some((informer, message)) = subscriptions.events.next() => {
                match message {
                    Message::Event(event) => recording.take(&informer, &event),
                    Message::Ended => { subscriptions.known.remove(&informer.number); }
                }
                turn += 1;
                if turn % TURN == 0 {
                    tokio::task::yield_now().await;
                }
            }
        }
    }
}

impl Recording {
    fn take(&self, informer: &RecordedInformer, event: &AnyEvent) {
        let at_ms = now_ms();
        let (mut fields, mut more) = (Vec::new(), 0);
        if let (Some(old), Some(new)) = (&event.old, &event.object) {
            let (changes, rest) = differences(old, new, FIELDS);
            fields.extend(changes.into_iter().map(|change| change.path));
            more = rest;
        }
        let kind = match event.kind {
            EventKind::Added => ChangeKind::Added,
            EventKind::Updated => ChangeKind::Updated,
            EventKind::Resynced => ChangeKind::Resynced,
            EventKind::Deleted => ChangeKind::Deleted,
        };
        if kind != ChangeKind::Resynced {
            self.state.lock().histories.record(informer.number, kind, at_ms, event);
        }
        let (key, version) = (event.key.as_str().to_owned(), event.version.clone());
        // Fails if no page is open, which is fine.
        let _ = self.tail.send(Arc::new(Change {
            informer: informer.id.to_string(),
            kind,
            key,
            version,
            at_ms,
            fields,
            more,
        }));
    }
}

/// Returns the time in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
