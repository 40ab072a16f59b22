//! The factory: makes informers, and shares them between equal requests.

mod builder;
mod client;
mod idle;
mod request;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::FixedState;
use futures_util::future::{join_all, try_join_all};
use kube_client::Client;
use kube_core::metadata::PartialObjectMeta;
use kube_core::{ApiResource, DynamicObject, Resource};
use tokio::sync::Semaphore;

pub use self::builder::FactoryBuilder;
pub use self::client::{client, client_from};
use self::idle::LastUse;
pub use self::request::InformerRequest;
use crate::informer::{
    AnyInformer, Ended, Held, InformerBuilder, SharedInformer, StartError, StillRunning, Wait, WaitError,
};
use crate::lock::Mutex;
use crate::object::ResourceType;
use crate::reflector::Recovery;
use crate::representation::{Decode, StaticResource};
use crate::settings::{InformerOptions, Selection};
use crate::source::kube::KubeSource;

/// Makes informers and shares them: an equal request returns the same informer.
///
/// Two requests are equal if resource, representation, selection and the name of the transform are equal. A clone is
/// another handle to the factory. Informers run as long as a handle to the factory or to the informer itself exists.
///
/// client-go's `SharedInformerFactory`, together with its dynamic and its metadata factory. The differences: an
/// informer that is requested after the start is started at once, one kind can have several informers with different
/// selections, and one informer can be stopped alone.
///
/// ```
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::SharedInformerFactory;
/// # doc_server::with(async |server| {
/// let factory = SharedInformerFactory::new(server.client());
/// let maps = factory.informer::<ConfigMap>()?;
/// factory.start()?;
/// factory.synced().within(Duration::from_secs(30)).await?;
/// assert!(maps.lister().namespace("web").get("a").is_some());
/// factory.stop().await;
/// # Ok(()) });
/// ```
#[derive(Clone)]
pub struct SharedInformerFactory {
    shared: Arc<FactoryShared>,
}

struct FactoryShared {
    client: Client,
    name: Option<String>,
    selection: Selection,
    options: InformerOptions,
    /// The defaults for each type that has some: an `InformerRequest`.
    by_type: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
    first_lists: Arc<Semaphore>,
    /// After this time without use an informer is stopped.
    idle_time: Option<Duration>,
    /// All informers of a factory share a client, and therefore its outages.
    recovery: Recovery,
    state: Mutex<FactoryState>,
}

#[derive(Default)]
struct FactoryState {
    started: bool,
    informers: HashMap<InformerKey, KnownInformer>,
    /// Informers that stopped by themselves, until they are requested again. They stay listed so that health checks
    /// fail. They hold no objects.
    ended: HashMap<InformerKey, AnyInformer>,
}

impl FactoryState {
    /// Returns the running informer of a key, unless its namespaces have changed.
    fn shareable(&mut self, key: &InformerKey) -> Option<&mut KnownInformer> {
        if let Some(changed) = self.informers.get(key).filter(|known| known.informer.has_changed_scope()) {
            let own = InformerKey { changed: Some(changed.informer.number()), ..key.clone() };
            let known = self.informers.remove(key)?;
            self.informers.insert(own, known);
        }
        self.informers.get_mut(key).filter(|known| !known.informer.is_stopped())
    }
}

struct KnownInformer {
    options: InformerOptions,
    name: Option<String>,
    informer: Held,
    last_use: LastUse,
}

/// The parts of a request that identify its informer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct InformerKey {
    resource: ResourceType,
    representation: TypeId,
    metadata_only: bool,
    selection: Selection,
    transform: Option<String>,
    /// The number of an informer whose namespaces have changed since: no later request shares it.
    changed: Option<u64>,
}

impl InformerKey {
    /// Derives the seed of an informer from that of the factory, so that no two informers draw the same numbers and
    /// retry at the same instants. It does not depend on the order in which informers are requested.
    fn derive_seed(&self, seed: u64, representation: &str) -> u64 {
        let Self { resource, representation: _, metadata_only, selection, transform, changed: _ } = self;
        FixedState::with_seed(seed).hash_one((resource, representation, metadata_only, selection, transform))
    }
}

/// Why a factory did not return an informer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FactoryError {
    /// The factory is started, and the new informer has no runtime to start on.
    #[error(transparent)]
    Start(#[from] StartError),
    /// An informer for this request exists already, and has other options.
    #[error("informer {0} exists with other options; ask with the same ones, or give it another selection")]
    ConflictingOptions(String),
}

impl SharedInformerFactory {
    /// Makes a factory for all namespaces.
    ///
    /// The client may retry some failures itself, and hide them for minutes. [`client()`] makes a client that does not.
    pub fn new(client: Client) -> Self {
        Self::builder(client).build()
    }

    /// Configures a factory.
    pub fn builder(client: Client) -> FactoryBuilder {
        FactoryBuilder::new(client)
    }

    /// Returns the informer of a kind: `informer::<Pod>()`.
    ///
    /// # Errors
    ///
    /// [`FactoryError::ConflictingOptions`] if it was requested with other options before; [`FactoryError::Start`] if
    /// the factory is started and there is no runtime.
    pub fn informer<T: StaticResource>(&self) -> Result<SharedInformer<T>, FactoryError> {
        self.informer_with(InformerRequest::new())
    }

    /// Returns the informer of a kind, with its own selection, options or transform.
    ///
    /// # Errors
    ///
    /// The same as [`SharedInformerFactory::informer`].
    pub fn informer_with<T: StaticResource>(
        &self,
        request: InformerRequest<T>,
    ) -> Result<SharedInformer<T>, FactoryError> {
        self.get(T::resource_type(), request, false)
    }

    /// Returns the informer of a collection that is known only at run time.
    ///
    /// # Errors
    ///
    /// The same as [`SharedInformerFactory::informer`].
    pub fn dynamic(&self, resource: ApiResource) -> Result<SharedInformer<DynamicObject>, FactoryError> {
        self.dynamic_with(resource, InformerRequest::new())
    }

    /// Returns the informer of such a collection for a request, in any representation that can be decoded from JSON.
    ///
    /// # Errors
    ///
    /// The same as [`SharedInformerFactory::informer`].
    pub fn dynamic_with<T: Decode>(
        &self,
        resource: impl Into<ResourceType>,
        request: InformerRequest<T>,
    ) -> Result<SharedInformer<T>, FactoryError> {
        self.get(resource.into(), request, false)
    }

    /// Returns the informer of a kind that requests and keeps only metadata.
    ///
    /// # Errors
    ///
    /// The same as [`SharedInformerFactory::informer`].
    pub fn metadata<K>(
        &self,
        request: InformerRequest<PartialObjectMeta<K>>,
    ) -> Result<SharedInformer<PartialObjectMeta<K>>, FactoryError>
    where
        K: StaticResource + Resource<DynamicType = ()>,
        PartialObjectMeta<K>: Decode,
    {
        self.get(K::resource_type(), request, true)
    }

    fn get<T: Decode>(
        &self,
        resource: ResourceType,
        request: InformerRequest<T>,
        metadata_only: bool,
    ) -> Result<SharedInformer<T>, FactoryError> {
        let own_seed = request.options.seed;
        let of_type = self.shared.by_type.get(&TypeId::of::<T>()).and_then(|defaults| defaults.downcast_ref());
        let request = if let Some(of_type) = of_type { request.or(of_type) } else { request };
        let InformerRequest { selection, options, transform, name } = request;
        let mut selection = selection.or(&self.shared.selection);
        if !resource.namespaced {
            selection.namespaces = None;
        }
        let options = options.or(&self.shared.options);
        let transform_name = transform.as_ref().map(|(name, _)| name.clone());
        let representation = TypeId::of::<T>();
        let key = InformerKey {
            resource,
            representation,
            metadata_only,
            selection,
            transform: transform_name,
            changed: None,
        };
        let known = |state: &mut FactoryState| match state.shareable(&key) {
            None => Ok(None),
            // The key contains the representation, so the informer has objects of this type.
            Some(known) if known.options == options && (name.is_none() || known.name == name) => {
                known.last_use.requested();
                Ok(Some(SharedInformer::of(known.informer.clone())))
            }
            Some(known) => Err(FactoryError::ConflictingOptions(known.informer.name().to_owned())),
        };
        if let Some(informer) = known(&mut self.shared.state.lock())? {
            return Ok(informer);
        }
        let seed = own_seed.or_else(|| options.seed.map(|seed| key.derive_seed(seed, std::any::type_name::<T>())));
        // Outside the lock: a decoder is user code.
        let decoder = Arc::new(T::decoder(&key.resource));
        let source = {
            let (client, decoder, options, key) =
                (self.shared.client.clone(), decoder.clone(), options.clone(), key.clone());
            move |namespace: Option<&str>| {
                KubeSource::with_decoder(client.clone(), key.resource.clone(), decoder.clone())
                    .in_namespace(key.selection.clone(), namespace)
                    .options(&options)
                    .restricted(metadata_only)
            }
        };
        let builder = match key.selection.namespaces.clone().filter(|namespaces| !namespaces.is_empty()) {
            None => SharedInformer::builder(source(None)),
            Some(namespaces) => InformerBuilder::in_namespaces(namespaces, move |namespace| source(Some(namespace))),
        };
        let informer = builder
            .name(self.informer_name(&key.resource, name.as_deref()))
            .resource(key.resource.clone())
            .selection(key.selection.clone())
            .options(InformerOptions { seed, ..options.clone() })
            .boxed_transform(transform.map(|(_, transform)| transform))
            .first_lists(self.shared.first_lists.clone())
            .recovery(self.shared.recovery.clone())
            .figures(move || T::figures(&decoder))
            .memory_factor(T::MEMORY_PER_WIRE_BYTE)
            .build();
        let mut state = self.shared.state.lock();
        // Another task may have made the same informer meanwhile.
        if let Some(informer) = known(&mut state)? {
            return Ok(informer);
        }
        let (factory, number) = (Arc::downgrade(&self.shared), informer.held().number());
        informer.held().on_stop(move |how| {
            let Some(factory) = factory.upgrade() else { return };
            let mut state = factory.state.lock();
            // Not by its key, which changes with its namespaces.
            let stopped: Vec<_> = state.informers.extract_if(|_, known| known.informer.number() == number).collect();
            if how == Ended::ByItself {
                let ended = stopped.iter().map(|(key, known)| (key.clone(), AnyInformer::new(&known.informer)));
                state.ended.extend(ended);
            }
            drop(state);
            drop(stopped); // Outside the lock: it may be the last handle.
        });
        self.shared.stop_if_idle(informer.held());
        state.ended.remove(&key);
        let (started, held) = (state.started, informer.held().clone());
        state
            .informers
            .insert(key.clone(), KnownInformer { options, name, informer: held, last_use: LastUse::default() });
        drop(state);
        if started && let Err(error) = informer.start() {
            // Dropped outside the lock.
            let removed = self.shared.state.lock().informers.remove(&key);
            drop(removed);
            return Err(error.into());
        }
        Ok(informer)
    }

    fn informer_name(&self, resource: &ResourceType, name: Option<&str>) -> String {
        let name = name.map_or_else(|| resource.to_string(), ToOwned::to_owned);
        match &self.shared.name {
            Some(factory) => format!("{factory}/{name}"),
            None => name,
        }
    }

    /// Starts all informers of the factory, and from now on each new informer. A second start does nothing.
    ///
    /// # Errors
    ///
    /// [`StartError::NoRuntime`] outside of a runtime.
    pub fn start(&self) -> Result<(), StartError> {
        // The lock is released before the informers start: an informer without a runtime stops at once, and calls this
        // factory.
        let (informers, before): (Vec<_>, bool) = {
            let mut state = self.shared.state.lock();
            let before = std::mem::replace(&mut state.started, true);
            (state.informers.values().map(|known| known.informer.clone()).collect(), before)
        };
        for informer in informers {
            match informer.start() {
                Ok(()) | Err(StartError::Stopped(_)) => {}
                Err(error) => {
                    self.shared.state.lock().started = before;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Waits until all current informers have synced. [`Wait::within`] sets a limit, and its error names the informers
    /// that have not synced, and the reason. The wait fails at once if an informer stopped because of a panic and was
    /// not requested again.
    pub fn synced(&self) -> Wait<'static, ()> {
        let state = self.shared.state.lock();
        let waits: Vec<_> = state.informers.values().map(|known| known.informer.synced()).collect();
        let ended = state.ended.values().map(|informer| informer.name().to_owned()).min();
        drop(state);
        let wait = async move {
            if let Some(ended) = ended {
                return Err(WaitError::Stopped(ended));
            }
            // The first failure ends the wait, even if another informer never syncs.
            try_join_all(waits.into_iter().map(IntoFuture::into_future)).await.map(|_| ())
        };
        let factory = self.clone();
        Wait::new(wait, move || {
            let state = factory.shared.state.lock();
            let missing = state.informers.values().filter(|known| !known.informer.is_synced());
            let missing = missing.map(|known| AnyInformer::new(&known.informer));
            let mut missing: Vec<String> =
                missing.map(|informer| format!("{} is {}", informer.name(), informer.health())).collect();
            missing.sort_unstable();
            missing.join("; ")
        })
    }

    /// Returns all informers of the factory without their types, sorted by name and then by the order in which they
    /// were made.
    ///
    /// An informer that stopped because a task panicked or its runtime was dropped is listed until it is requested
    /// again.
    pub fn informers(&self) -> Vec<AnyInformer> {
        let state = self.shared.state.lock();
        let running = state.informers.values().map(|known| AnyInformer::new(&known.informer));
        let mut all: Vec<AnyInformer> = running.chain(state.ended.values().cloned()).collect();
        drop(state);
        all.sort_by(|left, right| (left.name(), left.number()).cmp(&(right.name(), right.number())));
        all
    }

    /// Returns a function that returns the informers of this factory, as [`informers`](Self::informers) does. It
    /// returns none after the last handle of the factory is dropped. Unlike a clone of the factory, the function keeps
    /// no informer running.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::SharedInformerFactory;
    /// # doc_server::with(async |server| {
    /// let factory = SharedInformerFactory::new(server.client());
    /// let informers = factory.weak_informers();
    /// let maps = factory.informer::<ConfigMap>()?;
    /// assert_eq!(informers()[0].name(), "configmaps");
    /// drop((factory, maps));
    /// assert!(informers().is_empty());
    /// # Ok(()) });
    /// ```
    pub fn weak_informers(&self) -> impl Fn() -> Vec<AnyInformer> + Clone + Send + Sync + 'static {
        let shared = Arc::downgrade(&self.shared);
        move || shared.upgrade().map_or_else(Vec::new, |shared| Self { shared }.informers())
    }

    /// Stops all informers, and waits until all their tasks have ended.
    pub async fn stop(&self) {
        let _ = self.stop_all(None).await;
    }

    /// Stops all informers, and waits at most for this duration for handlers whose call does not return.
    ///
    /// # Errors
    ///
    /// [`StillRunning`] names the handlers of the first informer that still has running calls. All informers have
    /// stopped nevertheless.
    pub async fn stop_within(&self, limit: Duration) -> Result<(), StillRunning> {
        self.stop_all(Some(limit)).await
    }

    async fn stop_all(&self, limit: Option<Duration>) -> Result<(), StillRunning> {
        let informers = {
            let mut state = self.shared.state.lock();
            state.ended.clear();
            std::mem::take(&mut state.informers)
        };
        let stops = informers.values().map(|known| async move {
            match limit {
                Some(limit) => known.informer.stop_within(limit).await,
                None => {
                    known.informer.stop().await;
                    Ok(())
                }
            }
        });
        join_all(stops).await.into_iter().collect()
    }
}

impl fmt::Debug for SharedInformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let informers = self.shared.state.lock().informers.len();
        f.debug_struct("SharedInformerFactory").field("informers", &informers).finish_non_exhaustive()
    }
}
