//! One place to get informers from: who asks for the same one, shares it.

mod client;
mod options;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use kube_client::Client;
use kube_core::metadata::PartialObjectMeta;
use kube_core::{ApiResource, DynamicObject, Resource};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

pub use self::client::{client, client_from};
pub use self::options::{FactoryBuilder, InformerOptions};
use self::options::{Settings, TypeSettings};
use crate::health::Health;
use crate::informer::{InformerBuilder, NotSynced, SharedInformer, StartError, Stopped};
use crate::object::{Kind, Object, ResourceType};
use crate::queue::Scope;
use crate::source::kube::{KubeSource, Selection};

/// Makes informers, and shares them: asking again for the same one gives the same one.
///
/// Two requests ask for the same informer if resource, representation, namespaces, selectors, extra query parameters and
/// the name of the transform are equal. Cloning gives another handle to the factory. Informers live as long as one of them,
/// or of their own handles, does.
///
/// client-go's `SharedInformerFactory`, its dynamic and its metadata factory in one. What differs: informers asked for after
/// the start start at once, two selections of one kind can live side by side, and one informer can be stopped alone.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_informer::SharedInformerFactory;
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let server = kube_embedded_apiserver::ApiServer::new();
/// server.create("configmaps", Some("default"), serde_json::json!({"metadata": {"name": "a"}}))?;
///
/// let factory = SharedInformerFactory::new(server.client());
/// let maps = factory.informer::<ConfigMap>()?;
/// factory.start()?;
/// factory.synced().await?;
/// assert!(maps.lister().namespace("default").get("a").is_some());
/// factory.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct SharedInformerFactory {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    name: Option<String>,
    namespaces: Vec<String>,
    selection: Selection,
    settings: Settings,
    by_type: HashMap<TypeId, TypeSettings>,
    seed: Option<u64>,
    first_lists: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    started: bool,
    informers: HashMap<InformerKey, Known>,
}

struct Known {
    settings: Settings,
    informer: Box<dyn AnyInformer>,
}

/// What makes two requests ask for the same informer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct InformerKey {
    resource: ResourceType,
    representation: TypeId,
    metadata_only: bool,
    namespaces: Vec<String>,
    selection: Selection,
    transform: Option<String>,
}

/// Why a factory did not give an informer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FactoryError {
    /// The factory has been started, and there is no runtime to start this one on.
    #[error(transparent)]
    Start(#[from] StartError),
    /// There is such an informer already, and it was asked for with other options.
    #[error("informer {0} exists with other options; ask with the same ones, or give it another selection")]
    ConflictingOptions(String),
}

/// An informer of any type.
trait AnyInformer: Send {
    fn name(&self) -> &str;
    fn start(&self) -> Result<(), StartError>;
    fn is_synced(&self) -> bool;
    fn health(&self) -> Health;
    fn synced(&self) -> BoxFuture<'static, Result<(), Stopped>>;
    fn stop(&self) -> BoxFuture<'static, ()>;
    fn as_any(&self) -> &dyn Any;
}

impl<T: Object> AnyInformer for SharedInformer<T> {
    fn name(&self) -> &str {
        SharedInformer::name(self)
    }

    fn start(&self) -> Result<(), StartError> {
        SharedInformer::start(self)
    }

    fn is_synced(&self) -> bool {
        SharedInformer::is_synced(self)
    }

    fn health(&self) -> Health {
        SharedInformer::health(self)
    }

    fn synced(&self) -> BoxFuture<'static, Result<(), Stopped>> {
        let informer = self.clone();
        Box::pin(async move { SharedInformer::synced(&informer).await })
    }

    fn stop(&self) -> BoxFuture<'static, ()> {
        let informer = self.clone();
        Box::pin(async move { SharedInformer::stop(&informer).await })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl SharedInformerFactory {
    /// A factory for all namespaces.
    ///
    /// The client may retry some failures by itself, and so hide them for minutes; [`client()`] makes one that does not.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::SharedInformerFactory;
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// let factory = SharedInformerFactory::new(server.client());
    /// let maps = factory.informer::<ConfigMap>()?;
    /// assert!(!maps.has_started(), "nothing runs yet");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn new(client: Client) -> Self {
        Self::builder(client).build()
    }

    /// Configures a factory.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::SharedInformerFactory;
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// let factory = SharedInformerFactory::builder(server.client()).namespace("web").labels("app=shop").build();
    /// let maps = factory.informer::<ConfigMap>()?;
    /// factory.start()?;
    /// factory.synced().await?;
    /// assert!(maps.store().is_empty(), "web/a is there, but has no such label");
    /// factory.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn builder(client: Client) -> FactoryBuilder {
        FactoryBuilder::new(client)
    }

    /// The informer of a kind: `informer::<Pod>()`.
    ///
    /// # Errors
    ///
    /// [`FactoryError::ConflictingOptions`] if it was asked for with other options before; [`FactoryError::Start`] if the
    /// factory has been started and there is no runtime to start this one on.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::SharedInformerFactory;
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// let factory = SharedInformerFactory::new(server.client());
    /// let maps = factory.informer::<ConfigMap>()?;
    /// assert!(maps.is_same(&factory.informer::<ConfigMap>()?), "who asks again shares it");
    /// factory.start()?;
    /// maps.synced().await?;
    /// assert!(maps.store().contains("web/a"));
    /// factory.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn informer<T: Kind>(&self) -> Result<SharedInformer<T>, FactoryError> {
        self.informer_with(InformerOptions::new())
    }

    /// The informer of a kind with options of its own: selectors, a transform, periods.
    ///
    /// # Errors
    ///
    /// As [`SharedInformerFactory::informer`].
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::SharedInformerFactory;
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// use kube_informer::factory::{FactoryError, InformerOptions};
    ///
    /// let factory = SharedInformerFactory::new(server.client());
    /// let all = factory.informer::<ConfigMap>()?;
    /// let shop = factory.informer_with(InformerOptions::<ConfigMap>::new().labels("app=shop"))?;
    /// assert!(!all.is_same(&shop), "two selections live side by side");
    ///
    /// let slower = InformerOptions::<ConfigMap>::new().resync_period(Duration::from_secs(600));
    /// assert!(matches!(factory.informer_with(slower), Err(FactoryError::ConflictingOptions(_))));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn informer_with<T: Kind>(&self, options: InformerOptions<T>) -> Result<SharedInformer<T>, FactoryError> {
        self.get(T::resource_type(), options, false)
    }

    /// The informer of a collection that is known at run time only.
    ///
    /// # Errors
    ///
    /// As [`SharedInformerFactory::informer`].
    ///
    /// ```
    /// # use kube_informer::SharedInformerFactory;
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// use kube_client::core::{ApiResource, GroupVersionKind};
    ///
    /// let factory = SharedInformerFactory::new(server.client());
    /// let maps = factory.dynamic(ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap")))?;
    /// factory.start()?;
    /// factory.synced().await?;
    /// assert_eq!(maps.store().get("web/a").unwrap().types.as_ref().unwrap().kind, "ConfigMap");
    /// factory.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn dynamic(&self, resource: ApiResource) -> Result<SharedInformer<DynamicObject>, FactoryError> {
        self.dynamic_with(resource, InformerOptions::new())
    }

    /// The same with options, and in any representation that can be made from the objects' JSON.
    ///
    /// # Errors
    ///
    /// As [`SharedInformerFactory::informer`].
    ///
    /// ```
    /// # use kube_client::core::{ApiResource, GroupVersionKind};
    /// # use kube_informer::SharedInformerFactory;
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// use kube_informer::{factory::InformerOptions, source::Identity};
    ///
    /// let factory = SharedInformerFactory::new(server.client());
    /// let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    /// let maps = factory.dynamic_with::<Identity>(resource, InformerOptions::new().namespace("web"))?;
    /// factory.start()?;
    /// factory.synced().await?;
    /// assert_eq!(maps.store().get("web/a").unwrap().key.name(), "a");
    /// factory.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn dynamic_with<T: Object>(
        &self,
        resource: ApiResource,
        options: InformerOptions<T>,
    ) -> Result<SharedInformer<T>, FactoryError> {
        self.get(resource.into(), options, false)
    }

    /// The informer of a kind of which only metadata is kept, and asked for.
    ///
    /// # Errors
    ///
    /// As [`SharedInformerFactory::informer`].
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::SharedInformerFactory;
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// let factory = SharedInformerFactory::new(server.client());
    /// let maps = factory.metadata::<ConfigMap>()?;
    /// factory.start()?;
    /// factory.synced().await?;
    /// let map = maps.store().get("web/a").unwrap();
    /// assert!(map.metadata.uid.is_some());
    /// assert_eq!(map.types.as_ref().unwrap().kind, "PartialObjectMetadata", "the server sends no more than that");
    /// factory.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn metadata<K>(&self) -> Result<SharedInformer<PartialObjectMeta<K>>, FactoryError>
    where
        K: Kind + Resource<DynamicType = ()>,
        PartialObjectMeta<K>: Object,
    {
        self.get(K::resource_type(), InformerOptions::new(), true)
    }

    fn get<T: Object>(
        &self,
        resource: ResourceType,
        options: InformerOptions<T>,
        metadata_only: bool,
    ) -> Result<SharedInformer<T>, FactoryError> {
        let by_type = self.shared.by_type.get(&TypeId::of::<T>());
        let namespaces = options.namespaces.unwrap_or_else(|| self.shared.namespaces.clone());
        let selection = options.selection.or(&self.shared.selection);
        let defaults = match by_type {
            Some(by_type) => by_type.settings.clone().or(&self.shared.settings),
            None => self.shared.settings.clone(),
        };
        let settings = options.settings.or(&defaults);
        let transform = options.transform.or_else(|| by_type?.transform.as_ref()?.downcast_ref().cloned());
        let key = InformerKey {
            resource,
            representation: TypeId::of::<T>(),
            metadata_only,
            namespaces,
            selection,
            transform: transform.as_ref().map(|(name, _)| name.clone()),
        };
        let mut state = self.shared.state.lock();
        if let Some(known) = state.informers.get(&key)
            && let Some(informer) = known.informer.as_any().downcast_ref::<SharedInformer<T>>()
            && !informer.is_stopped()
        {
            return match known.settings == settings {
                true => Ok(informer.clone()),
                false => Err(FactoryError::ConflictingOptions(SharedInformer::name(informer).to_owned())),
            };
        }
        let builder = InformerBuilder::new(self.sources(&key, &settings)).name(self.informer_name(&key));
        let builder = builder.boxed_transform(transform.map(|(_, transform)| transform));
        let builder = builder.first_lists(self.shared.first_lists.clone()).resource(key.resource.clone());
        let builder = match self.shared.seed {
            Some(seed) => builder.seed(seed),
            None => builder,
        };
        let informer = settings.configure(builder).build();
        if state.started {
            SharedInformer::start(&informer)?;
        }
        state.informers.insert(key, Known { settings, informer: Box::new(informer.clone()) });
        Ok(informer)
    }

    /// One source for all namespaces, or one each.
    fn sources<T: Object>(&self, key: &InformerKey, settings: &Settings) -> Vec<(Scope, KubeSource<T>)> {
        let scopes: Vec<Option<&String>> = match key.namespaces.as_slice() {
            [] => vec![None],
            namespaces => namespaces.iter().map(Some).collect(),
        };
        let source = |namespace: Option<&String>| {
            let selection = Selection { namespace: namespace.cloned(), ..key.selection.clone() };
            let source = KubeSource::of(self.shared.client.clone(), key.resource.clone()).select(selection);
            let source = settings.configure_source(source);
            if key.metadata_only { source.metadata_only() } else { source }
        };
        scopes
            .into_iter()
            .map(|namespace| (namespace.map(|name| Arc::from(name.as_str())), source(namespace)))
            .collect()
    }

    fn informer_name(&self, key: &InformerKey) -> String {
        match &self.shared.name {
            Some(name) => format!("{name}/{}", key.resource),
            None => key.resource.to_string(),
        }
    }

    /// Starts every informer asked for so far; later ones start at once. A second start does nothing.
    ///
    /// # Errors
    ///
    /// [`StartError::NoRuntime`] outside of a tokio runtime.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Secret;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::SharedInformerFactory;
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// let factory = SharedInformerFactory::new(server.client());
    /// let maps = factory.informer::<ConfigMap>()?;
    /// factory.start()?;
    /// assert!(maps.has_started());
    /// assert!(factory.informer::<Secret>()?.has_started(), "later ones start at once");
    /// factory.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn start(&self) -> Result<(), StartError> {
        let mut state = self.shared.state.lock();
        for known in state.informers.values() {
            match known.informer.start() {
                Ok(()) | Err(StartError::Stopped(_)) => {}
                Err(error) => return Err(error),
            }
        }
        state.started = true;
        Ok(())
    }

    /// Waits until every informer asked for so far is synced.
    ///
    /// # Errors
    ///
    /// [`Stopped`] if one of them ended before.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Secret;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::SharedInformerFactory;
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// let factory = SharedInformerFactory::new(server.client());
    /// let (maps, secrets) = (factory.informer::<ConfigMap>()?, factory.informer::<Secret>()?);
    /// factory.start()?;
    /// factory.synced().await?;
    /// assert!(maps.is_synced() && secrets.is_synced());
    /// factory.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn synced(&self) -> Result<(), Stopped> {
        let waits: Vec<_> = self.shared.state.lock().informers.values().map(|known| known.informer.synced()).collect();
        join_all(waits).await.into_iter().collect()
    }

    /// Waits until every informer asked for so far is synced, for so long at most.
    ///
    /// # Errors
    ///
    /// [`NotSynced`] names each that is not, sorted, and says what it was doing instead: a refused request, a kind the server
    /// does not know.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use kube_embedded_apiserver::{ApiServer, Fault};
    /// # use kube_informer::SharedInformerFactory;
    /// # use std::time::Duration;
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    /// # runtime.unwrap().block_on(async {
    /// let server = ApiServer::new();
    /// server.faults().add(Fault::status(403).resource("secrets"));
    /// let factory = SharedInformerFactory::new(server.client());
    /// let (_maps, _secrets) = (factory.informer::<ConfigMap>()?, factory.informer::<Secret>()?);
    /// factory.start()?;
    /// let error = factory.synced_within(Duration::from_secs(5)).await.unwrap_err();
    /// let [(name, why)] = &error.waiting[..] else { panic!("{error}") };
    /// assert!(name == "secrets" && why.contains("server answered 403"));
    /// factory.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn synced_within(&self, within: Duration) -> Result<(), NotSynced> {
        if let Ok(Ok(())) = tokio::time::timeout(within, self.synced()).await {
            return Ok(());
        }
        let state = self.shared.state.lock();
        let waiting = state.informers.values().map(|known| &known.informer).filter(|informer| !informer.is_synced());
        let mut waiting: Vec<_> =
            waiting.map(|informer| (informer.name().to_owned(), informer.health().to_string())).collect();
        waiting.sort_unstable();
        Err(NotSynced { within, waiting })
    }

    /// Ends one informer, waits until nothing of it runs any more, and forgets it: asking again makes a new one.
    ///
    /// Other holders see it stopped. Its memory is given back with the last of them.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::SharedInformerFactory;
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// let factory = SharedInformerFactory::new(server.client());
    /// let maps = factory.informer::<ConfigMap>()?;
    /// factory.start()?;
    /// factory.stop_informer(&maps).await;
    /// assert!(maps.is_stopped());
    ///
    /// let again = factory.informer::<ConfigMap>()?;
    /// assert!(!again.is_same(&maps) && again.has_started());
    /// factory.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn stop_informer<T: Object>(&self, informer: &SharedInformer<T>) {
        let is_it = |known: &Known| {
            known.informer.as_any().downcast_ref::<SharedInformer<T>>().is_some_and(|other| other.is_same(informer))
        };
        self.shared.state.lock().informers.retain(|_, known| !is_it(known));
        SharedInformer::stop(informer).await;
    }

    /// Ends every informer and waits until nothing of them runs any more.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::SharedInformerFactory;
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// let factory = SharedInformerFactory::new(server.client());
    /// let maps = factory.informer::<ConfigMap>()?;
    /// factory.start()?;
    /// factory.synced().await?;
    /// factory.stop().await;
    /// assert!(maps.is_stopped() && maps.store().contains("web/a"), "the cache stays readable");
    /// assert_eq!(server.open_watches(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn stop(&self) {
        let informers = std::mem::take(&mut self.shared.state.lock().informers);
        join_all(informers.values().map(|known| known.informer.stop())).await;
    }
}

impl fmt::Debug for SharedInformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let informers = self.shared.state.lock().informers.len();
        f.debug_struct("SharedInformerFactory").field("informers", &informers).finish_non_exhaustive()
    }
}
