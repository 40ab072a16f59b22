//! A scripted source, and reflectors and informers over it that record everything they do.
//!
//! A [`Script`] is a list of answers. Each request takes the next answer. The script records a request of another kind
//! than the next answer, and never answers it. It does not answer requests after its end either. A test fails if its
//! script is not used up ([`Script::check_over`]), unless the script may end early.

use std::collections::VecDeque;
use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::stream;
use kube_informer::parts::{
    Batch, Decoded, Delta, KeyDelta, ListEnd, ListMark, ListOptions, ListPart, ListStream, ListWatch, Reflector, Sink,
    WatchEvent, WatchOptions, WatchStream, Work,
};
use kube_informer::{
    BadObject, DecodeError, Deleted, Event, HandlerHandle, Id, InformerBuilder, InformerError, InformerOptions, KeyRef,
    Object, Phase, ReflectorError, ResourceVersion, SharedInformer, SourceError, Status,
};
use parking_lot::Mutex;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The seed of all random choices of the tests.
pub(crate) const SEED: u64 = 7;

/// A small test object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thing {
    namespace: String,
    name: String,
    uid: String,
    version: String,
    /// The values under which an index finds the object.
    pub(crate) values: Vec<String>,
}

impl Object for Thing {
    fn id(&self) -> Id<'_> {
        Id { key: KeyRef::new(&self.namespace, &self.name), uid: &self.uid, version: &self.version }
    }
}

impl Thing {
    pub(crate) fn with<const N: usize>(mut self, values: [&str; N]) -> Self {
        self.values = values.map(str::to_owned).into();
        self
    }
}

/// Returns a thing that is written as `namespace/name@version`, optionally followed by `#uid`.
pub(crate) fn thing(text: &str) -> Thing {
    let (text, uid) = text.split_once('#').unwrap_or((text, ""));
    let (key, version) = text.split_once('@').unwrap_or((text, ""));
    let key = KeyRef::from(key);
    Thing {
        namespace: key.namespace().unwrap_or_default().to_owned(),
        name: key.name().to_owned(),
        uid: uid.to_owned(),
        version: version.to_owned(),
        values: Vec::new(),
    }
}

/// Returns the text form of a thing: the inverse of [`thing`], without the uid.
pub(crate) fn text(thing: &Thing) -> String {
    let id = thing.id();
    if id.version.is_empty() { id.key.to_string() } else { format!("{}@{}", id.key, id.version) }
}

/// Returns an undecodable object with this key and version. `""` means that its key is unknown, too.
pub(crate) fn bad(text: &str) -> BadObject {
    let (key, version) = text.split_once('@').unwrap_or((text, ""));
    let version = Some(version).filter(|version| !version.is_empty()).map(ResourceVersion::from);
    BadObject { key: key.parse().ok(), version, ..BadObject::new(DecodeError::Shape("undecodable by the test".into())) }
}

/// A step of a scripted watch. The watch ends after its last step.
#[derive(Debug)]
pub(crate) enum Act {
    Event(WatchEvent<Thing>),
    Fail(SourceError),
    Pause(Duration),
    StayOpen,
    /// Steps that the test sends, until it drops the sender.
    Live(mpsc::UnboundedReceiver<Act>),
}

pub(crate) fn added(text: &str) -> Act {
    Act::Event(WatchEvent::Added(object(text)))
}

pub(crate) fn modified(text: &str) -> Act {
    Act::Event(WatchEvent::Modified(object(text)))
}

pub(crate) fn deleted(text: &str) -> Act {
    Act::Event(WatchEvent::Deleted(object(text)))
}

pub(crate) fn bookmark(version: &str) -> Act {
    Act::Event(WatchEvent::Bookmark { version: version.into(), initial_events_end: false })
}

/// Returns the bookmark at the end of the initial state.
pub(crate) fn initial_end(version: &str) -> Act {
    Act::Event(WatchEvent::Bookmark { version: version.into(), initial_events_end: true })
}

pub(crate) fn pause(seconds: f64) -> Act {
    Act::Pause(Duration::from_secs_f64(seconds))
}

fn object(text: &str) -> Decoded<Thing> {
    Decoded::Object(thing(text))
}

/// Returns a watch whose steps the test sends.
pub(crate) fn live() -> (mpsc::UnboundedSender<Act>, Act) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (sender, Act::Live(receiver))
}

/// Returns an error status of the server.
pub(crate) fn status(code: u16, reason: &str) -> SourceError {
    SourceError::Status(Status { code, reason: reason.into(), message: "scripted".into(), ..Status::default() })
}

pub(crate) fn gone() -> SourceError {
    status(410, "Expired")
}

pub(crate) fn busy() -> SourceError {
    status(429, "TooManyRequests")
}

pub(crate) fn too_large() -> SourceError {
    SourceError::Status(Status { code: 504, reason: "Timeout".into(), version_too_large: true, ..Status::default() })
}

pub(crate) fn unreachable() -> SourceError {
    SourceError::Unreachable(Arc::new(std::io::Error::from(std::io::ErrorKind::ConnectionRefused)))
}

pub(crate) fn interrupted() -> SourceError {
    SourceError::Interrupted(Arc::new(std::io::Error::from(std::io::ErrorKind::ConnectionReset)))
}

/// A request to the source.
#[derive(Debug, Clone)]
pub(crate) enum Request {
    List(ListOptions),
    Watch(WatchOptions),
}

/// Writes `list VERSION …`, `watch VERSION`, or `stream VERSION` for a watch that begins with the initial state.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn text(version: &Option<ResourceVersion>) -> &str {
            version.as_ref().map_or("-", ResourceVersion::as_str)
        }
        match self {
            Self::List(options) => {
                write!(f, "list {}", text(&options.version))?;
                if options.limit > 0 {
                    write!(f, " limit={}", options.limit)?;
                }
                if options.not_older_than {
                    f.write_str(" not older")?;
                }
                options.continue_token.as_ref().map_or(Ok(()), |token| write!(f, " from {token}"))
            }
            Self::Watch(options) if options.initial_events => write!(f, "stream {}", text(&options.version)),
            Self::Watch(options) => write!(f, "watch {}", text(&options.version)),
        }
    }
}

enum Answer {
    List(Vec<Result<ListPart<Thing>, SourceError>>),
    ListRefused(SourceError),
    ListHangs,
    Watch(Vec<Act>),
    WatchRefused(SourceError),
    WatchHangs,
}

/// Adds answers to a script.
pub(crate) type Answers = fn(Script) -> Script;

/// The requests and watches so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log {
    pub(crate) asked: Vec<(Instant, Request)>,
    /// The number of opened watches, and of closed ones.
    pub(crate) opened: usize,
    pub(crate) closed: usize,
    /// The number of requests that wait for an answer which never comes.
    pub(crate) hanging: usize,
    unexpected: Vec<String>,
    /// The steps that closed watches did not play.
    unplayed: Vec<String>,
}

/// A source that answers from a script. Clones share the script.
#[derive(Clone)]
pub(crate) struct Script(Arc<Shared>);

struct Shared {
    streaming: AtomicBool,
    /// Whether the discovery of the server has the resource; an error is the answer of a broken one.
    served: Mutex<Result<bool, SourceError>>,
    /// The number of changes of the CRD; `None` if the source may not watch CRDs.
    crd: watch::Sender<Option<u64>>,
    may_end_early: AtomicBool,
    answers: Mutex<VecDeque<Answer>>,
    log: watch::Sender<Log>,
}

impl Script {
    /// Creates a source that does not support streaming lists.
    pub(crate) fn new() -> Self {
        let (streaming, may_end_early) = (AtomicBool::new(false), AtomicBool::new(false));
        let (served, crd) = (Mutex::new(Ok(true)), watch::Sender::new(Some(0)));
        let (answers, log) = (Mutex::default(), watch::Sender::default());
        Self(Arc::new(Shared { streaming, served, crd, may_end_early, answers, log }))
    }

    /// Creates a source that supports streaming lists.
    pub(crate) fn streaming() -> Self {
        let script = Self::new();
        script.0.streaming.store(true, Ordering::Relaxed);
        script
    }

    /// Allows the test to end before the script is used up.
    pub(crate) fn may_end_early(self) -> Self {
        self.0.may_end_early.store(true, Ordering::Relaxed);
        self
    }

    /// Sets what the discovery of the server answers.
    pub(crate) fn serve(&self, served: Result<bool, SourceError>) {
        *self.0.served.lock() = served;
    }

    /// Changes the CRD of the resource.
    pub(crate) fn change_crd(&self) {
        self.0.crd.send_modify(|changes| *changes = changes.map(|changes| changes + 1));
    }

    /// Forbids to watch CRDs.
    pub(crate) fn without_crds(self) -> Self {
        self.0.crd.send_replace(None);
        self
    }

    fn then(self, answer: Answer) -> Self {
        self.0.answers.lock().push_back(answer);
        self
    }

    /// Adds a list of one page.
    pub(crate) fn list<const N: usize>(self, version: &str, objects: [&str; N]) -> Self {
        self.list_things(version, objects.map(thing))
    }

    pub(crate) fn list_things(self, version: &str, things: impl IntoIterator<Item = Thing>) -> Self {
        let items = things.into_iter().map(Decoded::Object);
        self.list_items(version, items)
    }

    pub(crate) fn list_items(self, version: &str, items: impl IntoIterator<Item = Decoded<Thing>>) -> Self {
        self.pages(version, items, None)
    }

    /// Adds a page of a list that has further pages.
    pub(crate) fn page<const N: usize>(self, version: &str, objects: [&str; N], next: &str) -> Self {
        self.pages(version, objects.map(object), Some(next.to_owned()))
    }

    fn pages(self, version: &str, items: impl IntoIterator<Item = Decoded<Thing>>, next: Option<String>) -> Self {
        let version = Some(version).filter(|version| !version.is_empty()).map(ResourceVersion::from);
        let end = ListEnd { version, continue_token: next, remaining: None };
        let parts = items.into_iter().map(ListPart::Item).chain([ListPart::End(end)]);
        self.then(Answer::List(parts.map(Ok).collect()))
    }

    /// Adds a list that is cut off after these objects.
    pub(crate) fn list_cut_off<const N: usize>(self, objects: [&str; N]) -> Self {
        self.then(Answer::List(objects.map(|text| Ok(ListPart::Item(object(text)))).into_iter().collect()))
    }

    pub(crate) fn list_refused(self, error: SourceError) -> Self {
        self.then(Answer::ListRefused(error))
    }

    pub(crate) fn list_hangs(self) -> Self {
        self.then(Answer::ListHangs)
    }

    pub(crate) fn watch(self, acts: impl Into<Vec<Act>>) -> Self {
        self.then(Answer::Watch(acts.into()))
    }

    pub(crate) fn watch_refused(self, error: SourceError) -> Self {
        self.then(Answer::WatchRefused(error))
    }

    pub(crate) fn watch_hangs(self) -> Self {
        self.then(Answer::WatchHangs)
    }

    /// Adds the same answers `count` times.
    pub(crate) fn times(self, count: usize, answers: impl Fn(Self) -> Self) -> Self {
        (0..count).fold(self, |script, _| answers(script))
    }

    pub(crate) fn log(&self) -> Log {
        self.0.log.borrow().clone()
    }

    /// Returns all requests so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.log().asked.iter().map(|(_, request)| request.to_string()).collect()
    }

    /// Returns all requests, once there are at least `count`.
    pub(crate) async fn asks(&self, count: usize) -> Vec<String> {
        self.until(|log| log.asked.len() >= count).await;
        self.asked()
    }

    /// Waits for `count` requests, and returns the time between each request and the one before it.
    pub(crate) async fn gaps(&self, count: usize) -> Vec<Duration> {
        self.until(|log| log.asked.len() >= count).await;
        self.log().asked.windows(2).map(|pair| pair[1].0 - pair[0].0).collect()
    }

    pub(crate) async fn until(&self, condition: impl FnMut(&Log) -> bool) {
        let mut log = self.0.log.subscribe();
        let reached = tokio::time::timeout(PATIENCE, log.wait_for(condition)).await;
        assert!(reached.is_ok(), "the source received {:?} and then no further request", self.asked());
    }

    fn ask(&self, request: Request, fits: impl FnOnce(&Answer) -> bool) -> Option<Answer> {
        let mut answers = self.0.answers.lock();
        let next = answers.front().map(fits);
        self.0.log.send_modify(|log| {
            if next == Some(false) {
                log.unexpected.push(format!("request {}: {request}", log.asked.len()));
            }
            log.asked.push((Instant::now(), request));
        });
        if next == Some(true) { answers.pop_front() } else { None }
    }

    async fn hang<R>(&self) -> R {
        let _hanging = Counted::new(&self.0, |log| &mut log.hanging, |log| log.hanging -= 1);
        pending().await
    }

    /// Checks that every watch and request has ended, that the script expected every request, and that it is used up.
    pub(crate) fn check_over(&self) {
        self.check_expected();
        let log = self.log();
        assert_eq!(log.opened, log.closed, "a watch is left open");
        assert_eq!(log.hanging, 0, "a request is still open");
        if !self.0.may_end_early.load(Ordering::Relaxed) {
            let answers = self.0.answers.lock().len();
            assert_eq!(answers, 0, "the script still has answers; requests {:?}", self.asked());
            assert!(log.unplayed.is_empty(), "watches did not play {:?}", log.unplayed);
        }
    }

    /// Checks that the script expected every request.
    pub(crate) fn check_expected(&self) {
        let log = self.log();
        assert!(
            log.unexpected.is_empty(),
            "the script did not expect {:?}; requests {:?}",
            log.unexpected,
            self.asked()
        );
    }
}

impl ListWatch<Thing> for Script {
    async fn list(&self, options: ListOptions) -> Result<ListStream<Thing>, SourceError> {
        let is_list = |answer: &Answer| matches!(answer, Answer::List(_) | Answer::ListRefused(_) | Answer::ListHangs);
        match self.ask(Request::List(options), is_list) {
            Some(Answer::List(parts)) => Ok(ListStream::new(stream::iter(parts))),
            Some(Answer::ListRefused(error)) => Err(error),
            _ => self.hang().await,
        }
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<Thing>, SourceError> {
        let is_watch =
            |answer: &Answer| matches!(answer, Answer::Watch(_) | Answer::WatchRefused(_) | Answer::WatchHangs);
        match self.ask(Request::Watch(options), is_watch) {
            Some(Answer::Watch(acts)) => Ok(self.play(acts)),
            Some(Answer::WatchRefused(error)) => Err(error),
            _ => self.hang().await,
        }
    }

    async fn is_served(&self) -> Result<bool, SourceError> {
        self.0.served.lock().clone()
    }

    async fn until_defined(&self) -> Result<(), SourceError> {
        let mut crd = self.0.crd.subscribe();
        if crd.borrow_and_update().is_none() {
            return Err(status(403, "Forbidden"));
        }
        crd.changed().await.map_err(|_| interrupted())
    }

    fn supports_streaming_lists(&self) -> bool {
        self.0.streaming.load(Ordering::Relaxed)
    }
}

impl Script {
    fn play(&self, acts: Vec<Act>) -> WatchStream<Thing> {
        let open = Counted::new(&self.0, |log| &mut log.opened, |log| log.closed += 1);
        let playing = Playing { acts: acts.into(), number: self.log().opened, open };
        WatchStream::new(stream::unfold(playing, |mut playing| async move {
            let event = playing.next().await?;
            Some((event, playing))
        }))
    }
}

/// An open watch.
struct Playing {
    acts: VecDeque<Act>,
    number: usize,
    open: Counted,
}

impl Playing {
    async fn next(&mut self) -> Option<Result<WatchEvent<Thing>, SourceError>> {
        loop {
            // A step that takes time stays in the queue until it is over.
            match self.acts.front_mut()? {
                Act::Event(_) | Act::Fail(_) => {}
                Act::Pause(duration) => tokio::time::sleep(*duration).await,
                Act::StayOpen => pending().await,
                Act::Live(receiver) => {
                    if let Some(act) = receiver.recv().await {
                        self.acts.push_front(act);
                        continue;
                    }
                }
            }
            match self.acts.pop_front()? {
                Act::Event(event) => return Some(Ok(event)),
                Act::Fail(error) => return Some(Err(error)),
                Act::Pause(_) | Act::StayOpen | Act::Live(_) => {}
            }
        }
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        let is_left = |act: &&Act| match act {
            Act::Event(_) | Act::Fail(_) | Act::Pause(_) => true,
            Act::StayOpen => false,
            Act::Live(receiver) => !receiver.is_empty(),
        };
        let left: Vec<String> = self.acts.iter().filter(is_left).map(|act| format!("{act:?}")).collect();
        if !left.is_empty() {
            let left = format!("watch {}: {}", self.number, left.join(", "));
            self.open.0.log.send_modify(|log| log.unplayed.push(left));
        }
    }
}

/// Counts a begin when it is created, and an end when it is dropped.
struct Counted(Arc<Shared>, fn(&mut Log));

impl Counted {
    fn new(shared: &Arc<Shared>, begins: fn(&mut Log) -> &mut usize, ends: fn(&mut Log)) -> Self {
        shared.log.send_modify(|log| *begins(log) += 1);
        Self(shared.clone(), ends)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.log.send_modify(self.1);
    }
}

/// Far longer than any wait of a test. A paused clock passes it at once when no task can run any more.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3600);

/// Waits for something that the test expects, and panics with `what` if it does not happen.
pub(crate) async fn within<F: IntoFuture>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future.into_future()).await.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

/// Runs a test on the real clock, because sockets or threads do not work with a paused one.
pub(crate) async fn on_the_real_clock<F: Future>(test: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), test).await.expect("the test takes less than a minute")
}

/// Waits until every other task waits. A paused clock does not advance before.
pub(crate) async fn quiet() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Checks that every task that was started after it has ended.
pub(crate) struct NoTaskLeft(usize);

impl NoTaskLeft {
    pub(crate) fn since_now() -> Self {
        Self(Handle::current().metrics().num_alive_tasks())
    }

    pub(crate) fn check(&self) {
        let runtime = Handle::current();
        let began = tokio::time::Instant::now();
        // On several threads a task still counts for a moment after it was joined.
        while runtime.runtime_flavor() == RuntimeFlavor::MultiThread
            && runtime.metrics().num_alive_tasks() != self.0
            && began.elapsed() < Duration::from_secs(10)
        {
            std::thread::yield_now();
        }
        assert_eq!(runtime.metrics().num_alive_tasks(), self.0, "a task is left");
    }
}

/// A sink that records its calls.
#[derive(Clone, Default)]
pub(crate) struct Notes(Arc<watch::Sender<Noted>>);

#[derive(Debug, Clone, Default)]
pub(crate) struct Noted {
    pub(crate) pushed: Vec<String>,
    pub(crate) phases: Vec<Phase>,
    pub(crate) failures: Vec<ReflectorError>,
}

impl Sink<Thing> for Notes {
    async fn push(&mut self, delta: Delta<Thing>, _bytes: u64) {
        self.0.send_modify(|noted| noted.pushed.push(describe(&delta)));
    }

    fn phase(&mut self, phase: Phase) {
        self.0.send_modify(|noted| noted.phases.push(phase));
    }

    fn failed(&mut self, error: &ReflectorError) {
        self.0.send_modify(|noted| noted.failures.push(error.clone()));
    }
}

/// Describes a delta in a few words.
pub(crate) fn describe(delta: &Delta<Thing>) -> String {
    match delta {
        Delta::Added(thing) => format!("added {}", text(thing)),
        Delta::Updated(thing) => format!("updated {}", text(thing)),
        Delta::Deleted(thing) => format!("deleted {}", text(thing)),
        Delta::Vanished { key, .. } => format!("vanished {key}"),
        Delta::Undecodable(bad) => format!("undecodable {}", bad.key.as_ref().map_or("?", |key| key.as_str())),
        Delta::Replaced(all) => {
            let version = all.mark.version.as_ref().map_or("-", ResourceVersion::as_str);
            let objects: Vec<String> = all.objects.iter().map(|thing| text(thing)).collect();
            format!("replaced {version}: {}", objects.join(" "))
        }
        Delta::Bookmark { version, .. } => format!("bookmark {version}"),
        Delta::Resync => "resync".to_owned(),
        Delta::Restarted { .. } => "restarted".to_owned(),
        Delta::ScopeChanged(change) => format!("scope change {}", change.number),
    }
}

/// Describes each delta of a batch in a few words.
pub(crate) fn describe_batch(batch: &Batch<Thing>) -> Vec<String> {
    match &batch.work {
        Work::Deltas(deltas) => deltas.iter().map(describe).collect(),
        Work::Object(_, deltas) => deltas.iter().map(describe_step).collect(),
        Work::Listed(ListMark { version, .. }) => {
            vec![format!("listed {}", version.as_ref().map_or("-", ResourceVersion::as_str))]
        }
        Work::Gone { key, .. } => vec![format!("gone {key}")],
        Work::Resynced => vec!["resync done".to_owned()],
    }
}

fn describe_step(delta: &KeyDelta<Thing>) -> String {
    let what = match delta {
        KeyDelta::Added(_) => "added",
        KeyDelta::Updated(_) => "updated",
        KeyDelta::Replaced(_) => "replaced",
        KeyDelta::Sync(_) => "sync",
        KeyDelta::Deleted(Deleted::Final(_)) => "deleted",
        KeyDelta::Deleted(Deleted::Unknown(_)) => "tombstone",
        KeyDelta::Deleted(Deleted::OutOfScope(_)) => "out of scope",
    };
    format!("{what} {}", text(delta.object()))
}

/// A reflector without an informer.
pub(crate) struct TestReflector {
    pub(crate) script: Script,
    notes: Notes,
    cancel: CancellationToken,
    task: JoinSet<()>,
    no_task_left: NoTaskLeft,
}

/// Returns the options that reflectors and informers of tests have by default.
pub(crate) fn options() -> InformerOptions {
    InformerOptions::new().seed(SEED)
}

impl TestReflector {
    pub(crate) fn start(script: Script) -> Self {
        Self::start_with(script, options())
    }

    pub(crate) fn start_with(script: Script, options: InformerOptions) -> Self {
        Self::start_cancelled_by(script, options, CancellationToken::new())
    }

    pub(crate) fn start_cancelled_by(script: Script, options: InformerOptions, cancel: CancellationToken) -> Self {
        let no_task_left = NoTaskLeft::since_now();
        let (notes, mut task) = (Notes::default(), JoinSet::new());
        task.spawn(Reflector::new(script.clone(), notes.clone(), &options).run(cancel.clone()));
        Self { script, notes, cancel, task, no_task_left }
    }

    /// Returns all requests, once there are at least `count`.
    pub(crate) async fn asks(&self, count: usize) -> Vec<String> {
        self.script.asks(count).await
    }

    /// Returns all pushed deltas, once there are at least `count`.
    pub(crate) async fn pushes(&self, count: usize) -> Vec<String> {
        self.notes_with(|noted| noted.pushed.len() >= count).await.pushed
    }

    /// Returns all reported failures, once there are at least `count`.
    pub(crate) async fn failures(&self, count: usize) -> Vec<ReflectorError> {
        self.notes_with(|noted| noted.failures.len() >= count).await.failures
    }

    pub(crate) fn noted(&self) -> Noted {
        self.notes.0.borrow().clone()
    }

    async fn notes_with(&self, condition: impl FnMut(&Noted) -> bool) -> Noted {
        let mut notes = self.notes.0.subscribe();
        let reached = tokio::time::timeout(PATIENCE, notes.wait_for(condition)).await.is_ok();
        assert!(reached, "no further call of the sink: {:?}, requests {:?}", self.noted(), self.script.asked());
        self.noted()
    }

    /// Cancels the reflector, waits for its end, and checks that no task or request is left.
    pub(crate) async fn stop(mut self) -> Noted {
        self.cancel.cancel();
        let ended = within("the end of the reflector", self.task.join_next()).await;
        ended.expect("it was started").expect("it did not panic");
        self.script.check_over();
        self.no_task_left.check();
        self.noted()
    }
}

/// The events that a handler received, in order. Clones share the record.
#[derive(Clone, Default)]
pub(crate) struct Told(Arc<watch::Sender<Vec<(String, String)>>>);

impl Told {
    /// Returns a handler that records the events that it receives.
    pub(crate) fn handler(&self) -> impl FnMut(Event<Thing>) + Send + 'static {
        let told = self.0.clone();
        move |event| told.send_modify(|told| told.push((event.key().to_string(), describe_event(&event))))
    }

    /// Returns the events of one object.
    pub(crate) fn of(&self, key: &str) -> Vec<String> {
        self.0.borrow().iter().filter(|(about, _)| about == key).map(|(_, what)| what.clone()).collect()
    }

    /// Returns all events in order, as in `web/a add 3`.
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.borrow().iter().map(|(key, what)| format!("{key} {what}")).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.borrow().len()
    }

    pub(crate) fn clear(&self) {
        self.0.send_modify(Vec::clear);
    }

    /// Waits until the handler has received `count` events.
    pub(crate) async fn reaches(&self, count: usize) {
        let mut told = self.0.subscribe();
        let reached = tokio::time::timeout(PATIENCE, told.wait_for(|told| told.len() >= count)).await.is_ok();
        assert!(reached, "received {:?} and no further event", self.all());
    }
}

fn describe_event(event: &Event<Thing>) -> String {
    let version = |thing: &Thing| thing.id().version.to_owned();
    match event {
        Event::Added { object, initial: true } => format!("initial add {}", version(object)),
        Event::Added { object, initial: false } => format!("add {}", version(object)),
        Event::Updated { old, new } => format!("update {} to {}", version(old), version(new)),
        Event::Resynced(object) => format!("resync {}", version(object)),
        Event::Deleted(gone) if gone.is_final() => format!("delete {}", version(gone.object())),
        Event::Deleted(gone) if gone.is_out_of_scope() => format!("delete {} (out of scope)", version(gone.object())),
        Event::Deleted(gone) => format!("delete {} (tombstone)", version(gone.object())),
    }
}

/// An informer with one handler that is added before the start.
pub(crate) struct TestInformer {
    pub(crate) informer: SharedInformer<Thing>,
    pub(crate) script: Script,
    pub(crate) told: Told,
    handle: HandlerHandle,
    errors: Arc<Mutex<Vec<InformerError>>>,
    no_task_left: NoTaskLeft,
}

impl TestInformer {
    pub(crate) fn start(script: Script) -> Self {
        Self::start_with(script, |options| options)
    }

    pub(crate) fn start_with(script: Script, configure: impl FnOnce(InformerOptions) -> InformerOptions) -> Self {
        Self::new(script, configure).started()
    }

    /// Starts an informer that transforms every object.
    pub(crate) fn start_transformed<E: fmt::Display>(
        script: Script,
        configure: impl FnOnce(InformerOptions) -> InformerOptions,
        transform: impl Fn(Thing) -> Result<Thing, E> + Send + Sync + 'static,
    ) -> Self {
        Self::build(script, configure(options()), |builder| builder.transform(transform)).started()
    }

    /// Creates an informer and does not start it.
    pub(crate) fn new(script: Script, configure: impl FnOnce(InformerOptions) -> InformerOptions) -> Self {
        Self::build(script, configure(options()), |builder| builder)
    }

    fn started(self) -> Self {
        self.informer.start().expect("there is a runtime");
        self
    }

    fn build(
        script: Script,
        options: InformerOptions,
        configure: impl FnOnce(InformerBuilder<Thing>) -> InformerBuilder<Thing>,
    ) -> Self {
        let no_task_left = NoTaskLeft::since_now();
        let builder = SharedInformer::builder(script.clone()).name("things").options(options);
        let informer = configure(builder).build();
        let errors = Arc::new(Mutex::new(Vec::new()));
        let hook = errors.clone();
        informer.on_error(move |error| hook.lock().push(error.clone()));
        let told = Told::default();
        let handle = informer.on_event(told.handler());
        Self { informer, script, told, handle, errors, no_task_left }
    }

    /// Returns the events of one object that the handler received.
    pub(crate) fn told(&self, key: &str) -> Vec<String> {
        self.told.of(key)
    }

    /// Returns the keys in the cache, sorted.
    pub(crate) fn keys(&self) -> Vec<String> {
        let mut keys: Vec<_> =
            self.informer.store().snapshot().iter().map(|thing| thing.id().key.to_string()).collect();
        keys.sort();
        keys
    }

    /// Returns the objects in the cache as texts, sorted.
    pub(crate) fn contents(&self) -> Vec<String> {
        let mut contents: Vec<_> = self.informer.store().snapshot().iter().map(text).collect();
        contents.sort();
        contents
    }

    /// Returns all reported errors.
    pub(crate) fn errors(&self) -> Vec<InformerError> {
        self.errors.lock().clone()
    }

    /// Returns the version of the store.
    pub(crate) fn version(&self) -> Option<String> {
        self.informer.store().version().map(|version| version.to_string())
    }

    /// Waits until the first list is applied and delivered.
    pub(crate) async fn synced(&self) {
        within("the informer to sync", self.informer.synced()).await.expect("it runs");
        assert!(within("the handler to sync", self.handle.synced()).await);
    }

    /// Waits until the store has reached a version and the handler has received every event up to it.
    pub(crate) async fn delivered_through(&self, version: &str) {
        let (wanted, store) = (ResourceVersion::from(version), self.informer.store());
        let reached = async {
            while !store.version().is_some_and(|version| version.is_at_least(&wanted)) {
                // A new wait begins before `wait_for_version` asks the source for its version. Incomparable versions
                // are polled.
                let wait = self.informer.wait_for_version(&wanted).into_future();
                if let Ok(Err(_)) = tokio::time::timeout(Duration::from_secs(5), wait).await {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        };
        let reached = tokio::time::timeout(PATIENCE, reached).await;
        assert!(reached.is_ok(), "version {version}; requests {:?}", self.script.asked());
        let mut told = self.told.0.subscribe();
        while self.handle.backlog() > 0 {
            // With several threads the handler may record the last call before the informer counts it as returned.
            let _ = tokio::time::timeout(Duration::from_millis(1), told.changed()).await;
        }
    }

    /// Stops the informer and checks that no task or request is left.
    pub(crate) async fn stop(self) {
        within("the informer to stop", self.informer.stop()).await;
        self.script.check_over();
        self.no_task_left.check();
    }
}
