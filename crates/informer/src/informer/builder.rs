//! Configures informers.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use super::tasks::CoreSink;
use super::verify::{Questions, questions};
use super::{Core, Figures, Lifecycle, Shared, SharedInformer};
use crate::apply::{Applier, Changes, Outdated, Progress, Writing};
use crate::health::HealthBoard;
use crate::lister::NAMESPACE_INDEX;
use crate::object::{Object, ResourceType, Scope};
use crate::processor::Processor;
use crate::reflector::{PROGRESS_DEADLINE, Reflector, Wiring};
use crate::settings::InformerOptions;
use crate::source::ListWatch;
use crate::source::transform::{Transform, Transformed};
use crate::store::Store;

/// How many informers this program has made.
static MADE: AtomicU64 = AtomicU64::new(0);

/// Configures a [`SharedInformer`]; see [`SharedInformer::builder`].
pub struct InformerBuilder<T> {
    name: Option<String>,
    resource: Option<ResourceType>,
    sources: Vec<(Scope, BoxedSource<T>)>,
    transform: Option<Transform<T>>,
    options: InformerOptions,
    first_lists: Option<Arc<Semaphore>>,
    figures: Figures,
}

/// Starts a reflector whose source and whose type of source are no longer of interest.
pub(super) type ReflectorStart<T> = Box<dyn FnOnce(Arc<Core<T>>, CancellationToken) -> BoxFuture<'static, ()> + Send>;

/// Makes the start of a reflector, given its settings; and what can be asked of its source.
type BoxedSource<T> =
    Box<dyn FnOnce(InformerOptions, Wiring, Option<Transform<T>>) -> (ReflectorStart<T>, Questions) + Send>;

impl<T: Object> InformerBuilder<T> {
    pub(crate) fn new<L: ListWatch<T>>(sources: impl IntoIterator<Item = (Scope, L)>) -> Self {
        Self {
            name: None,
            resource: None,
            sources: sources.into_iter().map(|(scope, source)| (scope, boxed(source))).collect(),
            transform: None,
            options: InformerOptions::new(),
            first_lists: None,
            figures: Box::new(Vec::new),
        }
    }

    /// The name that logs, messages and metrics use; that of the resource or the type unless given.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// How the collection is asked for, and how it is kept.
    #[must_use]
    pub fn options(mut self, options: InformerOptions) -> Self {
        self.options = options;
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

    /// Which collection it is: for metrics, and for those who inspect it.
    #[must_use]
    pub fn resource(mut self, resource: ResourceType) -> Self {
        self.resource = Some(resource);
        self
    }

    #[cfg(feature = "kube")]
    pub(crate) fn boxed_transform(self, transform: Option<Transform<T>>) -> Self {
        Self { transform, ..self }
    }

    #[cfg(feature = "kube")]
    pub(crate) fn first_lists(self, first_lists: Arc<Semaphore>) -> Self {
        Self { first_lists: Some(first_lists), ..self }
    }

    #[cfg(feature = "kube")]
    pub(crate) fn figures(self, figures: impl Fn() -> Vec<(&'static str, f64)> + Send + Sync + 'static) -> Self {
        Self { figures: Box::new(figures), ..self }
    }

    /// The informer, which has not started.
    pub fn build(self) -> SharedInformer<T> {
        let Self { name, resource, sources, transform, options, first_lists, figures } = self;
        let name = name.or_else(|| resource.as_ref().map(ToString::to_string)).unwrap_or_else(type_name::<T>);
        let seed = options.seed.unwrap_or_else(rand::random);
        let resync_period = options.resync_period.filter(|period| !period.is_zero());
        let (mut relists, progress) = (Vec::new(), watch::Sender::new(Progress::default()));
        let scopes: Vec<Scope> = sources.iter().map(|(scope, _)| scope.clone()).collect();
        let health = HealthBoard::new(name.clone(), scopes.clone());
        let (store, mut writer) = Store::new(seed);
        // The first index of a new store: its name cannot be taken.
        let _ = writer.add_index(NAMESPACE_INDEX, |object: &T, add: &mut dyn FnMut(&str)| {
            object.id().key.namespace().into_iter().for_each(add);
        });
        let writing = Arc::new(Mutex::new(Writing { writer, processor: Processor::new(resync_period) }));
        let queue = options.queue_order.unwrap_or_default().queue();
        let (sink, changes) = Changes::boxed(queue, store.clone(), options.queue_bytes.unwrap_or(crate::apply::BYTES));
        let (mut reflectors, mut all_questions) = (Vec::new(), Vec::new());
        for ((scope, source), number) in sources.into_iter().zip(0..) {
            let options = InformerOptions { seed: Some(seed.wrapping_add(number)), ..options.clone() };
            let requests = watch::Sender::new(0);
            let (relist_requests, first_lists) = (Some(requests.subscribe()), first_lists.clone());
            relists.push(requests);
            let wiring = Wiring { scope, relist_requests, first_lists };
            let (start, questions) = source(options, wiring, transform.clone());
            reflectors.push(start);
            all_questions.push(questions);
        }
        let outdated = Outdated::default();
        let core = Core {
            name,
            number: MADE.fetch_add(1, Ordering::Relaxed),
            resource,
            store,
            sink,
            outdated: outdated.clone(),
            writing: writing.clone(),
            health: health.clone(),
            progress: progress.subscribe(),
            relists,
            caught_up: Mutex::new(None),
            questions: Mutex::new(all_questions),
            resync_period,
            figures,
            on_stop: Mutex::new(None),
        };
        let applier = Applier::new(writing, scopes, outdated, progress, health);
        let lifecycle = Mutex::new(Lifecycle::New { reflectors, applier, changes, handlers: Vec::new() });
        let (core, cancel, ending) = (Arc::new(core), CancellationToken::new(), tokio::sync::Mutex::default());
        SharedInformer { shared: Arc::new(Shared { core, cancel, lifecycle, ending }) }
    }
}

fn boxed<T: Object, L: ListWatch<T>>(source: L) -> BoxedSource<T> {
    let source = Arc::new(source);
    Box::new(move |options: InformerOptions, wiring: Wiring, transform| {
        let deadline = options.progress_deadline.unwrap_or(PROGRESS_DEADLINE);
        let questions = questions(source.clone(), wiring.scope.clone(), deadline);
        let start: ReflectorStart<T> = Box::new(move |core, cancel| {
            let sink = CoreSink { core, scope: wiring.scope.clone() };
            match transform {
                Some(transform) => {
                    let source = Transformed::new(source, transform);
                    Box::pin(Reflector::new(source, sink, &options).wired(wiring).run(cancel))
                }
                None => Box::pin(Reflector::new(source, sink, &options).wired(wiring).run(cancel)),
            }
        });
        (start, questions)
    })
}

/// The last part of a type's name: enough to tell informers apart.
fn type_name<K>() -> String {
    let name = std::any::type_name::<K>();
    let name = name.split('<').next().unwrap_or(name);
    name.rsplit("::").next().unwrap_or(name).to_owned()
}

impl<T> fmt::Debug for InformerBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerBuilder")
            .field("name", &self.name)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
