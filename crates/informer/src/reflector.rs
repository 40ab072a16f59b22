//! The reflector: lists and watches one resource until it is cancelled.
//!
//! A *round* gets the initial state, by a streaming watch or by a paged list, and then watches until an error ends the
//! round. The error decides what comes next:
//!
//! | event | next step |
//! |---|---|
//! | the watch ends normally | the next watch, from the version that was reached |
//! | the connection breaks after 1 s or more, or the watch is silent | the next watch, after a check whether the API server was restored |
//! | the connection breaks at once, or no response arrives | the same after a delay, which ends early on recovery |
//! | the version has expired after a watch that worked | a new round, after a short random delay |
//! | the version has expired again, or the API server sends an error | a new round, after a delay |
//! | the API server was restored to an older state | a new round in a new epoch |
//! | the resource does not exist | a new round about every second, and after a minute every 30 s |
//! | the resource does not exist and is optional | a new round after its CRD changes, at the latest after 30 s |
//!
//! Cancelling a reflector drops its future, so every wait and every request ends at once.

mod absent;
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

use self::absent::Absence;
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

/// A watch that ends sooner counts as failed.
const VERY_SHORT: Duration = Duration::from_secs(1);
/// The shortest timeout that watches request.
pub(crate) const SHORTEST_WATCH: Duration = Duration::from_secs(300);
/// How much later than the timeout an API server may end a watch.
const GRACE: Duration = Duration::from_secs(30);
/// The delay before an inconclusive list is repeated. It doubles each time.
const RETRY_LIST: Duration = Duration::from_secs(30);
const RETRY_LIST_AT_MOST: Duration = Duration::from_secs(600);
/// After this many failures in a row to open a watch, the reflector lists instead.
const WATCH_FAILURES: u32 = 3;
pub(crate) const PROGRESS_DEADLINE: Duration = Duration::from_secs(30);

/// Lists and watches a source for ever, and passes the changes to a sink.
///
/// client-go's `Reflector`. The differences: it writes to a [`Sink`], it checks whether the API server was restored,
/// and it reports every failure as an error of its own kind.
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
    /// True once a list at any version came in pages: the API server then does not answer from memory.
    paginated: bool,
    reason: ListReason,
    /// The number of the last relist request that this round answers.
    request: u64,
    listed_at: Instant,
    /// How many lists in a row were inconclusive.
    inconclusive: u32,
    /// True if a watch has worked since a version last expired.
    worked: bool,
    /// How often in a row the API server refused to open a watch with an error, or ended a watch at once.
    watch_failures: u32,
    /// True if the API server was restored, and the sink has not received that yet.
    restart_pending: bool,
    /// True if the API server has refused to return its current version. The reflector does not ask again until a watch
    /// is opened.
    version_request_refused: bool,
    /// The outage in which this reflector waits.
    outage: Option<Outwaiting>,
    /// True while the API server answers that the resource does not exist.
    parked: bool,
    /// True if the API server need not serve the resource.
    optional: bool,
    /// Set while it does not.
    absent: Option<Absence>,
    rhythm: Rhythm,
    streaming: Streaming,
    backoff: Backoff,
}

/// The connections of a reflector to its informer and its client.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wiring {
    pub(crate) scope: Scope,
    /// The number of relist requests.
    pub(crate) relist_requests: Option<watch::Receiver<u64>>,
    /// Limits how many first lists run at once.
    pub(crate) first_lists: Option<Arc<Semaphore>>,
    /// The outages that the reflectors of one client share.
    pub(crate) recovery: Recovery,
}

/// What the reflector does after a watch.
enum AfterWatch {
    Watch,
    WaitThenWatch(ReflectorError),
    /// Starts a new round after this delay, which may be zero.
    Relist(Duration),
    WaitThenRelist(ReflectorError),
}

impl<T: Object, S: Sink<T>> Reflector<T, S> {
    /// Makes a reflector.
    pub fn new(source: impl ListWatch<T>, sink: S, options: &InformerOptions) -> Self {
        Self::over(feed(source, None, |object| object), sink, options)
    }
}

impl<T: Object + ?Sized, S: Sink<T>> Reflector<T, S> {
    /// Makes a reflector over a source without its type.
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
            restart_pending: false,
            version_request_refused: false,
            outage: None,
            parked: false,
            optional: options.optional.unwrap_or(false),
            absent: None,
            rhythm: Rhythm::default(),
            streaming,
            backoff: Backoff::new(options.backoff.clone().unwrap_or_default(), seed),
        }
    }

    pub(crate) fn wired(self, wiring: Wiring) -> Self {
        Self { wiring, ..self }
    }

    /// Lists and watches until cancelled.
    pub async fn run(mut self, cancel: CancellationToken) {
        let forever = async {
            loop {
                if let Err(error) = self.round().await {
                    self.after_failure(error).await;
                }
            }
        };
        cancel.run_until_cancelled(forever).await;
        self.sink.phase(Phase::Stopped);
    }

    /// Runs one round: gets the initial state, then watches until an error ends that.
    ///
    /// # Errors
    ///
    /// The error that ended the round, if the caller should wait before the next one. The sink's [`Sink::failed`] was
    /// called with it, unless an optional resource may be absent.
    ///
    /// # Cancel safety
    ///
    /// The next round starts from the beginning. Deltas that were pushed are not lost.
    pub async fn round(&mut self) -> Result<(), ReflectorError> {
        let turn = match &self.wiring.first_lists {
            Some(first_lists) if self.reason == ListReason::First => {
                self.sink.phase(Phase::Listing { received: 0, remaining: None });
                // A closed semaphore limits nothing.
                first_lists.clone().acquire_owned().await.ok()
            }
            _ => None,
        };
        // Pending deltas are applied first, so that the list is compared with a current store.
        self.sink.settled().await;
        self.push_restart().await;
        let request = self.wiring.relist_requests.as_mut().map_or(0, |requests| *requests.borrow_and_update());
        if request > self.request {
            // The caller of a relist wants the current state, and not an older one from the memory of an API server
            // that lags.
            self.place.give_up();
            self.request = request;
        }
        self.begin_list();
        let mut stream = self.initial_state().await?;
        drop(turn);
        self.reason = ListReason::Failed;
        let mut watched = false;
        loop {
            let next = match stream.take() {
                Some(events) => self.follow(events).await,
                // Without a version, changes between two watches would be missed.
                None if watched && self.place.version().is_none() => return Ok(()),
                None => self.watch().await,
            };
            watched = true;
            match next {
                AfterWatch::Watch => {
                    let version = self.place.version().map(tracing::field::display);
                    debug!(scope = self.scope(), resource_version = version, "watch ended; opening another one");
                }
                AfterWatch::WaitThenWatch(error) => {
                    self.report(&error);
                    if self.wait(&error).await == Waited::RelistRequested {
                        self.reason = ListReason::Requested;
                        return Ok(());
                    }
                }
                AfterWatch::Relist(delay) => {
                    if !delay.is_zero() {
                        let (until, why) = (after(Instant::now(), delay), "a relist follows".to_owned());
                        self.sink.phase(Phase::BackingOff { until, why });
                    }
                    self.pause(delay).await;
                    return Ok(());
                }
                AfterWatch::WaitThenRelist(error) => {
                    self.report(&error);
                    return Err(error);
                }
            }
        }
    }

    /// Reports that a list begins.
    fn begin_list(&mut self) {
        debug!(scope = self.scope(), reason = %self.reason.as_str(), "listing");
        self.sink.listing(self.reason);
    }

    /// Returns the namespace, for log lines; `None` for all.
    fn scope(&self) -> Option<&str> {
        self.wiring.scope.as_deref()
    }

    /// Returns the version of the last change that was passed to the sink.
    pub fn last_version(&self) -> Option<&ResourceVersion> {
        self.place.version()
    }

    /// Opens a watch from the current position, and follows it.
    async fn watch(&mut self) -> AfterWatch {
        if let Position::Doubtful(last) = self.place.clone() {
            if self.version_request_refused {
                self.place = Position::At(last);
                return self.open_and_follow().await;
            }
            match answered(self.progress_deadline, self.source.newest_version()).await {
                Ok(now) if self.place.is_contradicted_by(now.as_ref()) => {
                    self.restart().await;
                    return AfterWatch::Relist(Duration::ZERO);
                }
                Ok(_) => self.place = Position::At(last),
                // A user who may watch need not have the permission for this request. The watch itself succeeds or
                // fails.
                Err(error) if error.is_refusal() => {
                    self.version_request_refused = true;
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
                self.version_request_refused = false;
                self.succeeded(RequestKind::Watch);
                self.follow(events).await
            }
            Err(error) => self.not_answered(error),
        }
    }

    /// Decides what to do after a watch, or the version request before it, has failed.
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

    /// Counts a failure. Returns true to retry the watch, and false to list instead.
    fn fails_again(&mut self) -> bool {
        self.watch_failures += 1;
        self.watch_failures <= WATCH_FAILURES
    }

    /// Passes the events of a watch to the sink until the watch ends or fails, or a relist is due. Returns the next step.
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
            // The clock is read once per event: reading it costs as much as finding an object.
            let now = Instant::now();
            match event {
                Err(_) if now >= dead_at => {
                    break Err(ReflectorError::Silent { after: watch.silent_for() });
                }
                Err(_) => {} // Only the progress check below is due.
                Ok(None) => break Ok(()),
                Ok(Some(Err(error))) => break Err(ReflectorError::Stream(error)),
                Ok(Some(Ok(event))) if event.has_unknown_key() => break Err(ReflectorError::Unreadable),
                Ok(Some(Ok(event))) => {
                    let bytes = watch.bytes(&event);
                    self.sink.contact(bytes);
                    watch.record(&event, &mut self.rhythm, now);
                    // A watch that lasts for a second and sends an event ends an outage in which watches ended too soon.
                    if self.outage.is_some() && watch.began.elapsed() >= VERY_SHORT {
                        self.succeeded(RequestKind::Follow);
                    }
                    self.pass_on(event, bytes, watch.unordered).await;
                }
            }
            if now >= pace_due
                && let Err(stalled) = watch.pace.check_within(watch.events.meter(), watch.received)
            {
                break Err(ReflectorError::Stream(stalled));
            }
        };
        self.after(watch, ended)
    }

    /// Decides what to do after a watch has ended.
    fn after(&mut self, watch: OpenWatch<T>, ended: Result<(), ReflectorError>) -> AfterWatch {
        let OpenWatch { events, received, began, after_initial_state, .. } = watch;
        drop(events);
        let lasted = began.elapsed();
        // If a server sends one event and then an error, again and again, the reflector must not list without a delay.
        let worked = received > 0 && lasted >= VERY_SHORT;
        self.worked |= worked;
        if received > 0 || lasted >= VERY_SHORT {
            self.watch_failures = 0;
        }
        if received > 0 {
            self.backoff.healthy(lasted);
        }
        match ended {
            Ok(()) if worked => AfterWatch::Watch,
            // Events arrived, but if a server ends every watch at once, the reflector must not watch without a delay.
            Ok(()) if received > 0 || after_initial_state && lasted < VERY_SHORT => {
                AfterWatch::WaitThenWatch(ReflectorError::VeryShortWatch { lasted })
            }
            Ok(()) if lasted >= VERY_SHORT => {
                self.place.doubt();
                AfterWatch::Watch
            }
            // The version or the API server may be the cause. A list would show which, but costs far more than a watch.
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
                // A watch that worked for a while is opened again without a delay. So is a silent one, because the
                // reflector has already waited.
                if !worked && !matches!(error, ReflectorError::Silent { .. }) {
                    return AfterWatch::WaitThenWatch(error);
                }
                self.report(&error);
                AfterWatch::Watch
            }
            Err(error) => AfterWatch::WaitThenRelist(error),
        }
    }

    /// Decides what to do when a version has expired: lists again without a backoff if a watch has worked since the
    /// last time.
    fn expired(&mut self, error: SourceError) -> AfterWatch {
        let error = ReflectorError::Expired(error);
        self.reason = ListReason::Expired;
        self.place.give_up();
        if std::mem::take(&mut self.worked) {
            self.report(&error);
            AfterWatch::Relist(self.backoff.jitter())
        } else {
            AfterWatch::WaitThenRelist(error)
        }
    }

    /// Waits until a relist is requested or due.
    fn relist_wanted(&self) -> impl Future<Output = ()> + Send + use<T, S> {
        let requested = self.relist_requested();
        // After an inconclusive list, the reflector lists again soon: the missing objects may be readable then.
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

    /// Waits until the program requests a relist.
    fn relist_requested(&self) -> impl Future<Output = ()> + Send + use<T, S> {
        let (requests, handled) = (self.wiring.relist_requests.clone(), self.request);
        async move {
            let Some(mut requests) = requests else { return std::future::pending().await };
            if requests.wait_for(|request| *request > handled).await.is_err() {
                std::future::pending::<()>().await; // The sender is gone, so no request can follow.
            }
        }
    }

    /// Passes one event to the sink. If `unordered`, its version does not show that older changes are complete.
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

    /// Handles a restore of the API server: all known versions become invalid.
    async fn restart(&mut self) {
        warn!(scope = self.scope(), "server was restored to an older state; relisting");
        self.reason = ListReason::Restored;
        self.place = Position::Restored;
        self.restart_pending = true;
        self.push_restart().await;
    }

    /// Pushes [`Delta::Restarted`] to the sink, unless that was done. If a round is dropped meanwhile, the next round
    /// does it.
    async fn push_restart(&mut self) {
        if self.restart_pending {
            self.sink.settled().await;
            self.sink.push(Delta::Restarted { scope: self.wiring.scope.clone() }, 0).await;
            self.restart_pending = false;
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
        // Read before the request: the time that the API server needs to answer counts as part of the watch.
        let opened = Instant::now();
        let options = WatchOptions { version, initial_events, timeout: agreed };
        let events = answered(self.progress_deadline, self.source.watch(options)).await?;
        self.sink.contact(0);
        Ok(OpenWatch::new(events, opened, agreed, unordered, self.progress_deadline))
    }

    /// Reports an error to the sink, unless it may mean that an optional resource is absent: that is checked first.
    fn report(&mut self, error: &ReflectorError) {
        if !self.may_be_absent(error) {
            self.report_at_once(error);
        }
    }

    /// Reports an error to the sink. A missing resource is reported once.
    fn report_at_once(&mut self, error: &ReflectorError) {
        let missing = error.is_missing_resource();
        let parked = std::mem::replace(&mut self.parked, missing);
        if !(missing && parked) {
            self.sink.failed(error);
        }
    }

    /// Pushes a complete state to the sink.
    async fn replace(&mut self, replacement: Replacement<T>, bytes: u64) {
        self.place = match replacement.mark.version.clone() {
            Some(version) => Position::At(version),
            None => Position::Start,
        };
        self.listed_at = Instant::now();
        (self.parked, self.absent) = (false, None);
        self.watch_failures = 0;
        self.succeeded(RequestKind::List);
        self.inconclusive = if replacement.is_conclusive() { 0 } else { self.inconclusive + 1 };
        // For a source that does not count bytes, the sizes of the objects are a lower bound.
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
