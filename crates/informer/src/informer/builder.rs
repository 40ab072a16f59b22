//! Configures informers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use super::tasks::CoreSink;
use super::verify::{TakeInventory, take_inventory};
use super::{Core, Lifecycle, Shared, SharedInformer, short_type_name};
use crate::apply::{Applier, Changes};
use crate::health::HealthBoard;
use crate::lister::NAMESPACE_INDEX;
use crate::object::{Object, ResourceType};
use crate::queue::{QueueOrder, Scope};
use crate::reflector::{BackoffOptions, Reflector, ReflectorOptions};
use crate::source::ListWatch;
use crate::source::transform::{Transform, Transformed};
use crate::store::{Store, index_function};

/// Configures a [`SharedInformer`]; see [`SharedInformer::builder`].
pub struct InformerBuilder<T> {
    name: String,
    resource: Option<ResourceType>,
    sources: Vec<(Scope, BoxedSource<T>)>,
    transform: Option<Transform<T>>,
    order: QueueOrder,
    resync_period: Option<Duration>,
    options: ReflectorOptions,
}

/// Starts a reflector whose source and whose type of source are no longer of interest.
pub(super) type ReflectorStart<T> = Box<dyn FnOnce(Arc<Core<T>>, CancellationToken) -> BoxFuture<'static, ()> + Send>;

/// Makes the start of a reflector, given its options; and what lists the source to compare it with the cache.
type BoxedSource<T> =
    Box<dyn FnOnce(ReflectorOptions, Option<Transform<T>>) -> (ReflectorStart<T>, TakeInventory) + Send>;

impl<T: Object> InformerBuilder<T> {
    pub(crate) fn new<L: ListWatch<T>>(sources: impl IntoIterator<Item = (Scope, L)>) -> Self {
        Self {
            name: short_type_name::<T>(),
            resource: None,
            sources: sources.into_iter().map(|(scope, source)| (scope, boxed(source))).collect(),
            transform: None,
            order: QueueOrder::default(),
            resync_period: None,
            options: ReflectorOptions::default(),
        }
    }

    /// The name that logs, messages and metrics use; the type's name unless given.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Whether to ask for the initial state by a watch where the source can. On unless said otherwise.
    #[must_use]
    pub fn streaming(mut self, streaming: bool) -> Self {
        self.options.streaming = streaming;
        self
    }

    /// How many objects a list asks for at a time.
    #[must_use]
    pub fn page_size(mut self, page_size: usize) -> Self {
        self.options.page_size = Some(page_size);
        self
    }

    /// The shortest time a watch is asked to last; the longest is twice that.
    #[must_use]
    pub fn watch_timeout(mut self, timeout: Duration) -> Self {
        self.options.watch_timeout = timeout;
        self
    }

    /// How long a list or an initial stream may stand still before it is given up.
    #[must_use]
    pub fn progress_deadline(mut self, deadline: Duration) -> Self {
        self.options.progress_deadline = deadline;
        self
    }

    /// How long to wait between attempts.
    #[must_use]
    pub fn backoff(mut self, backoff: BackoffOptions) -> Self {
        self.options.backoff = backoff;
        self
    }

    /// Which queue changes pass through on their way to the cache.
    #[must_use]
    pub fn queue_order(mut self, order: QueueOrder) -> Self {
        self.order = order;
        self
    }

    /// How often handlers are shown the cache again, unless they ask for another period. Never unless given.
    #[must_use]
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync_period = Some(period).filter(|period| !period.is_zero());
        self
    }

    /// How often the server is asked for everything again though nothing is wrong. Never unless given.
    #[must_use]
    pub fn relist_period(mut self, period: Duration) -> Self {
        self.options.relist_period = Some(period).filter(|period| !period.is_zero());
        self
    }

    /// Changes every object on its way in, once: to drop what is not needed, say.
    ///
    /// It must leave name, namespace, uid and version alone. What it fails on is treated like an object that could not be
    /// decoded: the last good copy stays, and the error is reported.
    #[must_use]
    pub fn transform<F, E>(mut self, transform: F) -> Self
    where
        F: Fn(T) -> Result<T, E> + Send + Sync + 'static,
        E: fmt::Display,
    {
        self.transform = Some(Arc::new(move |object| transform(object).map_err(|error| error.to_string())));
        self
    }

    /// The collection that is followed: a label of metrics.
    #[must_use]
    pub fn resource(mut self, resource: ResourceType) -> Self {
        self.resource = Some(resource);
        self
    }

    #[cfg(feature = "kube")]
    pub(crate) fn boxed_transform(mut self, transform: Option<Transform<T>>) -> Self {
        self.transform = transform;
        self
    }

    /// So many first lists may run at once, of all informers that share this.
    #[must_use]
    pub fn first_lists(mut self, first_lists: Arc<Semaphore>) -> Self {
        self.options.first_lists = Some(first_lists);
        self
    }

    /// Where all chance comes from, so that a run can be repeated.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// The informer, not started yet.
    pub fn build(self) -> SharedInformer<T> {
        let Self { name, resource, sources, transform, order, resync_period, mut options } = self;
        let relists = watch::Sender::new(0);
        options.relist_requests = Some(relists.subscribe());
        let scopes: Vec<Scope> = sources.iter().map(|(scope, _)| scope.clone()).collect();
        let health = HealthBoard::new(scopes.clone());
        let (store, mut writer) = Store::new(options.seed);
        let by_namespace =
            |object: &T, add: &mut dyn FnMut(&str)| object.id().key.namespace().into_iter().for_each(add);
        // The first index of a new store: its name cannot be taken.
        let _ = writer.add_index(
            NAMESPACE_INDEX,
            std::any::TypeId::of::<Store<T>>(),
            index_function(by_namespace, |_, _| {}),
        );
        let applier = Applier::new(writer, scopes, health.clone(), resync_period);
        let progress = applier.progress();
        let (mut reflectors, mut inventories) = (Vec::new(), Vec::new());
        for ((scope, source), number) in sources.into_iter().zip(0..) {
            let seed = options.seed.wrapping_add(number);
            let (start, inventory) = source(ReflectorOptions { scope, seed, ..options.clone() }, transform.clone());
            reflectors.push(start);
            inventories.push(inventory);
        }
        let core = Core {
            name,
            resource,
            changes: Changes::boxed(order.queue(), store.clone()),
            store,
            applier: Mutex::new(applier),
            health,
            progress,
            relists,
            inventories: Mutex::new(inventories),
            resync_period,
        };
        let lifecycle = Mutex::new(Lifecycle::New { reflectors, handlers: Vec::new() });
        let (core, cancel, ending) = (Arc::new(core), CancellationToken::new(), tokio::sync::Mutex::default());
        SharedInformer { shared: Arc::new(Shared { core, cancel, lifecycle, ending }) }
    }
}

fn boxed<T: Object, L: ListWatch<T>>(source: L) -> BoxedSource<T> {
    let source = Arc::new(source);
    Box::new(move |options: ReflectorOptions, transform| {
        let inventory = take_inventory(source.clone(), options.scope.clone());
        let start: ReflectorStart<T> = Box::new(move |core, cancel| {
            let sink = CoreSink { core, scope: options.scope.clone() };
            match transform {
                Some(transform) => {
                    Box::pin(Reflector::new(Transformed::new(source, transform), sink, options).run(cancel))
                }
                None => Box::pin(Reflector::new(source, sink, options).run(cancel)),
            }
        });
        (start, inventory)
    })
}

impl<T> fmt::Debug for InformerBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerBuilder")
            .field("name", &self.name)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
