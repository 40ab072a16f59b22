//! Configures factories.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube_client::Client;
use tokio::sync::Semaphore;

use super::{FactoryShared, InformerRequest, SharedInformerFactory};
use crate::lock::Mutex;
use crate::object::Object;
use crate::reflector::Recovery;
use crate::settings::{InformerOptions, Selection};

/// How many first lists run at once by default.
const FIRST_LISTS: usize = 10;

/// Configures a [`SharedInformerFactory`]; see [`SharedInformerFactory::builder`].
pub struct FactoryBuilder {
    client: Client,
    name: Option<String>,
    selection: Selection,
    options: InformerOptions,
    by_type: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
    first_lists: usize,
    idle_time: Option<Duration>,
}

impl FactoryBuilder {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            name: None,
            selection: Selection::new(),
            options: InformerOptions::new(),
            by_type: HashMap::new(),
            first_lists: FIRST_LISTS,
            idle_time: None,
        }
    }

    /// Sets a prefix of the names of its informers.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the selection of all informers that do not set their own.
    #[must_use]
    pub fn select(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// Sets the options of all informers that do not set their own.
    #[must_use]
    pub fn options(mut self, options: InformerOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets selection, options and transform for informers of one type. They precede those for all informers.
    #[must_use]
    pub fn defaults_for<T: Object>(mut self, defaults: InformerRequest<T>) -> Self {
        self.by_type.insert(TypeId::of::<T>(), Box::new(defaults));
        self
    }

    /// Sets how many first lists may run at once, so that a start does not overload the API server. The default is 10.
    #[must_use]
    pub fn first_lists(mut self, first_lists: usize) -> Self {
        self.first_lists = first_lists.max(1);
        self
    }

    /// Stops an informer that the program has not used for this time. The default is never: an informer runs as long as
    /// the factory.
    ///
    /// An informer is used while a handle to it exists, a handler or a stream is registered, or a
    /// [`Store`](crate::Store), a [`Lister`](crate::Lister) or an [`Index`](crate::Index) of it exists. A
    /// [`Snapshot`](crate::Snapshot) and an [`AnyInformer`](crate::AnyInformer) are no use. A later request makes a new
    /// informer, which lists again, and has none of the indexes of the one before.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::SharedInformerFactory;
    /// # doc_server::with(async |server| {
    /// # let client = server.client();
    /// let factory = SharedInformerFactory::builder(client).stop_idle_after(Duration::from_secs(600)).build();
    /// factory.start()?;
    /// let maps = factory.informer::<ConfigMap>()?;
    /// maps.synced().await?;
    /// drop(maps); // From now on the informer is idle. A request within ten minutes returns it again.
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn stop_idle_after(mut self, time: Duration) -> Self {
        self.idle_time = Some(time);
        self
    }

    /// Makes the factory.
    pub fn build(self) -> SharedInformerFactory {
        let Self { client, name, selection, options, by_type, first_lists, idle_time } = self;
        let first_lists = Arc::new(Semaphore::new(first_lists.min(Semaphore::MAX_PERMITS)));
        let recovery = Recovery::default();
        let state = Mutex::default();
        let shared =
            FactoryShared { client, name, selection, options, by_type, first_lists, idle_time, recovery, state };
        SharedInformerFactory { shared: Arc::new(shared) }
    }
}

impl fmt::Debug for FactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("FactoryBuilder");
        debug.field("selection", &self.selection).field("options", &self.options).finish_non_exhaustive()
    }
}
