//! Lists and watches one resource until it is cancelled.
//!
//! A *round* gets the initial state, by a watch that begins with it or by a paged list, and then watches until an error ends it. The error
//! decides what comes next:
//!
//! | what happens | then |
//! |---|---|
//! | the watch ends after a while | the next one, from where it ended |
//! | the connection is lost after a while | the next one, after asking whether the server still is the same |
//! | the connection is lost at once, or the server does not answer | the same, after a delay that ends when the server answers again |
//! | the version has expired after a watch that worked | a new round, after a moment |
//! | the version has expired again, or the server sends an error | a new round, after a delay |
//! | the server was restored to an older state | a new round in a new epoch |
//! | there is no such resource | a new round every second or so, and after a minute every 30 s |
//!
//! Cancellation is dropping: every wait and every request ends at once.

mod backoff;
mod error;
mod initial;
mod open_watch;
mod page;
mod phase;
mod position;
mod progress;
mod recovery;
mod sink;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use self::backoff::Backoff;
pub use self::error::{IncompleteReason, ReflectorError};
pub(crate) use self::initial::MOST_PAGES;
use self::initial::Streaming;
use self::open_watch::{OpenWatch, Rhythm};
pub(crate) use self::page::{answered, read_page};
pub use self::phase::{ListReason, Phase};
use self::position::Position;
pub(crate) use self::recovery::Recovery;
use self::recovery::{Outwaiting, RequestKind};
pub use self::sink::Sink;
use self::waiting::Waited;
use crate::object::{Object, ResourceVersion, Scope};
use crate::queue::{Delta, ListMark, Replacement};
use crate::settings::InformerOptions;
use crate::source::feed::{Feed, feed};
use crate::source::{Decoded, ListWatch, SourceError, WatchEvent, WatchOptions};
use crate::time::after;

/// A watch that ends sooner has not worked.
const VERY_SHORT: Duration = Duration::from_secs(1);
/// Watches are asked to last at least so long.
pub(crate) const SHORTEST_WATCH: Duration = Duration::from_secs(300);
/// What a server may be late by.
const GRACE: Duration = Duration::from_secs(30);
/// A list of which not everything could be read is asked for again after so long, and then twice that, and so on.
const RETRY_LIST: Duration = Duration::from_secs(30);
const RETRY_LIST_AT_MOST: Duration = Duration::from_secs(600);
/// A server that fails so often in a row on opening a watch is asked for everything instead.
const WATCH_FAILURES: u32 = 3;
pub(crate) const PROGRESS_DEADLINE: Duration = Duration::from_secs(30);

/// Lists and watches a source for ever, and passes on what it learns.
///
/// client-go's `Reflector`. What differs: it writes to a [`Sink`], asks whether a server was restored, and names everything
/// that goes wrong.
///
/// ```
/// use kube_informer::parts::Delta;
/// use kube_informer::parts::{Reflector, Sink};
/// use kube_informer::parts::KubeSource;
/// use kube_informer::{CancellationToken, InformerOptions};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// /// Ends the reflector with the first list.
/// struct Once(CancellationToken);
///
/// impl Sink<ConfigMap> for Once {
///     async fn push(&mut self, delta: Delta<ConfigMap>, _: u64) {
///         if let Delta::Replaced(list) = delta {
///             assert_eq!(list.objects.len(), 1);
///             self.0.cancel();
///         }
///     }
/// }
///
/// # doc_server::with(async |server| {
/// let (source, cancel) = (KubeSource::new(server.client()), CancellationToken::new());
/// Reflector::new(source, Once(cancel.clone()), &InformerOptions::new()).run(cancel).await;
/// # Ok(()) });
/// ```
pub struct Reflector<T: ?Sized, S> {
    source: Arc<dyn Feed<T>>,
    sink: S,
    wiring: Wiring,
    page_size: Option<usize>,
    watch_timeout: Duration,
    progress_deadline: Duration,
    relist_period: Option<Duration>,
    place: Position,
    /// True once a list at any version came in pages: the server does not answer from memory.
    paginated: bool,
    reason: ListReason,
    /// The last request for a relist that this round answers.
    request: u64,
    listed_at: Instant,
    /// How many lists in a row were inconclusive.
    inconclusive: u32,
    /// True if a watch has worked since the last time a version expired.
    worked: bool,
    /// How often in a row opening a watch ended with an error of the server, or a watch ended at once.
    watch_failures: u32,
    /// True if the server was restored, and the sink has yet to be told.
    restart_unsaid: bool,
    /// True if the server has refused to say which version it is at: it is not asked again until a watch is opened.
    question_refused: bool,
    /// The outage that this reflector waits out.
    outage: Option<Outwaiting>,
    /// True while the server says that there is no such resource.
    parked: bool,
    rhythm: Rhythm,
    streaming: Streaming,
    backoff: Backoff,
}

/// What a reflector of an informer has beside its settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wiring {
    pub(crate) scope: Scope,
    /// How often somebody asked for a relist.
    pub(crate) relist_requests: Option<watch::Receiver<u64>>,
    /// How many first lists may run at once.
    pub(crate) first_lists: Option<Arc<Semaphore>>,
    /// What the reflectors of one client know of its outages.
    pub(crate) recovery: Recovery,
}

/// What comes after a watch.
enum AfterWatch {
    Watch,
    WaitThenWatch(ReflectorError),
    /// A new round, after a moment if it says so.
    Relist(Duration),
    WaitThenRelist(ReflectorError),
}

impl<T: Object, S: Sink<T>> Reflector<T, S> {
    /// A reflector that has not begun.
    pub fn new(source: impl ListWatch<T>, sink: S, options: &InformerOptions) -> Self {
        Self::over(feed(source, None, |object| object), sink, options)
    }
}

impl<T: Object + ?Sized, S: Sink<T>> Reflector<T, S> {
    /// The same over a source whose type is forgotten.
    pub(crate) fn over(source: Arc<dyn Feed<T>>, sink: S, options: &InformerOptions) -> Self {
        let streaming = Streaming::new(options.streaming.unwrap_or(true) && source.supports_streaming_lists());
        let seed = options.seed.unwrap_or_else(rand::random);
        Self {
            source,
            sink,
            wiring: Wiring::default(),
            page_size: options.page_size,
            watch_timeout: options.watch_timeout.unwrap_or(SHORTEST_WATCH).max(SHORTEST_WATCH),
            progress_deadline: options.progress_deadline.unwrap_or(PROGRESS_DEADLINE),
            relist_period: options.relist_period.filter(|period| !period.is_zero()),
            place: Position::Start,
            paginated: false,
            reason: ListReason::First,
            request: 0,
            listed_at: Instant::now(),
            inconclusive: 0,
            worked: false,
            watch_failures: 0,
            restart_unsaid: false,
            question_refused: false,
            outage: None,
            parked: false,
            rhythm: Rhythm::default(),
            streaming,
            backoff: Backoff::new(options.backoff.clone().unwrap_or_default(), seed),
        }
    }

    pub(crate) fn wired(self, wiring: Wiring) -> Self {
        Self { wiring, ..self }
    }

    /// Asks and follows until cancelled.
    pub async fn run(mut self, cancel: CancellationToken) {
        let forever = async {
            loop {
                if let Err(error) = self.round().await {
                    self.wait(&error).await;
                }
            }
        };
        cancel.run_until_cancelled(forever).await;
        self.sink.phase(Phase::Stopped);
    }

    /// Gets the initial state, then watches until something ends that: one round.
    ///
    /// # Errors
    ///
    /// Why the round ended, if the next one had better wait. The sink's [`Sink::failed`] has been told.
    ///
    /// # Cancel safety
    ///
    /// The next round starts afresh; nothing that was pushed is lost.
    pub async fn round(&mut self) -> Result<(), ReflectorError> {
        let turn = match &self.wiring.first_lists {
            Some(first_lists) if self.reason == ListReason::First => {
                self.sink.phase(Phase::Listing { received: 0, remaining: None });
                // A semaphore that is closed holds nobody back.
                first_lists.clone().acquire_owned().await.ok()
            }
            _ => None,
        };
        // Pending deltas are applied first, so that the list is compared with a current store.
        self.sink.settled().await;
        self.say_restart().await;
        let request = self.wiring.relist_requests.as_mut().map_or(0, |requests| *requests.borrow_and_update());
        if request > self.request {
            // Who asks wants to know how it is now, and not how a server that is behind remembers it.
            self.place.give_up();
            self.request = request;
        }
        self.sink.listing(self.reason);
        let mut stream = self.initial_state().await?;
        drop(turn);
        self.reason = ListReason::Failed;
        let mut watched = false;
        loop {
            let next = match stream.take() {
                Some(events) => self.follow(events).await,
                // Without a version there is no telling what was missed between two watches.
                None if watched && self.place.version().is_none() => return Ok(()),
                None => self.watch().await,
            };
            watched = true;
            match next {
                AfterWatch::Watch => {}
                AfterWatch::WaitThenWatch(error) => {
                    self.report(&error);
                    if self.wait(&error).await == Waited::RelistRequested {
                        self.reason = ListReason::Requested;
                        return Ok(());
                    }
                }
                AfterWatch::Relist(moment) => {
                    if !moment.is_zero() {
                        let (until, why) = (after(Instant::now(), moment), "everything is asked for again".to_owned());
                        self.sink.phase(Phase::BackingOff { until, why });
                    }
                    self.pause(moment).await;
                    return Ok(());
                }
                AfterWatch::WaitThenRelist(error) => {
                    self.report(&error);
                    return Err(error);
                }
            }
        }
    }

    /// The version after the last change that was passed on.
    pub fn last_version(&self) -> Option<&ResourceVersion> {
        self.place.version()
    }

    /// Opens a watch where the last one ended, and follows it.
    async fn watch(&mut self) -> AfterWatch {
        if let Position::Doubtful(last) = self.place.clone() {
            if self.question_refused {
                self.place = Position::At(last);
                return self.open_and_follow().await;
            }
            match answered(self.progress_deadline, self.source.newest_version()).await {
                Ok(now) if self.place.is_contradicted_by(now.as_ref()) => {
                    self.restart().await;
                    return AfterWatch::Relist(Duration::ZERO);
                }
                Ok(_) => self.place = Position::At(last),
                // A user who may watch need not be allowed to ask this. The watch itself is answered or refused.
                Err(error) if error.is_refusal() => {
                    self.question_refused = true;
                    self.place = Position::At(last);
                }
                Err(error) => return self.not_answered(error),
            }
        }
        self.open_and_follow().await
    }

    async fn open_and_follow(&mut self) -> AfterWatch {
        match self.open(false).await {
            Ok(events) => {
                self.question_refused = false;
                self.succeeded(RequestKind::Watch);
                self.follow(events).await
            }
            Err(error) => self.not_answered(error),
        }
    }

    /// A watch, or the question that comes before it, was not answered.
    fn not_answered(&mut self, error: SourceError) -> AfterWatch {
        if error.is_version_unavailable() {
            return self.expired(error);
        }
        let same_again = if error.has_code(&[500]) {
            self.fails_again()
        } else {
            error.is_unavailable() || error.is_unreachable() || error.is_interruption() || error.has_code(&[401, 403])
        };
        let error = ReflectorError::Watch(error);
        if !same_again {
            self.watch_failures = 0;
            return AfterWatch::WaitThenRelist(error);
        }
        self.place.doubt();
        AfterWatch::WaitThenWatch(error)
    }

    /// Counts a failure. Returns true as long as a watch is to be tried again, and false when it is time for a list.
    fn fails_again(&mut self) -> bool {
        self.watch_failures += 1;
        self.watch_failures <= WATCH_FAILURES
    }

    /// Passes on what a watch sends, until it ends.
    async fn follow(&mut self, mut watch: OpenWatch<T>) -> AfterWatch {
        self.sink.phase(Phase::Watching);
        let mut relist = std::pin::pin!(self.relist_wanted());
        let ended = loop {
            let (dead_at, pace_due) = (watch.dead_at(self.rhythm), watch.pace.due());
            let event = tokio::select! {
                biased;
                () = &mut relist => {
                    self.reason = ListReason::Requested;
                    return AfterWatch::Relist(Duration::ZERO);
                }
                event = timeout_at(dead_at.min(pace_due), watch.next()) => event,
            };
            // Read once per event: reading the clock costs as much as finding an object.
            let now = Instant::now();
            match event {
                Err(_) if now >= dead_at => {
                    break Err(ReflectorError::Silent { after: watch.silent_for() });
                }
                Err(_) => {}
                Ok(None) => break Ok(()),
                Ok(Some(Err(error))) => break Err(ReflectorError::Stream(error)),
                Ok(Some(Ok(event))) if event.is_of_nobody_knows_what() => break Err(ReflectorError::Unreadable),
                Ok(Some(Ok(event))) => {
                    let bytes = watch.bytes(&event);
                    self.sink.contact(bytes);
                    watch.hear(&event, &mut self.rhythm, now);
                    if self.outage.is_some() && watch.began.elapsed() >= VERY_SHORT {
                        self.succeeded(RequestKind::Follow);
                    }
                    self.pass_on(event, bytes, watch.unordered).await;
                }
            }
            if now >= pace_due
                && let Err(stalled) = watch.pace.check_within(watch.events.meter(), watch.heard)
            {
                break Err(ReflectorError::Stream(stalled));
            }
        };
        self.after(watch, ended)
    }

    /// What to do after a watch that ended so.
    fn after(&mut self, watch: OpenWatch<T>, ended: Result<(), ReflectorError>) -> AfterWatch {
        let OpenWatch { events, heard, began, after_initial_state, .. } = watch;
        drop(events);
        let lasted = began.elapsed();
        // A server that sends one event and then an error, again and again, must not be listed without pause.
        let worked = heard > 0 && lasted >= VERY_SHORT;
        self.worked |= worked;
        if heard > 0 || lasted >= VERY_SHORT {
            self.watch_failures = 0;
        }
        if heard > 0 {
            self.backoff.healthy(lasted);
        }
        match ended {
            Ok(()) if worked => AfterWatch::Watch,
            // Something came, but a server that ends every watch at once must not be asked without end.
            Ok(()) if heard > 0 || after_initial_state && lasted < VERY_SHORT => {
                AfterWatch::WaitThenWatch(ReflectorError::VeryShortWatch { lasted })
            }
            Ok(()) if lasted >= VERY_SHORT => {
                self.place.doubt();
                AfterWatch::Watch
            }
            // The version may be at fault, or the server: a list tells, but costs far more than a watch.
            Ok(()) => {
                let error = ReflectorError::VeryShortWatch { lasted };
                match self.fails_again() {
                    true => AfterWatch::WaitThenWatch(error),
                    false => AfterWatch::WaitThenRelist(error),
                }
            }
            Err(ReflectorError::Stream(error)) if error.is_version_unavailable() => self.expired(error),
            Err(ReflectorError::Stream(error)) if error.is_overload() => {
                AfterWatch::WaitThenWatch(ReflectorError::Stream(error))
            }
            Err(error) if error.is_lost_connection() => {
                self.place.doubt();
                // One that worked for a while has earned a new connection at once, and so has who waited long enough.
                if !worked && !matches!(error, ReflectorError::Silent { .. }) {
                    return AfterWatch::WaitThenWatch(error);
                }
                self.report(&error);
                AfterWatch::Watch
            }
            Err(error) => AfterWatch::WaitThenRelist(error),
        }
    }

    /// The first time a version expires after a watch that worked, everything is asked for again after a moment.
    fn expired(&mut self, error: SourceError) -> AfterWatch {
        let error = ReflectorError::Expired(error);
        self.reason = ListReason::Expired;
        self.place.give_up();
        if std::mem::take(&mut self.worked) {
            self.report(&error);
            AfterWatch::Relist(self.backoff.moment())
        } else {
            AfterWatch::WaitThenRelist(error)
        }
    }

    /// Waits until somebody asks for a relist, or it is time for one.
    fn relist_wanted(&self) -> impl Future<Output = ()> + Send + use<T, S> {
        let requested = self.relist_requested();
        // What a list did not tell is asked for again before long: the next one may be readable.
        let again =
            self.inconclusive.checked_sub(1).map(|times| (RETRY_LIST * (1 << times.min(5))).min(RETRY_LIST_AT_MOST));
        let period = self.relist_period.into_iter().chain(again).min();
        let due = period.map(|period| after(self.listed_at, period));
        async move {
            let due = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = requested => {}
                () = due => {}
            }
        }
    }

    /// Waits until somebody asks for a relist.
    fn relist_requested(&self) -> impl Future<Output = ()> + Send + use<T, S> {
        let (requests, handled) = (self.wiring.relist_requests.clone(), self.request);
        async move {
            let Some(mut requests) = requests else { return std::future::pending().await };
            if requests.wait_for(|request| *request > handled).await.is_err() {
                std::future::pending::<()>().await; // Nobody is left who could ask.
            }
        }
    }

    /// Passes one event on. If `unordered`, its version says nothing of what may still be missing.
    async fn pass_on(&mut self, event: WatchEvent<Arc<T>>, bytes: u64, unordered: bool) {
        let (version, delta) = match event {
            WatchEvent::Added(Decoded::Object(object)) => (object.id().known_version(), Delta::Added(object)),
            WatchEvent::Modified(Decoded::Object(object)) => (object.id().known_version(), Delta::Updated(object)),
            WatchEvent::Deleted(Decoded::Object(object)) => (object.id().known_version(), Delta::Deleted(object)),
            WatchEvent::Deleted(Decoded::Bad(bad)) if bad.key.is_some() => {
                let version = bad.version;
                let Some(key) = bad.key else { return };
                (version.clone(), Delta::Vanished { key, version })
            }
            WatchEvent::Added(Decoded::Bad(bad))
            | WatchEvent::Modified(Decoded::Bad(bad))
            | WatchEvent::Deleted(Decoded::Bad(bad)) => (bad.version.clone(), Delta::Undecodable(bad)),
            WatchEvent::Bookmark { version, .. } => {
                let scope = self.wiring.scope.clone();
                (Some(version.clone()), Delta::Bookmark { scope, version })
            }
        };
        match version.filter(|version| !unordered && self.place.can_reach(version)) {
            Some(version) => self.place = Position::At(version),
            None if matches!(delta, Delta::Bookmark { .. }) => return,
            None => debug!("event without a usable version"),
        }
        self.sink.push(delta, bytes).await;
    }

    /// Nothing known of versions holds any longer.
    async fn restart(&mut self) {
        let scope = self.wiring.scope.clone();
        warn!(scope = scope.as_deref(), "server was restored to an older state; asking for everything again");
        self.reason = ListReason::Restored;
        self.place = Position::Restored;
        self.restart_unsaid = true;
        self.say_restart().await;
    }

    /// Passes on that versions start afresh, unless that has been done. A round that is dropped meanwhile leaves it to the next one.
    async fn say_restart(&mut self) {
        if self.restart_unsaid {
            self.sink.settled().await;
            self.sink.push(Delta::Restarted { scope: self.wiring.scope.clone() }, 0).await;
            self.restart_unsaid = false;
            self.sink.settled().await;
        }
    }

    async fn open(&mut self, initial_events: bool) -> Result<OpenWatch<T>, SourceError> {
        let agreed = self.backoff.spread(self.watch_timeout);
        let version = match (&self.place, initial_events) {
            (Position::Unavailable(_), true) => None,
            (place, _) => place.version().cloned(),
        };
        let unordered = version.is_none() && !initial_events;
        // Taken before the request: what the server spends on it counts as part of the watch.
        let opened = Instant::now();
        let options = WatchOptions { version, initial_events, timeout: agreed };
        let events = answered(self.progress_deadline, self.source.watch(options)).await?;
        self.sink.contact(0);
        Ok(OpenWatch::new(events, opened, agreed, unordered, self.progress_deadline))
    }

    /// Reports an error to the sink. A missing resource is reported once.
    fn report(&mut self, error: &ReflectorError) {
        let missing = error.is_missing_resource();
        let parked = std::mem::replace(&mut self.parked, missing);
        if !(missing && parked) {
            self.sink.failed(error);
        }
    }

    /// Hands over a complete state.
    async fn replace(&mut self, replacement: Replacement<T>, bytes: u64) {
        self.place = match replacement.mark.version.clone() {
            Some(version) => Position::At(version),
            None => Position::Start,
        };
        self.listed_at = Instant::now();
        self.parked = false;
        self.watch_failures = 0;
        self.succeeded(RequestKind::List);
        self.inconclusive = if replacement.is_conclusive() { 0 } else { self.inconclusive + 1 };
        // A source that does not count sends at least what its objects take.
        let sizes = || replacement.objects.iter().map(|object| size_of_val(&**object) as u64).sum();
        let bytes = if bytes == 0 { sizes() } else { bytes };
        self.sink.push(Delta::Replaced(replacement), bytes).await;
    }

    fn mark(&self, version: Option<ResourceVersion>) -> ListMark {
        ListMark { scope: self.wiring.scope.clone(), version, request: self.request, ..ListMark::default() }
    }
}

impl<T: ?Sized, S: std::fmt::Debug> std::fmt::Debug for Reflector<T, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reflector").field("sink", &self.sink).field("place", &self.place).finish_non_exhaustive()
    }
}
