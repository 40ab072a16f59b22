//! Configures informers.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::scopes::{Follower, NamespaceSource, Scopes};
use super::verify::Questions;
use super::{Core, Figures, Held, InformerShared, Lifecycle, SharedInformer};
use crate::apply::{Applier, Changes, Outdated, StoreProgress, Waiters, Writing};
use crate::health::HealthBoard;
use crate::lister::NAMESPACE_INDEX;
use crate::lock::Mutex;
use crate::object::{Cached as _, Object, ResourceType, Scope};
use crate::processor::Processor;
use crate::queue::queue_in;
use crate::reflector::{PROGRESS_DEADLINE, Recovery};
use crate::settings::{InformerOptions, Selection};
use crate::source::ListWatch;
use crate::source::feed::{Feed, Transform, feed};
use crate::store::{LingerLimits, Store};

/// How many informers this process has made.
static MADE: AtomicU64 = AtomicU64::new(0);

/// Configures a [`SharedInformer`]; see [`SharedInformer::builder`].
pub struct InformerBuilder<T> {
    sources: Sources<T>,
    transform: Option<Transform<T>>,
    settings: Settings,
}

/// The sources of an informer, without their types. They still need the transform of the objects.
enum Sources<T> {
    /// One for the whole resource.
    Whole(BoxedSource<T>),
    /// One for each of these namespaces.
    Namespaces(Vec<String>, BoxedNamespaceSource<T>),
}

/// The settings of an informer without its sources.
struct Settings {
    name: Option<String>,
    resource: Option<ResourceType>,
    options: InformerOptions,
    first_lists: Option<Arc<Semaphore>>,
    recovery: Recovery,
    figures: Figures,
    memory_factor: f64,
    selection: Selection,
}

/// A source without its type, which still needs the transform of its objects.
type BoxedSource<T> = Box<dyn FnOnce(Option<Transform<T>>) -> Arc<dyn Feed<dyn Object>> + Send>;

/// Makes the source of one namespace, without its type.
type BoxedNamespaceSource<T> = Box<dyn Fn(&str, Option<Transform<T>>) -> Arc<dyn Feed<dyn Object>> + Send + Sync>;

impl<T: Object> InformerBuilder<T> {
    pub(super) fn whole(source: impl ListWatch<T>) -> Self {
        let resource = source.resource_type();
        Self::new(Sources::Whole(Box::new(|transform| feed(source, transform, T::erase))), resource)
    }

    pub(crate) fn in_namespaces<L: ListWatch<T>>(
        namespaces: impl IntoIterator<Item = String>,
        source: impl Fn(&str) -> L + Send + Sync + 'static,
    ) -> Self {
        let source: BoxedNamespaceSource<T> =
            Box::new(move |namespace, transform| feed(source(namespace), transform, T::erase));
        Self::new(Sources::Namespaces(namespaces.into_iter().collect(), source), None)
    }

    fn new(sources: Sources<T>, resource: Option<ResourceType>) -> Self {
        let settings = Settings {
            name: None,
            resource,
            options: InformerOptions::new(),
            first_lists: None,
            recovery: Recovery::default(),
            figures: Box::new(Vec::new),
            memory_factor: 1.0,
            selection: Selection::new(),
        };
        Self { sources, transform: None, settings }
    }

    /// Sets the name in logs, messages and metrics. The default is the name of the resource or of the type.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.settings.name = Some(name.into());
        self
    }

    /// Sets how the informer lists and watches, and how it keeps objects.
    #[must_use]
    pub fn options(mut self, options: InformerOptions) -> Self {
        self.settings.options = options;
        self
    }

    /// Sets a function that changes every object once, after it is decoded: for example, to drop fields.
    ///
    /// The function must not change name, namespace, uid and version. If it fails, the object counts as one that could
    /// not be decoded: its last known state stays, and the error is reported.
    #[must_use]
    pub fn transform<F, E>(mut self, transform: F) -> Self
    where
        F: Fn(T) -> Result<T, E> + Send + Sync + 'static,
        E: fmt::Display,
    {
        self.transform = Some(Arc::new(move |object| transform(object).map_err(|error| error.to_string())));
        self
    }

    /// Sets the resource, for metrics and for [`AnyInformer::resource`](crate::AnyInformer::resource).
    #[must_use]
    pub fn resource(mut self, resource: ResourceType) -> Self {
        self.settings.resource = Some(resource);
        self
    }

    #[cfg(feature = "kube")]
    pub(crate) fn boxed_transform(self, transform: Option<Transform<T>>) -> Self {
        Self { transform, ..self }
    }

    #[cfg(feature = "kube")]
    pub(crate) fn first_lists(mut self, first_lists: Arc<Semaphore>) -> Self {
        self.settings.first_lists = Some(first_lists);
        self
    }

    #[cfg(feature = "kube")]
    pub(crate) fn recovery(mut self, recovery: Recovery) -> Self {
        self.settings.recovery = recovery;
        self
    }

    #[cfg(feature = "kube")]
    pub(crate) fn figures(mut self, figures: impl Fn() -> Vec<(&'static str, f64)> + Send + Sync + 'static) -> Self {
        self.settings.figures = Box::new(figures);
        self
    }

    /// Sets how many bytes of memory one byte on the wire takes.
    #[cfg(feature = "kube")]
    pub(crate) fn memory_factor(mut self, factor: f64) -> Self {
        self.settings.memory_factor = factor;
        self
    }

    /// Sets the selection of the sources.
    #[cfg(feature = "kube")]
    pub(crate) fn selection(mut self, selection: Selection) -> Self {
        self.settings.selection = selection;
        self
    }

    /// Makes the informer. It is not started.
    pub fn build(self) -> SharedInformer<T> {
        let Self { sources, transform, settings } = self;
        let (sources, namespace_source) = match sources {
            Sources::Whole(source) => (vec![(None, source(transform))], None),
            Sources::Namespaces(namespaces, source) => {
                let source: NamespaceSource = Arc::new(move |namespace: &str| source(namespace, transform.clone()));
                let one = |namespace: String| (Some(namespace.as_str().into()), source(&namespace));
                (namespaces.into_iter().map(one).collect(), Some(source))
            }
        };
        SharedInformer::of(build(sources, namespace_source, settings, type_name::<T>()))
    }
}

fn build(
    sources: Vec<(Scope, Arc<dyn Feed<dyn Object>>)>,
    namespace_source: Option<NamespaceSource>,
    settings: Settings,
    type_name: String,
) -> Held {
    let Settings { name, resource, options, first_lists, recovery, figures, memory_factor, selection } = settings;
    let name = name.or_else(|| resource.as_ref().map(ToString::to_string)).unwrap_or(type_name);
    let seed = options.seed.unwrap_or_else(rand::random);
    let resync_period = options.resync_period.filter(|period| !period.is_zero());
    let progress = watch::Sender::new(StoreProgress::default());
    let scopes: Vec<Scope> = sources.iter().map(|(scope, _)| scope.clone()).collect();
    let secret = resource.as_ref().is_some_and(ResourceType::is_secret);
    let health = HealthBoard::new(name.clone(), secret, scopes.clone());
    let (store, mut writer) = Store::<dyn Object>::new(seed);
    let lingers = options.linger.is_some_and(|time| !time.is_zero());
    if let Some(time) = options.linger.filter(|_| lingers) {
        let (objects, bytes) = options.linger_at_most.unwrap_or((10_000, 64 * 1024 * 1024));
        writer.linger(LingerLimits { time, objects, bytes }, Instant::now());
    }
    // This is the first index of a new store, so its name is free.
    let _ = writer.add_index(NAMESPACE_INDEX, |object: &dyn Object, add: &mut dyn FnMut(&str)| {
        object.id().key.namespace().into_iter().for_each(add);
    });
    let writing = Arc::new(Writing::new(writer, Processor::new(resync_period)));
    let queue = queue_in(options.queue_order.unwrap_or_default());
    let (sink, changes) = Changes::boxed(queue, store.clone(), options.queue_bytes.unwrap_or(crate::apply::BYTES));
    let by_namespace = namespace_source.is_some();
    let deadline = options.progress_deadline.unwrap_or(PROGRESS_DEADLINE);
    let questions = sources.into_iter().map(|(scope, source)| Questions { scope, source, deadline });
    let (outdated, waiters) = (Outdated::default(), Waiters::default());
    let core = Arc::new(Core {
        name,
        number: MADE.fetch_add(1, Ordering::Relaxed),
        resource,
        scopes: Scopes::new(questions, selection, namespace_source),
        by_namespace,
        first_scopes: scopes.iter().cloned().collect(),
        progress_deadline: deadline,
        store,
        sink,
        outdated: outdated.clone(),
        writing: writing.clone(),
        health: health.clone(),
        progress: progress.subscribe(),
        waiters: waiters.clone(),
        listed_for_latest: Mutex::new(None),
        resync_period,
        figures,
        on_stop: Mutex::new(None),
        idle_check: OnceLock::new(),
        own_stores: OnceLock::new(),
    });
    let follower = Box::new(Follower { core: core.clone(), options, seed, first_lists, recovery });
    let applier = Box::new(Applier::new(writing, scopes, outdated, (progress, waiters), health, memory_factor));
    let _ = core.own_stores.set(core.store.handles());
    let lifecycle = Mutex::new(Lifecycle::New { follower, applier, changes, handlers: Vec::new() });
    let (cancel, ending) = (CancellationToken::new(), tokio::sync::Mutex::default());
    let (given_up, handles) = (CancellationToken::new(), AtomicUsize::new(0));
    Held::new(InformerShared { core, cancel, lifecycle, ending, given_up, handles })
}

/// Returns the last segment of the name of a type, which is enough to identify an informer.
fn type_name<K>() -> String {
    let name = std::any::type_name::<K>();
    let name = name.split('<').next().unwrap_or(name);
    name.rsplit("::").next().unwrap_or(name).to_owned()
}

impl<T> fmt::Debug for InformerBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerBuilder")
            .field("name", &self.settings.name)
            .field("options", &self.settings.options)
            .finish_non_exhaustive()
    }
}
