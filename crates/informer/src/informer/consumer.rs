//! One state that is built from the events of several informers.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all, try_join_all};
use tokio::sync::{Mutex, MutexGuard};

use super::Registration;
use crate::object::Object;
use crate::processor::{
    AnyHandler, BatchReason, Event, HandlerHandle, RemoveError, RemoveMode, SharedHandler, Turn, new_caller,
};

/// Builds one state from the events of several informers, whose objects may have different types.
///
/// A program that computes something from several kinds, such as the routes of a mesh from services, endpoints and
/// policies, writes one function for each kind. The functions share the state, and are called one at a time.
///
/// ```
/// use std::collections::{BTreeMap, BTreeSet};
/// use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
/// use kube_informer::{BatchReason, Consumer, Event, Object};
/// # use kube_informer::SharedInformerFactory;
///
/// #[derive(Default)]
/// struct Settings {
///     namespaces: BTreeSet<String>,
///     maps: BTreeMap<String, usize>,
/// }
///
/// impl Settings {
///     fn maps(&mut self, events: &[Event<ConfigMap>], _: BatchReason) {
///         for event in events {
///             match event {
///                 Event::Deleted(gone) => _ = self.maps.remove(gone.key().as_str()),
///                 event => _ = self.maps.insert(event.key().to_string(), event.object().data.iter().flatten().count()),
///             }
///         }
///     }
/// }
///
/// # doc_server::with(async |server| {
/// # let factory = SharedInformerFactory::new(server.client());
/// let (maps, namespaces) = (factory.informer::<ConfigMap>()?, factory.informer::<Namespace>()?);
/// let consumer = Consumer::new(Settings::default())
///     .name("settings")
///     .on(&maps, Settings::maps)
///     .on(&namespaces, |settings, events, reason| {
///         settings.namespaces.extend(events.iter().map(|event| event.key().to_string()));
///         println!("{} namespaces changed ({reason:?})", events.len());
///     })
///     .on_synced(|settings| println!("{} namespaces, {} maps", settings.namespaces.len(), settings.maps.len()))
///     .start();
/// factory.start()?;
/// assert!(consumer.synced().await);
/// # Ok(()) });
/// ```
///
/// **Batches.** Each function receives batches, as with [`Registration::on_batch`]: a list is one batch, a resync is one
/// batch, and a live batch has all changes of its informer that wait. The [guarantees](crate::EventHandler) of handlers
/// hold for each informer. Between different informers there is no order.
///
/// **One call at a time.** The functions run on the runtime and must be brief. If several informers have events, they
/// take turns, so that none waits for ever because another one has many events. No lock of an informer is held
/// during a call. A function may read all stores, and these may be newer than the events.
///
/// **Synced.** [`Consumer::on_synced`] sets a function that is called once: when the state has received every object of
/// every first list.
///
/// **Panics.** A panic is caught, reported by the informer of the events, and counted. The batch counts as delivered. The
/// state stays as the panic left it.
#[must_use = "it does nothing until it is started"]
pub struct Consumer<S> {
    name: String,
    state: S,
    parts: Vec<AddPart<S>>,
    on_synced: Option<OnSynced<S>>,
}

/// Registers the function of one informer.
type AddPart<S> = Box<dyn FnOnce(&Arc<ConsumerShared<S>>, &str) -> HandlerHandle + Send>;
type OnSynced<S> = Box<dyn FnOnce(&mut S) + Send>;

impl<S: Send + 'static> Consumer<S> {
    /// Makes a consumer with a state. It follows no informer yet.
    #[track_caller]
    pub fn new(state: S) -> Self {
        let place = Location::caller();
        let name = format!("{}:{}", place.file(), place.line());
        Self { name, state, parts: Vec::new(), on_synced: None }
    }

    /// Sets the name in logs, messages and metrics: that of its handler in each informer. The default is the line of code
    /// that makes the consumer.
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Calls a function with the batches of an informer: `&informer`, or a
    /// [registration](crate::SharedInformer::register) with a delivery or a resync period of its own.
    pub fn on<'i, T, F>(mut self, informer: impl Into<Registration<'i, T>>, mut handler: F) -> Self
    where
        T: Object,
        F: FnMut(&mut S, &[Event<T>], BatchReason) + Send + 'static,
    {
        let register = informer.into().detached();
        let call = move |state: &mut S, events: Vec<Event<dyn Object>>, reason| {
            let events: Vec<Event<T>> = events.into_iter().map(Event::typed).collect();
            handler(state, &events, reason);
        };
        let add = move |shared: &Arc<ConsumerShared<S>>, name: &str| {
            register(name, AnyHandler::Shared(Box::new(ConsumerPart { shared: shared.clone(), call })))
        };
        self.parts.push(Box::new(add));
        self
    }

    /// Sets the function that is called once, when the state has received every object of every first list.
    pub fn on_synced(mut self, synced: impl FnOnce(&mut S) + Send + 'static) -> Self {
        self.on_synced = Some(Box::new(synced));
        self
    }

    /// Registers the functions with their informers.
    pub fn start(self) -> ConsumerHandle {
        let Self { name, state, parts, on_synced } = self;
        let state = Mutex::new(ConsumerState { state, unsynced: parts.len(), on_synced });
        let shared = Arc::new(ConsumerShared { group: new_caller(), state });
        let handles = parts.into_iter().map(|add| add(&shared, &name)).collect();
        ConsumerHandle { name, handles }
    }
}

/// The state of a consumer, and what its parts have in common.
struct ConsumerShared<S> {
    /// The number by which a part knows that it is called from inside another part.
    group: u64,
    /// Held during each call. It is a lock of tasks, not of threads: a part that waits for its turn blocks no thread.
    /// Those that wait get it in the order of their waits.
    state: Mutex<ConsumerState<S>>,
}

struct ConsumerState<S> {
    state: S,
    /// How many parts have not received all objects of the first list.
    unsynced: usize,
    on_synced: Option<OnSynced<S>>,
}

/// The handler of one informer.
struct ConsumerPart<S, F> {
    shared: Arc<ConsumerShared<S>>,
    call: F,
}

/// The turn of a part: the state, and the function of the part.
struct ConsumerTurn<'p, S, F> {
    state: MutexGuard<'p, ConsumerState<S>>,
    call: &'p mut F,
}

impl<S, F> SharedHandler for ConsumerPart<S, F>
where
    S: Send + 'static,
    F: FnMut(&mut S, Vec<Event<dyn Object>>, BatchReason) + Send,
{
    fn group(&self) -> u64 {
        self.shared.group
    }

    fn turn(&mut self) -> BoxFuture<'_, Box<dyn Turn + '_>> {
        let Self { shared, call } = self;
        async move {
            let turn: Box<dyn Turn + '_> = Box::new(ConsumerTurn { state: shared.state.lock().await, call });
            turn
        }
        .boxed()
    }
}

impl<S, F> Turn for ConsumerTurn<'_, S, F>
where
    S: Send,
    F: FnMut(&mut S, Vec<Event<dyn Object>>, BatchReason) + Send,
{
    fn deliver(&mut self, events: Vec<Event<dyn Object>>, reason: BatchReason) {
        (self.call)(&mut self.state.state, events, reason);
    }

    fn synced(&mut self) {
        let ConsumerState { state, unsynced, on_synced } = &mut *self.state;
        *unsynced = unsynced.saturating_sub(1);
        if *unsynced == 0
            && let Some(on_synced) = on_synced.take()
        {
            on_synced(state);
        }
    }
}

/// A consumer that was started. Dropping it leaves the consumer in place.
pub struct ConsumerHandle {
    name: String,
    handles: Vec<HandlerHandle>,
}

impl ConsumerHandle {
    /// Returns the name of the consumer.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its handler in each informer, in the order in which they were added.
    pub fn handlers(&self) -> &[HandlerHandle] {
        &self.handles
    }

    /// Returns true once the state has received every object of every first list. It stays true.
    pub fn is_synced(&self) -> bool {
        self.handles.iter().all(HandlerHandle::is_synced)
    }

    /// Waits until the state has received every object of every first list and the function of [`Consumer::on_synced`]
    /// has returned, and returns true; or false if an informer or the consumer ended before.
    ///
    /// # Cancel safety
    ///
    /// Waiting again is fine.
    pub async fn synced(&self) -> bool {
        // The first handler that ends ends the wait, even if another one never syncs.
        let waits = self.handles.iter().map(|handle| handle.synced().map(|synced| synced.then_some(()).ok_or(())));
        try_join_all(waits).await.is_ok()
    }

    /// Returns how many events wait to be delivered.
    pub fn backlog(&self) -> usize {
        self.handles.iter().map(HandlerHandle::backlog).sum()
    }

    /// Removes the consumer from all its informers. Waits until its last call has returned and the state is dropped.
    ///
    /// # Errors
    ///
    /// [`RemoveError::FromItself`] inside one of its own functions: it would wait for itself. The handle can still be
    /// used.
    ///
    /// # Cancel safety
    ///
    /// The first poll removes the consumer. Waiting again is fine.
    pub async fn remove(&self, mode: RemoveMode) -> Result<(), RemoveError> {
        join_all(self.handles.iter().map(|handle| handle.remove(mode))).await.into_iter().collect()
    }

    /// Returns its handler in each informer, in the order in which they were added: for example, to remove them with
    /// [`HandlerHandle::remove_on_drop`].
    pub fn into_handlers(self) -> Vec<HandlerHandle> {
        self.handles
    }
}

impl<S> fmt::Debug for Consumer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("name", &self.name).field("parts", &self.parts.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for ConsumerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsumerHandle").field("name", &self.name).field("handlers", &self.handles).finish()
    }
}
