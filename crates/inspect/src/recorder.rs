//! Follows every informer while somebody looks, and remembers the last changes for a while.

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

use self::history::{Histories, Recalled};
use crate::difference::differences;
use crate::inspection::Named;
use crate::model::{Change, ChangeKind};

/// So long after the last look it is recorded on: a page that is loaded again finds what it had.
const LINGER: Duration = Duration::from_secs(30);
/// How often it is looked whether there are other informers.
const ROUND: Duration = Duration::from_secs(1);
/// So many changes wait for a page that is slow, before it misses some.
const TAIL: usize = 1024;
/// So many fields are named with a change.
const FIELDS: usize = 4;
/// After so many changes others have their turn.
const TURN: usize = 32;

/// Follows every informer while somebody looks.
pub(crate) struct Recorder {
    informers: Arc<Named>,
    recording: Arc<Recording>,
    /// The one task that records, if any; it ends with the recorder.
    task: Mutex<JoinSet<()>>,
}

struct Recording {
    tail: broadcast::Sender<Arc<Change>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// How many look, and since when nobody does.
    watchers: usize,
    left: Option<Instant>,
    /// Since when it is recorded; `None` if it is not.
    since: Option<Instant>,
    histories: Histories,
}

/// Somebody who looks. While there is one, changes are recorded.
pub(crate) struct Watcher(Arc<Recording>);

/// What a followed informer says.
enum Said {
    Event(AnyEvent),
    Ended,
}

/// An informer that is followed.
#[derive(Clone)]
struct Follows {
    number: u64,
    /// What it is asked for by. Another may be, once it is gone.
    id: Arc<str>,
}

type Followed = BoxStream<'static, (Follows, Said)>;

impl Recorder {
    pub(crate) fn new(informers: Arc<Named>) -> Self {
        let recording = Recording { tail: broadcast::Sender::new(TAIL), state: Mutex::default() };
        Self { informers, recording: Arc::new(recording), task: Mutex::default() }
    }

    /// From this moment on changes are recorded, for as long as the watcher is held and a while longer.
    pub(crate) fn watch(&self) -> Watcher {
        let mut task = self.task.lock();
        let starts = {
            let mut state = self.recording.state.lock();
            state.watchers += 1;
            state.left = None;
            state.since.is_none().then(|| state.since = Some(Instant::now())).is_some()
        };
        if starts {
            // Followed before this returns: who looks misses nothing that happens afterwards.
            let mut rounds = Rounds::new(self.informers.clone());
            rounds.look();
            while task.try_join_next().is_some() {}
            task.spawn(record(self.recording.clone(), rounds));
        }
        Watcher(self.recording.clone())
    }

    /// Records no longer, and waits until nothing of it runs.
    pub(crate) async fn stop(&self) {
        let mut tasks = std::mem::take(&mut *self.task.lock());
        tasks.shutdown().await;
    }

    /// What is known of an object's last changes. Who asks has looked: from now on there will be more.
    pub(crate) fn history(&self, informer: &AnyInformer, key: &str) -> Recalled {
        drop(self.watch());
        let state = self.recording.state.lock();
        let recorded = state.since.map_or(Duration::ZERO, |since| since.elapsed());
        state.histories.of(informer.number(), key, recorded)
    }
}

impl Watcher {
    /// What happens from now on.
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

/// The informers that are followed.
struct Rounds {
    informers: Arc<Named>,
    known: HashSet<u64>,
    followed: SelectAll<Followed>,
}

impl Rounds {
    fn new(informers: Arc<Named>) -> Self {
        Self { informers, known: HashSet::new(), followed: SelectAll::new() }
    }

    /// Follows those that are not followed yet.
    fn look(&mut self) {
        for (id, informer) in self.informers.all() {
            if informer.is_running() && self.known.insert(informer.number()) {
                self.followed.push(follow(id, &informer));
            }
        }
    }
}

fn follow(id: String, informer: &AnyInformer) -> Followed {
    let (ended, follows) = (stream::iter([Said::Ended]), Follows { number: informer.number(), id: id.into() });
    informer.changes().map(Said::Event).chain(ended).map(move |said| (follows.clone(), said)).boxed()
}

async fn record(recording: Arc<Recording>, mut rounds: Rounds) {
    let mut round = interval(ROUND);
    let mut turn = 0;
    loop {
        tokio::select! {
            biased;
            _ = round.tick() => {
                {
                    let mut state = recording.state.lock();
                    if state.left.is_some_and(|left| left.elapsed() >= LINGER) {
                        // Said under the same lock under which somebody comes: whoever comes next starts it again.
                        *state = State::default();
                        return;
                    }
                }
                rounds.look();
            }
            Some((follows, said)) = rounds.followed.next() => {
                match said {
                    Said::Event(event) => recording.take(&follows, &event),
                    Said::Ended => { rounds.known.remove(&follows.number); }
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
    fn take(&self, informer: &Follows, event: &AnyEvent) {
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
        // Nobody may be listening at the moment.
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

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
