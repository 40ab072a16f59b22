//! The namespaces that an informer follows: one reflector each. The program may change them while the informer runs.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::{OwnedRwLockReadGuard, RwLock, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, info};

use super::tasks::CoreSink;
use super::verify::Questions;
use super::{Core, Ended, InformerShared, Lookup, SharedInformer, Wait};
use crate::health::InformerError;
use crate::lock::Mutex;
use crate::object::{Object, Scope};
use crate::queue::{Delta, ScopeChange};
use crate::reflector::{Recovery, Reflector, Wiring};
use crate::settings::{InformerOptions, Selection, is_namespace};
use crate::source::feed::Feed;

/// Makes the source of one more namespace.
pub(super) type NamespaceSource = Arc<dyn Fn(&str) -> Arc<dyn Feed<dyn Object>> + Send + Sync>;

/// Why the namespaces of an informer could not be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScopeError {
    /// The string is not a valid name of a namespace.
    #[error("{0:?} is not the name of a namespace: small letters, digits and `-`, at most 63 of them")]
    Namespace(String),
    /// The informer was requested for all namespaces, or its resource has none.
    #[error("informer {0} follows the whole resource; select namespaces in its request to be able to change them")]
    Whole(String),
    /// The informer was stopped.
    #[error("informer {0} was stopped")]
    Stopped(String),
}

/// The scopes that an informer follows.
pub(super) struct Scopes {
    state: Mutex<ScopesState>,
    /// The number of the last change.
    changes: watch::Sender<u64>,
    source: Option<NamespaceSource>,
}

struct ScopesState {
    followed: BTreeMap<Scope, FollowedScope>,
    selection: Arc<Selection>,
    /// The number of the last relist request.
    relists: u64,
}

/// One scope that the informer follows.
struct FollowedScope {
    /// The number of the change that added it. A namespace that was removed and added again is another scope.
    since: u64,
    /// True once its reflector runs. Before that, the cache may still hold objects of an earlier scope of this name.
    active: bool,
    /// Each [`NamespaceGuard`] holds a read guard.
    held: Arc<RwLock<()>>,
    questions: Questions,
    /// The number of the last relist request. Each reflector has a channel of its own, so that they wake in their order.
    relists: watch::Sender<u64>,
}

impl FollowedScope {
    fn new(since: u64, questions: Questions, relists: u64) -> Self {
        Self { since, active: false, held: Arc::default(), questions, relists: watch::Sender::new(relists) }
    }
}

impl Scopes {
    pub(super) fn new(
        sources: impl IntoIterator<Item = Questions>,
        selection: Selection,
        source: Option<NamespaceSource>,
    ) -> Self {
        let followed = sources.into_iter().map(|questions| {
            let scope = questions.scope.clone();
            (scope, FollowedScope::new(0, questions, 0))
        });
        let state = ScopesState { followed: followed.collect(), selection: Arc::new(selection), relists: 0 };
        Self { state: Mutex::new(state), changes: watch::Sender::new(0), source }
    }

    /// Returns the selection with the current namespaces.
    pub(super) fn selection(&self) -> Arc<Selection> {
        self.state.lock().selection.clone()
    }

    /// Returns the sources that can be queried; none once the informer has stopped.
    pub(super) fn questions(&self) -> Vec<Questions> {
        self.state.lock().followed.values().map(|followed| followed.questions.clone()).collect()
    }

    /// Returns the source of the first scope.
    pub(super) fn first_question(&self) -> Option<Questions> {
        self.state.lock().followed.values().next().map(|followed| followed.questions.clone())
    }

    /// Requests a relist of every scope, and returns the number of the request.
    pub(super) fn relist(&self) -> u64 {
        let mut state = self.state.lock();
        state.relists += 1;
        let request = state.relists;
        for followed in state.followed.values() {
            followed.relists.send_replace(request);
        }
        request
    }

    /// Returns true if the program has changed the namespaces.
    #[cfg(feature = "kube")]
    pub(super) fn have_changed(&self) -> bool {
        *self.changes.borrow() > 0
    }

    /// Returns the scopes, with the numbers of the changes that added them.
    fn followed(&self) -> BTreeMap<Scope, u64> {
        self.state.lock().followed.iter().map(|(scope, followed)| (scope.clone(), followed.since)).collect()
    }

    /// Marks a scope as active, and returns what its reflector needs; `None` if it has changed meanwhile.
    fn activate(&self, scope: &Scope, since: u64) -> Option<ScopeWiring> {
        let mut state = self.state.lock();
        let followed = state.followed.get_mut(scope).filter(|followed| followed.since == since)?;
        followed.active = true;
        let (source, relist_requests) = (followed.questions.source.clone(), followed.relists.subscribe());
        Some(ScopeWiring { since, held: followed.held.clone(), source, relist_requests })
    }

    /// Drops the sources: the informer has stopped.
    pub(super) fn clear(&self) {
        let dropped = std::mem::take(&mut self.state.lock().followed);
        drop(dropped); // Outside the lock: a source is user code.
    }

    /// Sets the namespaces, and returns the number of the change.
    fn set(&self, namespaces: BTreeSet<String>, core: &Core) -> Result<u64, ScopeError> {
        let source = self.source.as_ref().ok_or_else(|| ScopeError::Whole(core.name.clone()))?;
        let mut made = BTreeMap::new();
        let mut state = loop {
            let state = self.state.lock();
            let is_missing =
                |name: &&String| !state.followed.contains_key(&scope_of(name)) && !made.contains_key(*name);
            let missing: Vec<String> = namespaces.iter().filter(is_missing).cloned().collect();
            if missing.is_empty() {
                break state;
            }
            drop(state); // A source is user code, so sources are made and dropped outside the lock.
            made.extend(missing.into_iter().map(|name| {
                let source = source(&name);
                (name, source)
            }));
        };
        let number = *self.changes.borrow() + 1;
        let dropped = take_where(&mut state.followed, |scope, _| !has(&namespaces, scope));
        // A reflector that begins after a relist request asks for the most recent state. An older one, from the memory of
        // an API server that lags, could lack objects that the program has written.
        state.relists += 1;
        let relists = state.relists;
        for namespace in &namespaces {
            let Entry::Vacant(vacant) = state.followed.entry(scope_of(namespace)) else { continue };
            let Some(source) = made.remove(namespace) else { continue };
            let questions = Questions { scope: scope_of(namespace), source, deadline: core.progress_deadline };
            vacant.insert(FollowedScope::new(number, questions, relists));
        }
        state.selection =
            Arc::new(Selection { namespaces: Some(namespaces.into_iter().collect()), ..(*state.selection).clone() });
        core.health.set_scopes(state.followed.keys().cloned().collect());
        self.changes.send_replace(number);
        drop(state);
        drop((dropped, made));
        Ok(number)
    }
}

/// Checks names of namespaces.
pub(super) fn valid<S: AsRef<str>>(namespaces: impl IntoIterator<Item = S>) -> Result<BTreeSet<String>, ScopeError> {
    let check = |name: S| match is_namespace(name.as_ref()) {
        true => Ok(name.as_ref().to_owned()),
        false => Err(ScopeError::Namespace(name.as_ref().to_owned())),
    };
    namespaces.into_iter().map(check).collect()
}

/// Removes the entries for which a condition is true, and returns them.
fn take_where<V>(map: &mut BTreeMap<Scope, V>, condition: impl Fn(&Scope, &V) -> bool) -> Vec<(Scope, V)> {
    let taken: Vec<Scope> =
        map.iter().filter(|(scope, value)| condition(scope, value)).map(|(scope, _)| scope.clone()).collect();
    taken.into_iter().filter_map(|scope| map.remove_entry(&scope)).collect()
}

fn scope_of(namespace: &str) -> Scope {
    Some(namespace.into())
}

fn has(namespaces: &BTreeSet<String>, scope: &Scope) -> bool {
    scope.as_deref().is_some_and(|namespace| namespaces.contains(namespace))
}

/// Whether an informer holds the objects of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamespaceState {
    /// The informer follows the namespace, and its list is in the cache.
    Listed,
    /// The informer follows the namespace, and its first list is not in the cache yet.
    Pending,
    /// The informer does not follow the namespace.
    OutOfScope,
}

impl<T: Object> SharedInformer<T> {
    /// Follows these namespaces from now on, and no others. Returns a wait that ends when the cache holds exactly their
    /// objects; the change is made even if nothing awaits it.
    ///
    /// The informer lists and watches the added namespaces. The objects of the namespaces that are left out leave the
    /// cache, and handlers receive [`Deleted::OutOfScope`](crate::Deleted::OutOfScope) for each of them, because they
    /// may still exist. The other namespaces are not disturbed. No namespace at all is allowed.
    ///
    /// All handles of the informer see the change. A later request to the factory does not share an informer whose
    /// namespaces have changed: it gets one of its own.
    ///
    /// A controller never reconciles a key of a namespace that its informer does not follow. It reconciles a key only
    /// while every informer of a kind that it owns holds the namespace, and holds the namespace until the reconcile
    /// returns ([`hold_namespace`](Self::hold_namespace)); therefore a reconcile must not wait for the removal of its own
    /// namespace. Other programs, and reconciles that read caches of other kinds, must distinguish an absent object from
    /// one that its informer does not follow: [`lookup`](Self::lookup) does so, and [`Store::get`](crate::Store::get)
    /// does not.
    ///
    /// ```
    /// use kube_informer::{Deleted, Event, InformerRequest, Selection};
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::SharedInformerFactory;
    /// # doc_server::with(async |server| {
    /// # let factory = SharedInformerFactory::new(server.client());
    /// let tenants = Selection::new().namespace("web")?;
    /// let maps = factory.informer_with(InformerRequest::<ConfigMap>::new().select(tenants))?;
    /// maps.on_event(|event| if let Event::Deleted(Deleted::OutOfScope(map)) = event {
    ///     println!("{:?} is not followed any more", map.metadata.name);
    /// });
    /// factory.start()?;
    /// factory.synced().await?;
    /// assert!(maps.store().contains("web/a"));
    /// maps.set_namespaces(["shop", "cart"])?.await?;
    /// assert!(maps.store().is_empty());
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    ///
    /// [`ScopeError`] if a name is invalid, or if the informer cannot follow other namespaces. Then nothing changes.
    pub fn set_namespaces<S: AsRef<str>>(
        &self,
        namespaces: impl IntoIterator<Item = S>,
    ) -> Result<Wait<'static, ()>, ScopeError> {
        self.shared.set_namespaces(valid(namespaces)?)
    }

    /// Returns whether the cache holds the objects of a namespace.
    ///
    /// An informer of all namespaces, or of objects without namespaces, follows every namespace.
    pub fn namespace_state(&self, namespace: &str) -> NamespaceState {
        self.shared.core.hold(namespace).map_or_else(|state| state, |_| NamespaceState::Listed)
    }

    /// Returns the number of the last [`set_namespaces`](Self::set_namespaces) call whose change is complete: the cache
    /// holds exactly the objects of those namespaces. A program that derives state from single objects computes it again
    /// when this number grows, because objects may have been deleted while their namespace was not followed.
    pub fn namespace_changes(&self) -> u64 {
        self.shared.core.progress.borrow().listed_scope_change
    }

    /// Keeps a namespace in the cache until the guard is dropped: [`set_namespaces`](Self::set_namespaces) waits for the
    /// guard before it removes the objects. So a program that reads several times never sees half of a removal.
    ///
    /// # Errors
    ///
    /// The state of the namespace, if it is not listed.
    pub fn hold_namespace(&self, namespace: &str) -> Result<NamespaceGuard, NamespaceState> {
        self.shared.core.hold(namespace)
    }
}

/// Keeps the objects of a namespace in the cache; see [`SharedInformer::hold_namespace`].
#[derive(Debug)]
#[must_use = "the namespace may leave the cache once the guard is dropped"]
pub struct NamespaceGuard {
    /// `None` if the informer does not follow single namespaces.
    _held: Option<OwnedRwLockReadGuard<()>>,
}

impl InformerShared {
    fn set_namespaces(self: &Arc<Self>, namespaces: BTreeSet<String>) -> Result<Wait<'static, ()>, ScopeError> {
        let core = &self.core;
        if self.is_stopped() {
            return Err(ScopeError::Stopped(core.name.clone()));
        }
        let number = core.scopes.set(namespaces, core)?;
        let (shared, seen) = (self.clone(), self.clone());
        let done =
            move |now: &crate::apply::StoreProgress| (now.scope_change >= number && now.all_listed).then_some(());
        let wait = async move { shared.reach(done).await };
        Ok(Wait::new(wait, move || seen.sight()))
    }

    /// Returns true if the program has changed the namespaces of this informer.
    #[cfg(feature = "kube")]
    pub(crate) fn has_changed_scope(&self) -> bool {
        self.core.scopes.have_changed()
    }
}

impl Core {
    fn hold(&self, namespace: &str) -> Result<NamespaceGuard, NamespaceState> {
        if !self.by_namespace {
            return Ok(NamespaceGuard { _held: None });
        }
        let held = {
            let state = self.scopes.state.lock();
            let followed = state.followed.get(&scope_of(namespace)).ok_or(NamespaceState::OutOfScope)?;
            followed.held.clone().try_read_owned().ok().filter(|_| followed.active)
        };
        // From here on the namespace cannot leave.
        let listed = self.writing.lock().listed.contains(namespace);
        match held.filter(|_| listed) {
            Some(held) => Ok(NamespaceGuard { _held: Some(held) }),
            None => Err(NamespaceState::Pending),
        }
    }
}

impl<T> Lookup<T> {
    /// Returns true if the informer does not hold the objects of this namespace, so that nothing is known about the key.
    pub fn is_out_of_scope(&self) -> bool {
        matches!(self, Self::OutOfScope)
    }
}

/// Runs the reflectors of an informer, and starts and ends them when its scopes change.
pub(super) struct Follower {
    pub(super) core: Arc<Core>,
    pub(super) options: InformerOptions,
    pub(super) seed: u64,
    pub(super) first_lists: Option<Arc<Semaphore>>,
    pub(super) recovery: Recovery,
}

/// What the reflector of a scope needs.
struct ScopeWiring {
    since: u64,
    held: Arc<RwLock<()>>,
    source: Arc<dyn Feed<dyn Object>>,
    relist_requests: watch::Receiver<u64>,
}

/// A reflector that runs.
struct RunningReflector {
    /// The number of the change that added its scope.
    since: u64,
    held: Arc<RwLock<()>>,
    cancel: CancellationToken,
    /// Cancelled once its task has ended.
    ended: CancellationToken,
}

impl Follower {
    /// Runs until cancelled, and then waits for all reflectors.
    pub(super) async fn run(self, cancel: CancellationToken) {
        let mut reflectors = JoinSet::new();
        cancel.run_until_cancelled(self.follow(&mut reflectors, &cancel)).await;
        while reflectors.join_next().await.is_some() {}
    }

    async fn follow(&self, reflectors: &mut JoinSet<()>, cancel: &CancellationToken) {
        let core = &self.core;
        let mut changes = core.scopes.changes.subscribe();
        let mut running: BTreeMap<Scope, RunningReflector> = BTreeMap::new();
        // The scopes that the applier knows, with the numbers of the changes that added them.
        let mut applied: BTreeMap<Scope, u64> = core.first_scopes.iter().map(|scope| (scope.clone(), 0)).collect();
        // The scopes that the program still holds.
        let mut held: BTreeMap<Scope, Arc<RwLock<()>>> = BTreeMap::new();
        let (mut complete, mut made) = (0, 0);
        loop {
            let number = *changes.borrow_and_update();
            let followed = core.scopes.followed();
            let stays = |scope: &Scope, since: u64| followed.get(scope) == Some(&since);
            let ending = take_where(&mut running, |scope, reflector| !stays(scope, reflector.since));
            ending.iter().for_each(|(_, reflector)| reflector.cancel.cancel());
            for (scope, reflector) in ending {
                // Its last change is in the queue before the change of the scope.
                reflector.ended.cancelled().await;
                held.insert(scope, reflector.held);
            }
            held.retain(|_, held| held.try_write().is_err());
            if number > complete {
                let leaves = |scope: &Scope, since: &u64| !stays(scope, *since) && !held.contains_key(scope);
                let left: Vec<Scope> = take_where(&mut applied, leaves).into_iter().map(|(scope, _)| scope).collect();
                let is_new = |(scope, _): &(&Scope, &u64)| !applied.contains_key(*scope);
                let added: Vec<_> =
                    followed.iter().filter(is_new).map(|(scope, since)| (scope.clone(), *since)).collect();
                info!(added = added.len(), left = left.len(), held = held.len(), "namespaces change");
                applied.extend(added.iter().cloned());
                complete = if held.is_empty() { number } else { complete };
                let added = added.into_iter().map(|(scope, _)| scope).collect();
                core.sink.push(Delta::ScopeChanged(ScopeChange { added, left, number: complete }), 0).await;
                core.sink.settled().await;
            }
            for (scope, since) in followed.into_iter().filter(|(scope, since)| applied.get(scope) == Some(since)) {
                if !running.contains_key(&scope)
                    && let Some(wiring) = core.scopes.activate(&scope, since)
                {
                    let reflector = self.reflector(scope.clone(), &wiring, made);
                    running.insert(scope, self.spawn(reflectors, reflector, wiring, cancel));
                    made += 1;
                }
            }
            loop {
                let released = held.values().next().cloned();
                let released = async {
                    match released {
                        Some(held) => drop(held.write().await),
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    changed = changes.changed() => match changed {
                        Ok(()) => break,
                        Err(_) => std::future::pending().await, // The core is gone; nothing can change any more.
                    },
                    () = released => break,
                    Some(_) = reflectors.join_next() => {}
                }
            }
        }
    }

    fn reflector(&self, scope: Scope, wiring: &ScopeWiring, number: u64) -> Reflector<dyn Object, CoreSink> {
        let options = InformerOptions { seed: Some(self.seed.wrapping_add(number)), ..self.options.clone() };
        let contact = self.core.health.contact_of(&scope);
        let sink = CoreSink { core: self.core.clone(), scope: scope.clone(), contact };
        let (first_lists, recovery) = (self.first_lists.clone(), self.recovery.clone());
        let relist_requests = Some(wiring.relist_requests.clone());
        let source = wiring.source.clone();
        Reflector::over(source, sink, &options).wired(Wiring { scope, relist_requests, first_lists, recovery })
    }

    /// Starts the task of a reflector. If the reflector panics, the informer ends.
    fn spawn(
        &self,
        reflectors: &mut JoinSet<()>,
        reflector: Reflector<dyn Object, CoreSink>,
        ScopeWiring { since, held, .. }: ScopeWiring,
        informer: &CancellationToken,
    ) -> RunningReflector {
        let running = RunningReflector { since, held, cancel: informer.child_token(), ended: CancellationToken::new() };
        let (cancel, ended) = (running.cancel.clone(), running.ended.clone().drop_guard());
        let (core, informer) = (self.core.clone(), informer.clone());
        let span = core.span();
        let work: BoxFuture<'static, ()> = Box::pin(reflector.run(cancel));
        let task = async move {
            if let Err(panic) = AssertUnwindSafe(work).catch_unwind().await {
                let message = crate::panic_message(&*panic);
                core.health.report(&InformerError::Panicked { part: "the reflector", message });
                core.end(&informer, Ended::ByItself);
            }
            drop(ended);
        };
        reflectors.spawn(task.instrument(span));
        running
    }
}
