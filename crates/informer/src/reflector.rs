//! Keeps one collection in step with the server: asks for everything, then follows the changes, for ever.
//!
//! A *round* gets the initial state, by a watch that starts with it or by a paged list, and then watches
//! until something ends it. What goes wrong decides what comes next:
//!
//! | what happens | then |
//! |---|---|
//! | the watch ends after a while | the next one, from where it ended |
//! | the connection is lost after a while | the next one, after asking whether the server still is the same |
//! | the connection is lost at once, or nobody answers, or the server is busy | the same, after a delay |
//! | the version has expired, or the server sends an error | a new round |
//! | the server was restored to an older state | a new round in a new epoch |
//!
//! Cancellation is dropping: every wait and every request ends at once.

mod backoff;
mod error;
mod initial;
mod open_watch;
mod options;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use self::backoff::Backoff;
pub use self::backoff::BackoffOptions;
pub use self::error::{IncompleteReason, ReflectorError};
use self::initial::Streaming;
use self::open_watch::OpenWatch;
pub use self::options::{ListReason, ReflectorOptions};
use crate::health::Phase;
use crate::object::{Object, ResourceVersion, version_of};
use crate::queue::{Delta, ListMark, Replacement};
use crate::source::{Decoded, ListOptions, ListWatch, SourceError, WatchEvent, WatchOptions};

/// Watches shorter than this, with nothing in them, are a server's way of saying no.
const VERY_SHORT: Duration = Duration::from_secs(1);
/// No watch is asked to end sooner: each one costs the server a connection.
const SHORTEST_WATCH: Duration = Duration::from_secs(300);
/// How much longer than agreed a watch may stay silent before it is taken for dead.
const GRACE: Duration = Duration::from_secs(30);
/// When to list again after one that could not be read in full: at first, and in the end.
const RETRY_LIST: Duration = Duration::from_secs(30);
const RETRY_LIST_AT_MOST: Duration = Duration::from_secs(600);

/// Where a reflector puts what it learns. Everything but [`Sink::push`] may be left out.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use kube_informer::queue::Delta;
/// use kube_informer::reflector::{ListReason, Reflector, ReflectorError, ReflectorOptions, Sink};
/// # use kube_informer::source::{Events, Identity, Items, ListOptions, ListWatchFns, SourceError, WatchOptions};
///
/// /// Keeps what is worth a line in a log.
/// #[derive(Clone, Default)]
/// struct Log(Arc<Mutex<Vec<String>>>);
///
/// impl Sink<Identity> for Log {
///     async fn push(&mut self, _: Delta<Identity>) {}
///     fn listing(&mut self, reason: ListReason) { self.0.lock().unwrap().push(format!("{} list", reason.as_str())) }
///     fn failed(&mut self, error: &ReflectorError) { self.0.lock().unwrap().push(error.to_string()) }
/// }
///
/// # let source = ListWatchFns::new(
/// #     |_: ListOptions| async { Err::<Items<Identity>, _>(SourceError::CutOff) },
/// #     |_: WatchOptions| async { Err::<Events<Identity>, _>(SourceError::CutOff) },
/// # );
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let log = Log::default();
/// let mut reflector = Reflector::new(source, log.clone(), ReflectorOptions::default());
/// reflector.round().await.unwrap_err();
/// assert_eq!(*log.0.lock().unwrap(), ["first list", "list failed: answer was cut off"]);
/// # });
/// ```
pub trait Sink<T>: Send + 'static {
    /// Takes the next change. May wait, to slow the reflector down.
    fn push(&mut self, delta: Delta<T>) -> impl Future<Output = ()> + Send;

    /// What the reflector is doing now.
    fn phase(&mut self, phase: Phase) {
        let _ = phase;
    }

    /// Something was heard from the server.
    fn contact(&mut self) {}

    /// Everything is being asked for, and why.
    fn listing(&mut self, reason: ListReason) {
        let _ = reason;
    }

    /// Something failed; the reflector goes on.
    fn failed(&mut self, error: &ReflectorError) {
        let _ = error;
    }
}

/// Keeps one sink in step with one collection. Usable by itself:
///
/// ```
/// use kube_informer::reflector::{Reflector, ReflectorOptions, Sink};
/// use kube_informer::queue::Delta;
/// # use k8s_openapi::api::core::v1::Pod;
/// use tokio::sync::mpsc;
/// # use tokio_util::sync::CancellationToken;
///
/// struct Sender(mpsc::UnboundedSender<Delta<Pod>>);
///
/// impl Sink<Pod> for Sender {
///     async fn push(&mut self, delta: Delta<Pod>) {
///         let _ = self.0.send(delta);
///     }
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let server = kube_embedded_apiserver::ApiServer::new();
/// let source = kube_informer::source::kube::KubeSource::<Pod>::new(server.client());
/// let (sender, mut deltas) = mpsc::unbounded_channel();
/// let reflector = Reflector::new(source, Sender(sender), ReflectorOptions::default());
/// let cancel = CancellationToken::new();
/// let read = async {
///     assert!(matches!(deltas.recv().await, Some(Delta::Replaced(list)) if list.objects.is_empty()));
///     server.create("pods", Some("web"), serde_json::json!({"metadata": {"name": "a"}})).unwrap();
///     assert!(matches!(deltas.recv().await, Some(Delta::Added(_))));
///     cancel.cancel();
/// };
/// tokio::join!(reflector.run(cancel.clone()), read);
/// # });
/// ```
#[derive(Debug)]
pub struct Reflector<T, L, S> {
    source: Arc<L>,
    sink: S,
    options: ReflectorOptions,
    /// The version after the last change that was passed on. It is ahead of the store.
    last_version: Option<ResourceVersion>,
    /// True if the server no longer, or not yet, knows `last_version`.
    version_unavailable: bool,
    /// True if the first list came in more than one page: this server does not answer lists from memory.
    paginated: bool,
    /// True if `last_version` may be of a server that was restored since.
    doubtful: bool,
    /// Why the next round begins.
    reason: ListReason,
    /// The last request for a relist that had been made when the round began.
    request: u64,
    /// When the last list was complete.
    listed_at: Instant,
    /// How many lists in a row held objects of which not even the key could be read.
    inconclusive: u32,
    /// True if a watch has worked since the last time a version expired.
    watch_worked: bool,
    streaming: Streaming,
    backoff: Backoff,
    objects: std::marker::PhantomData<fn() -> T>,
}

/// What to do once a watch is over.
enum Next {
    /// Open the next one at once.
    Watch,
    /// Wait, then open the next one.
    WaitThenWatch(ReflectorError),
    /// Start a new round at once.
    Relist,
    /// Wait, then start a new round.
    WaitThenRelist(ReflectorError),
}

impl<T, L, S> Reflector<T, L, S>
where
    T: Object,
    L: ListWatch<T>,
    S: Sink<T>,
{
    /// A reflector that has not asked for anything yet.
    ///
    /// ```
    /// # use kube_informer::source::{Events, Identity, Items, ListEnd, ListOptions, ListWatchFns, WatchOptions};
    /// # let source = ListWatchFns::new(
    /// #     |_: ListOptions| async {
    /// #         let thing = Identity { key: "web/a".parse().unwrap(), uid: String::new(), version: "7".to_owned() };
    /// #         Ok(Items::complete([thing], ListEnd { version: Some("7".into()), ..ListEnd::default() }))
    /// #     },
    /// #     |_: WatchOptions| async { Ok(Events::new(futures_util::stream::pending())) },
    /// # );
    /// use kube_informer::reflector::{Reflector, ReflectorOptions, Sink};
    /// # use kube_informer::queue::Delta;
    /// # struct Ignore;
    /// # impl Sink<Identity> for Ignore { async fn push(&mut self, _: Delta<Identity>) {} }
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    /// # runtime.unwrap().block_on(async {
    /// // Follows one namespace, and always lists.
    /// let options = ReflectorOptions { scope: Some("web".into()), streaming: false, ..ReflectorOptions::default() };
    /// let reflector = Reflector::new(source, Ignore, options);
    /// assert_eq!(reflector.last_version(), None);
    /// # });
    /// ```
    pub fn new(source: L, sink: S, options: ReflectorOptions) -> Self {
        let streaming = Streaming::new(options.streaming && source.supports_streaming_lists());
        Self {
            source: Arc::new(source),
            sink,
            backoff: Backoff::new(options.backoff.clone(), options.seed),
            options,
            last_version: None,
            version_unavailable: false,
            paginated: false,
            doubtful: false,
            reason: ListReason::First,
            request: 0,
            listed_at: Instant::now(),
            inconclusive: 0,
            watch_worked: false,
            streaming,
            objects: std::marker::PhantomData,
        }
    }

    /// Goes round until cancelled. Ends at once then, wherever it is.
    ///
    /// ```
    /// # use kube_informer::source::{Events, Identity, Items, ListEnd, ListOptions, ListWatchFns, WatchOptions};
    /// # let source = ListWatchFns::new(
    /// #     |_: ListOptions| async {
    /// #         let thing = Identity { key: "web/a".parse().unwrap(), uid: String::new(), version: "7".to_owned() };
    /// #         Ok(Items::complete([thing], ListEnd { version: Some("7".into()), ..ListEnd::default() }))
    /// #     },
    /// #     |_: WatchOptions| async { Ok(Events::new(futures_util::stream::pending())) },
    /// # );
    /// use kube_informer::CancellationToken;
    /// use kube_informer::reflector::{Reflector, ReflectorOptions, Sink};
    /// # use kube_informer::queue::Delta;
    ///
    /// /// Ends the reflector with the first list.
    /// struct Once(CancellationToken);
    ///
    /// impl Sink<Identity> for Once {
    ///     async fn push(&mut self, delta: Delta<Identity>) {
    ///         if let Delta::Replaced(list) = delta {
    ///             assert_eq!(list.objects.len(), 1);
    ///             self.0.cancel();
    ///         }
    ///     }
    /// }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let cancel = CancellationToken::new();
    /// Reflector::new(source, Once(cancel.clone()), ReflectorOptions::default()).run(cancel.clone()).await;
    /// assert!(cancel.is_cancelled());
    /// # });
    /// ```
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
    ///
    /// A server that ends every watch at once is to be left alone for a while:
    ///
    ///
    /// ```
    /// # use kube_informer::source::{Events, Identity, Items, ListEnd, ListOptions, ListWatchFns, WatchOptions};
    /// use kube_informer::reflector::{Reflector, ReflectorError, ReflectorOptions, Sink};
    /// # use kube_informer::queue::Delta;
    /// # struct Ignore;
    /// # impl Sink<Identity> for Ignore { async fn push(&mut self, _: Delta<Identity>) {} }
    /// let source = ListWatchFns::new(
    ///     |_: ListOptions| async {
    ///         let end = ListEnd { version: Some("7".into()), ..ListEnd::default() };
    ///         Ok(Items::complete([], end))
    ///     },
    ///     |_: WatchOptions| async { Ok(Events::new(futures_util::stream::empty())) },
    /// );
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    /// # runtime.unwrap().block_on(async {
    /// let mut reflector = Reflector::<Identity, _, _>::new(source, Ignore, ReflectorOptions::default());
    /// assert!(matches!(reflector.round().await, Err(ReflectorError::VeryShortWatch { .. })));
    /// assert_eq!(reflector.last_version(), Some(&"7".into()));
    /// # });
    /// ```
    pub async fn round(&mut self) -> Result<(), ReflectorError> {
        self.request = self.options.relist_requests.as_mut().map_or(0, |requests| *requests.borrow_and_update());
        self.sink.listing(self.reason);
        let turn = match &self.options.first_lists {
            // A semaphore that is closed holds nobody back.
            Some(first_lists) if self.reason == ListReason::First => first_lists.clone().acquire_owned().await.ok(),
            _ => None,
        };
        let mut stream = self.initial_state().await?;
        drop(turn);
        self.reason = ListReason::Failed;
        let mut watched = false;
        loop {
            let next = match stream.take() {
                Some(events) => self.follow(events).await,
                // Without a version there is no telling what was missed between two watches.
                None if watched && self.last_version.is_none() => return Ok(()),
                None => self.watch().await,
            };
            watched = true;
            match next {
                Next::Watch => {}
                Next::WaitThenWatch(error) => {
                    self.sink.failed(&error);
                    self.wait(&error).await;
                }
                Next::Relist => return Ok(()),
                Next::WaitThenRelist(error) => {
                    self.sink.failed(&error);
                    return Err(error);
                }
            }
        }
    }

    /// The version after the last change that was passed on.
    pub fn last_version(&self) -> Option<&ResourceVersion> {
        self.last_version.as_ref()
    }

    /// Opens a watch where the last one ended, and follows it.
    async fn watch(&mut self) -> Next {
        if self.doubtful {
            match self.is_restored().await {
                Ok(false) => self.doubtful = false,
                Ok(true) => {
                    self.restart().await;
                    return Next::Relist;
                }
                Err(error) if error.is_overload() || error.is_unreachable() || error.is_interruption() => {
                    return Next::WaitThenWatch(ReflectorError::Watch(error));
                }
                Err(error) => return Next::WaitThenRelist(ReflectorError::Watch(error)),
            }
        }
        match self.open(false).await {
            Ok(events) => self.follow(events).await,
            Err(error) if error.is_version_unavailable() => self.expired(error),
            Err(error) if error.is_overload() => Next::WaitThenWatch(ReflectorError::Watch(error)),
            Err(error) if error.is_unreachable() => {
                self.doubtful = true;
                Next::WaitThenWatch(ReflectorError::Watch(error))
            }
            Err(error) => Next::WaitThenRelist(ReflectorError::Watch(error)),
        }
    }

    /// Passes on what a watch sends, until it ends.
    async fn follow(&mut self, mut watch: OpenWatch<T>) -> Next {
        self.sink.phase(Phase::Watching);
        let mut relist = std::pin::pin!(self.relist_wanted());
        let ended = loop {
            let deadline = watch.deadline();
            let event = tokio::select! {
                biased;
                () = &mut relist => {
                    self.reason = ListReason::Requested;
                    return Next::Relist;
                }
                event = timeout(deadline, watch.events.next()) => event,
            };
            match event {
                Err(_) => break Err(ReflectorError::Silent { after: deadline }),
                Ok(None) => break Ok(()),
                Ok(Some(Err(error))) => break Err(ReflectorError::Stream(error)),
                Ok(Some(Ok(event))) if event.is_of_nobody_knows_what() => break Err(ReflectorError::Unreadable),
                Ok(Some(Ok(event))) => {
                    self.sink.contact();
                    self.backoff.healthy();
                    watch.heard(&event);
                    self.pass_on(event, watch.unordered).await;
                }
            }
        };
        let lasted = watch.opened.elapsed();
        drop(watch.events);
        // A server that sends one event and then an error, again and again, must not be listed without pause.
        self.watch_worked |= watch.heard > 0 && lasted >= VERY_SHORT;
        match ended {
            Ok(()) if watch.heard > 0 && lasted >= VERY_SHORT => Next::Watch,
            // Something came, but a server that ends every watch at once must not be asked without end.
            Ok(()) if watch.heard > 0 => Next::WaitThenWatch(ReflectorError::VeryShortWatch { lasted }),
            Ok(()) if lasted >= VERY_SHORT => {
                self.doubtful = true;
                Next::Watch
            }
            Ok(()) => Next::WaitThenRelist(ReflectorError::VeryShortWatch { lasted }),
            Err(ReflectorError::Stream(error)) if error.is_version_unavailable() => self.expired(error),
            Err(ReflectorError::Stream(error)) if error.is_overload() => {
                Next::WaitThenWatch(ReflectorError::Stream(error))
            }
            Err(error) if error.is_lost_connection() => {
                self.doubtful = true;
                // One that worked for a while has earned a new connection at once.
                if watch.heard == 0 || lasted < VERY_SHORT {
                    return Next::WaitThenWatch(error);
                }
                self.sink.failed(&error);
                Next::Watch
            }
            Err(error) => Next::WaitThenRelist(error),
        }
    }

    /// Waits until somebody asks for a relist, or it is time for one.
    fn relist_wanted(&self) -> impl Future<Output = ()> + Send + use<T, L, S> {
        let (requests, handled) = (self.options.relist_requests.clone(), self.request);
        // What a list did not tell is asked for again before long: the next one may be readable.
        let again =
            self.inconclusive.checked_sub(1).map(|times| (RETRY_LIST * (1 << times.min(5))).min(RETRY_LIST_AT_MOST));
        let period = self.options.relist_period.into_iter().chain(again).min();
        let due = period.map(|period| self.listed_at + period);
        async move {
            let requested = async {
                let Some(mut requests) = requests else { return std::future::pending().await };
                if requests.wait_for(|request| *request > handled).await.is_err() {
                    std::future::pending::<()>().await; // Nobody is left who could ask.
                }
            };
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

    /// The first time a version expires after a watch that worked, everything is asked for again at once.
    fn expired(&mut self, error: SourceError) -> Next {
        let error = ReflectorError::Expired(error);
        self.reason = ListReason::Expired;
        if std::mem::take(&mut self.watch_worked) {
            self.sink.failed(&error);
            Next::Relist
        } else {
            Next::WaitThenRelist(error)
        }
    }

    /// Passes one event on. If `unordered`, its version says nothing of what may still be missing.
    async fn pass_on(&mut self, event: WatchEvent<T>, unordered: bool) {
        let (version, delta) = match event {
            WatchEvent::Added(Decoded::Object(object)) => (version_of(&*object), Delta::Added(object)),
            WatchEvent::Modified(Decoded::Object(object)) => (version_of(&*object), Delta::Updated(object)),
            WatchEvent::Deleted(Decoded::Object(object)) => (version_of(&*object), Delta::Deleted(object)),
            WatchEvent::Deleted(Decoded::Bad(bad)) if bad.key.is_some() => {
                let version = bad.version;
                let Some(key) = bad.key else { return };
                (version.clone(), Delta::Vanished { key, version })
            }
            WatchEvent::Added(Decoded::Bad(bad))
            | WatchEvent::Modified(Decoded::Bad(bad))
            | WatchEvent::Deleted(Decoded::Bad(bad)) => (bad.version.clone(), Delta::Undecodable(bad)),
            WatchEvent::Bookmark { version, .. } => {
                let scope = self.options.scope.clone();
                (Some(version.clone()), Delta::Bookmark { scope, version })
            }
        };
        match version.filter(|version| !unordered && self.can_go_on_from(version)) {
            Some(version) => self.last_version = Some(version),
            None if matches!(delta, Delta::Bookmark { .. }) => return,
            None => debug!("event without a usable version"),
        }
        self.sink.push(delta).await;
    }

    /// False for a version that is missing, older than one already seen, or of another kind.
    fn can_go_on_from(&self, version: &ResourceVersion) -> bool {
        match &self.last_version {
            _ if version.as_str().is_empty() => false,
            None => true,
            Some(last) => version.is_at_least(last) || !last.is_number(),
        }
    }

    /// Asks which version the server is at: one below ours means that it was restored from an older state.
    async fn is_restored(&mut self) -> Result<bool, SourceError> {
        let Some(last) = self.last_version.clone() else { return Ok(false) };
        let options = ListOptions { limit: 1, ..ListOptions::default() };
        let end = self.list_page(options, |_| {}).await?;
        Ok(end.version.is_some_and(|now| now.is_older_than(&last)))
    }

    /// Nothing known of versions holds any longer.
    async fn restart(&mut self) {
        warn!(
            scope = self.options.scope.as_deref(),
            "server was restored to an older state; asking for everything again"
        );
        self.reason = ListReason::Restored;
        self.last_version = None;
        self.version_unavailable = false;
        self.doubtful = false;
        self.sink.push(Delta::Restarted { scope: self.options.scope.clone() }).await;
    }

    async fn open(&mut self, initial_events: bool) -> Result<OpenWatch<T>, SourceError> {
        let agreed = self.backoff.spread(self.options.watch_timeout.max(SHORTEST_WATCH));
        let version = match initial_events && self.version_unavailable {
            true => None,
            false => self.last_version.clone(),
        };
        let unordered = version.is_none() && !initial_events;
        // Taken before the request: what the server spends on it counts as part of the watch.
        let opened = Instant::now();
        let options = WatchOptions { version, initial_events, timeout: agreed };
        let events = timeout(self.options.progress_deadline + GRACE, self.source.watch(options))
            .await
            .map_err(|elapsed| SourceError::Unreachable(Arc::new(elapsed)))??;
        self.sink.contact();
        Ok(OpenWatch { events, opened, agreed, heard: 0, unordered, last_bookmark: None, rhythm: None })
    }

    async fn wait(&mut self, error: &ReflectorError) {
        let delay = self.backoff.next(error.retry_after());
        debug!(scope = self.options.scope.as_deref(), ?delay, %error, "waiting before the next attempt");
        self.sink.phase(Phase::BackingOff { until: Instant::now() + delay, why: error.to_string() });
        tokio::time::sleep(delay).await;
    }

    /// Hands over a complete state.
    async fn replace(&mut self, replacement: Replacement<T>) {
        let version = replacement.mark.version.clone();
        if version.as_ref().zip(self.last_version.as_ref()).is_some_and(|(new, last)| new.is_older_than(last)) {
            self.restart().await;
        }
        self.last_version = version;
        self.version_unavailable = false;
        self.doubtful = false;
        self.listed_at = Instant::now();
        self.inconclusive = if replacement.is_conclusive() { 0 } else { self.inconclusive + 1 };
        self.sink.push(Delta::Replaced(replacement)).await;
    }

    fn mark(&self, version: Option<ResourceVersion>) -> ListMark {
        ListMark { scope: self.options.scope.clone(), version, request: self.request, inconclusive: false }
    }
}
