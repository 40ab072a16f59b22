//! One place to get informers from: who asks for the same one, shares it.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};
use kube_client::Client;
use kube_client::config::Config;
use parking_lot::Mutex;

use crate::informer::{SharedInformer, StartError, StoppedError};
use crate::object::{Kind, Object, ResourceType};
use crate::queue::Scope;
use crate::source::kube::{KubeSource, Selection};

/// Makes informers, and shares them: asking again for the same one gives the same one.
///
/// Cloning gives another handle. Informers live as long as one of them, or of their own handles, does.
///
/// client-go's `SharedInformerFactory`, `DynamicSharedInformerFactory` and metadata factory in one.
#[derive(Clone)]
pub struct SharedInformerFactory {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    namespaces: Vec<String>,
    seed: Option<u64>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    started: bool,
    informers: HashMap<InformerKey, Box<dyn AnyInformer>>,
}

/// What makes two requests ask for the same informer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct InformerKey {
    resource: ResourceType,
    representation: TypeId,
}

/// An informer of any type.
trait AnyInformer: Send {
    fn start(&self) -> Result<(), StartError>;
    fn synced(&self) -> BoxFuture<'static, Result<(), StoppedError>>;
    fn stop(&self) -> BoxFuture<'static, ()>;
    fn as_any(&self) -> &dyn Any;
}

impl<T: Object> AnyInformer for SharedInformer<T> {
    fn start(&self) -> Result<(), StartError> {
        SharedInformer::start(self)
    }

    fn synced(&self) -> BoxFuture<'static, Result<(), StoppedError>> {
        let informer = self.clone();
        Box::pin(async move { informer.synced().await })
    }

    fn stop(&self) -> BoxFuture<'static, ()> {
        let informer = self.clone();
        Box::pin(async move { informer.stop().await })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Configures a [`SharedInformerFactory`].
pub struct FactoryBuilder {
    client: Client,
    namespaces: Vec<String>,
    seed: Option<u64>,
}

impl SharedInformerFactory {
    /// A factory for all namespaces.
    ///
    /// The client may retry some failures by itself, and so hide them for minutes; [`client`] makes one that does not.
    pub fn new(client: Client) -> Self {
        Self::builder(client).build()
    }

    /// Configures a factory.
    pub fn builder(client: Client) -> FactoryBuilder {
        FactoryBuilder { client, namespaces: Vec::new(), seed: None }
    }

    /// The informer of a kind: `informer::<Pod>()`.
    ///
    /// # Errors
    ///
    /// [`StartError::NoRuntime`] if the factory has been started and there is no runtime to start this one on.
    pub fn informer<T: Kind>(&self) -> Result<SharedInformer<T>, StartError> {
        self.informer_of(T::resource_type(), |source| source)
    }

    fn informer_of<T: Object>(
        &self,
        resource: ResourceType,
        configure: impl Fn(KubeSource<T>) -> KubeSource<T>,
    ) -> Result<SharedInformer<T>, StartError> {
        let key = InformerKey { resource: resource.clone(), representation: TypeId::of::<T>() };
        let mut state = self.shared.state.lock();
        if let Some(informer) =
            state.informers.get(&key).and_then(|known| known.as_any().downcast_ref::<SharedInformer<T>>())
            && !informer.is_stopped()
        {
            return Ok(informer.clone());
        }
        let scopes: Vec<Option<String>> = match self.shared.namespaces.as_slice() {
            [] => vec![None],
            namespaces => namespaces.iter().cloned().map(Some).collect(),
        };
        let sources = scopes.into_iter().map(|namespace| {
            let scope: Scope = namespace.as_deref().map(Arc::from);
            let selection = Selection { namespace, ..Selection::default() };
            (scope, configure(KubeSource::of(self.shared.client.clone(), resource.clone()).select(selection)))
        });
        let mut builder = SharedInformer::over_scopes(sources).name(resource.to_string());
        if let Some(seed) = self.shared.seed {
            builder = builder.seed(seed);
        }
        let informer = builder.build();
        if state.started {
            informer.start()?;
        }
        state.informers.insert(key, Box::new(informer.clone()));
        Ok(informer)
    }

    /// Starts every informer asked for so far; later ones start at once. A second start does nothing.
    ///
    /// # Errors
    ///
    /// [`StartError::NoRuntime`] outside of a tokio runtime.
    pub fn start(&self) -> Result<(), StartError> {
        let mut state = self.shared.state.lock();
        state.started = true;
        state.informers.values().try_for_each(|informer| match informer.start() {
            Err(StartError::Stopped(_)) => Ok(()),
            outcome => outcome,
        })
    }

    /// Waits until every informer asked for so far is synced.
    ///
    /// # Errors
    ///
    /// [`StoppedError`] if one of them ended before.
    pub async fn synced(&self) -> Result<(), StoppedError> {
        let waits: Vec<_> = self.shared.state.lock().informers.values().map(|informer| informer.synced()).collect();
        join_all(waits).await.into_iter().collect()
    }

    /// Ends every informer and waits until nothing of them runs any more.
    pub async fn stop(&self) {
        let informers = std::mem::take(&mut self.shared.state.lock().informers);
        join_all(informers.values().map(|informer| informer.stop())).await;
    }
}

impl FactoryBuilder {
    /// Follows this namespace only. Given more than once, it follows a set of namespaces in one cache.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        let namespace = namespace.into();
        if !self.namespaces.contains(&namespace) {
            self.namespaces.push(namespace);
        }
        self
    }

    /// Where all chance comes from, so that a run can be repeated.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The factory.
    pub fn build(self) -> SharedInformerFactory {
        let Self { client, namespaces, seed } = self;
        SharedInformerFactory { shared: Arc::new(Shared { client, namespaces, seed, state: Mutex::default() }) }
    }
}

/// A client for informers, from the usual places: a kubeconfig, or the cluster this program runs in.
///
/// It differs from `kube`'s default in one thing: it does not retry by itself. The default retries 429, 503 and 504 up to
/// fifteen times before anybody hears of them, while informers have a backoff of their own and report every failure.
///
/// # Errors
///
/// What `kube` says of a configuration that is missing or wrong.
pub async fn client() -> Result<Client, kube_client::Error> {
    client_from(Config::infer().await.map_err(kube_client::Error::InferConfig)?)
}

/// The same from a configuration at hand.
///
/// # Errors
///
/// What `kube` says of a configuration that is wrong.
pub fn client_from(mut config: Config) -> Result<Client, kube_client::Error> {
    config.default_retry = false;
    Client::try_from(config)
}

impl fmt::Debug for SharedInformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let informers = self.shared.state.lock().informers.len();
        f.debug_struct("SharedInformerFactory").field("informers", &informers).finish_non_exhaustive()
    }
}

impl fmt::Debug for FactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryBuilder").field("namespaces", &self.namespaces).finish_non_exhaustive()
    }
}
