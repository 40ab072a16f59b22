//! One simulated cluster: a server, an informer, handlers, writes and faults.

use std::hash::{Hash as _, Hasher as _};
use std::time::Duration;

use kube_embedded_apiserver::{History, Saved};
use kube_informer::{
    Index, KeyRef, ListReason, NamespaceState, ObjectKey, ResourceVersion, SharedInformer, SharedInformerFactory,
    WaitError,
};
use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::lingering::Departed;
use crate::members::Member;
use crate::oracle::{SharedWitness, Truth};
use crate::plan::{NAMESPACES, Plan};
use crate::rhythm::Rhythm;
use crate::subject::Subject;
use crate::{Report, faults, lingering, log};

pub(crate) const RESOURCE: &str = "configmaps";
/// The informer notices a restored server within this time, whatever the state of its connection.
const RESTORED: Duration = Duration::from_secs(900);

pub(crate) struct World<T: Subject> {
    pub(crate) plan: Plan,
    pub(crate) random: StdRng,
    saved: Option<Saved>,
    factory: SharedInformerFactory,
    pub(crate) informer: SharedInformer<T>,
    pub(crate) by_label: Option<Index<T>>,
    pub(crate) rhythm: Rhythm,
    /// The time of the informer's start.
    began: Instant,
    /// The witnesses of all handlers so far, removed ones included.
    pub(crate) witnesses: Vec<SharedWitness>,
    pub(crate) members: Vec<Member>,
    /// True until all handlers have certainly received the state of a restored server. Versions may go back until then.
    pub(crate) restored: bool,
    /// True unless the server was restored to an older state, or a fault made it look like that.
    pub(crate) honest: bool,
    /// Checks the lingering objects, if deleted objects linger.
    departed: Option<Departed>,
    writes: u64,
    heartbeats: u64,
}

impl<T: Subject> World<T> {
    pub(crate) fn new(plan: Plan, random: StdRng) -> Self {
        let factory = SharedInformerFactory::builder(plan.server.client())
            .select(plan.selection())
            .options(plan.options.clone())
            .build();
        let informer = new_informer(&factory, &plan);
        let rhythm = Rhythm::of(&informer, &plan.server);
        let departed = plan.lingers.then(Departed::new);
        let mut world = Self {
            random,
            departed,
            plan,
            saved: None,
            factory,
            informer,
            by_label: None,
            rhythm,
            began: Instant::now(),
            witnesses: Vec::new(),
            members: Vec::new(),
            restored: false,
            honest: true,
            writes: 0,
            heartbeats: 0,
        };
        for _ in 0..world.random.random_range(0..world.plan.keys + 10) {
            world.write();
        }
        for _ in 0..world.random.random_range(1..4) {
            world.add_member();
        }
        world
    }

    /// Runs a random sequence of writes and faults.
    pub(crate) async fn live(&mut self) {
        if self.random.random_bool(0.3) {
            self.break_something();
        }
        self.factory.start().unwrap();
        self.began = Instant::now();
        for _ in 0..self.random.random_range(100..600) {
            match self.random.random_range(0..1000) {
                0..720 => drop(self.write()),
                720..810 => self.pause().await,
                810..885 if self.random.random_bool(self.plan.trouble) => self.break_something(),
                885..892 => self.restore().await,
                892..900 => {
                    log::note(|| "faults are cleared".to_owned());
                    self.plan.server.faults().clear();
                }
                900..922 if self.members.len() < 6 => self.add_member(),
                922..936 => self.remove_member().await,
                936..944 => self.add_index(),
                944..949 => self.begin_anew().await,
                949..955 => self.saved = Some(self.plan.server.save()),
                955..965 => self.relist().await,
                965..970 => self.verify().await,
                970..982 => self.write_and_wait().await,
                982..985 if !self.plan.namespaces.is_empty() => self.change_namespaces().await,
                985..1000 => self.write_at_resync().await,
                _ => self.pause().await,
            }
            self.check();
        }
    }

    /// Checks what must be true at any time.
    fn check(&mut self) {
        self.check_members();
        if let Some(departed) = &mut self.departed {
            departed.check(&self.informer);
        }
        self.rhythm.look(self.informer.health().is_ready(), &self.plan.server, self.plan.page_size);
        let health = self.informer.health();
        assert!(!health.stopped, "the informer has stopped: {health:#?}");
        let restores = health.counts.lists.get(&ListReason::Restored).copied().unwrap_or_default();
        assert!(restores == 0 || !self.honest, "counted a restore that did not happen: {health:#?}");
    }

    /// Creates, updates or deletes a random object, sometimes an undecodable one. Returns its key.
    pub(crate) fn write(&mut self) -> ObjectKey {
        let namespace = *NAMESPACES.choose(&mut self.random).unwrap();
        let name = format!("c{}", self.random.random_range(0..self.plan.keys / NAMESPACES.len()));
        let number = self.random.random_range(0..1000).to_string();
        let unreadable = self.random.random_bool(self.plan.unreadable);
        let data = match self.random.random_range(0..10) {
            _ if unreadable => json!({"n": 5}),
            0 => json!({"n": number, "long": "x".repeat(self.random.random_range(100..3000))}),
            _ => json!({"n": number}),
        };
        let labels = json!({"l": self.random.random_range(0..3).to_string()});
        let body = json!({"metadata": {"name": name, "labels": labels}, "data": data});
        let server = &self.plan.server;
        let exists = server.get(RESOURCE, Some(namespace), &name).is_ok();
        let outcome = match (exists, self.random.random_range(0..10)) {
            (false, _) | (true, 0..7) if unreadable => server.put_as_is(RESOURCE, Some(namespace), body),
            (false, _) => server.create(RESOURCE, Some(namespace), body),
            (true, 0..7) => server.update(RESOURCE, Some(namespace), body),
            (true, 7..9) => server.delete(RESOURCE, Some(namespace), &name),
            (true, _) => {
                server.delete(RESOURCE, Some(namespace), &name).unwrap();
                server.put_as_is(RESOURCE, Some(namespace), body)
            }
        };
        outcome.unwrap();
        log::note(|| format!("write {namespace}/{name}@{}", server.revision()));
        self.writes += 1;
        ObjectKey::from(KeyRef::new(namespace, &name))
    }

    /// Waits: not at all, briefly, or so long that watches time out.
    async fn pause(&mut self) {
        let pause = match self.random.random_range(0..10) {
            0..4 => return tokio::task::yield_now().await,
            4..8 => Duration::from_millis(self.random.random_range(1..2000)),
            8 => Duration::from_secs(self.random.random_range(1..60)),
            _ => Duration::from_secs(self.random.random_range(60..700)),
        };
        if pause < Duration::from_secs(60) {
            return tokio::time::sleep(pause).await;
        }
        let (start, lists) = (Instant::now(), self.failed_lists());
        if self.plan.busy {
            self.heartbeat();
        }
        self.listen_for_bookmarks(pause).await;
        self.check_lists(start, lists);
    }

    /// Writes to another resource, so that the server has a new version for bookmarks.
    pub(crate) fn heartbeat(&mut self) {
        self.heartbeats += 1;
        let node = json!({"metadata": {"name": "n", "labels": {"beat": self.heartbeats.to_string()}}});
        let server = &self.plan.server;
        server.update("nodes", None, node.clone()).or_else(|_| server.create("nodes", None, node)).unwrap();
    }

    /// Waits without writes, and checks the number of lists.
    pub(crate) async fn wait_and_count_lists(&mut self, pause: Duration) {
        let (start, lists) = (Instant::now(), self.failed_lists());
        tokio::time::sleep(pause).await;
        self.check_lists(start, lists);
    }

    /// Waits 10 seconds for events in transit, and then up to two minutes, in which two bookmarks arrive.
    pub(crate) async fn listen_for_bookmarks(&mut self, pause: Duration) {
        let (moment, minute) =
            (Duration::from_secs(10), ((pause - Duration::from_secs(10)) / 2).min(Duration::from_secs(61)));
        tokio::time::sleep(moment).await;
        let faults = self.plan.server.faults().counts();
        let before = Rhythm::sample(&self.informer.health());
        tokio::time::sleep(minute).await;
        let middle = Rhythm::sample(&self.informer.health());
        tokio::time::sleep(minute).await;
        if self.plan.server.faults().counts() == faults {
            self.rhythm.quiet_between(&[before, middle, Rhythm::sample(&self.informer.health())]);
        }
        tokio::time::sleep(pause - moment - 2 * minute).await;
    }

    /// Checks the number of lists. A server that refuses lists is probed every 1 to 2 seconds. Between answered lists
    /// the delays double up to 30 seconds, and two healthy minutes reset them.
    fn check_lists(&self, since: Instant, before: u64) {
        let (minutes, parts) = (since.elapsed().as_secs() / 60, self.plan.namespaces.len().max(1) as u64);
        let (lists, bound) = (self.failed_lists() - before, parts * (20 + 60 * minutes));
        assert!(lists <= bound, "{lists} lists in {minutes} minutes, at most {bound} are allowed");
    }

    /// Returns how many lists a failure caused.
    fn failed_lists(&self) -> u64 {
        let counts = self.informer.health().counts;
        let of = |reason| counts.lists.get(&reason).copied().unwrap_or_default();
        of(ListReason::Failed) + of(ListReason::Expired)
    }

    fn break_something(&mut self) {
        let server = &self.plan.server;
        match self.random.random_range(0..20) {
            0 | 1 => {
                log::note(|| "disconnect".to_owned());
                server.disconnect_watches();
            }
            2 | 3 => {
                log::note(|| format!("compact at {}", server.revision()));
                server.compact();
            }
            4 => {
                let history = *[History::Kept, History::Lost].choose(&mut self.random).unwrap();
                log::note(|| format!("restart, history {history:?}"));
                server.restart(history);
            }
            _ => {
                let fault = faults::any(&mut self.random);
                log::note(|| format!("fault {fault:?}"));
                if faults::goes_back(&fault) {
                    self.honest = false;
                    self.witnesses.iter().for_each(|witness| witness.lock().unwrap().may_repeat());
                }
                // Some faults last until they are cleared.
                let times = if self.random.random_bool(0.1) { 1000 } else { self.random.random_range(1..4) };
                server.faults().add(fault.resource(RESOURCE).times(times));
            }
        }
    }

    /// Restores the server to an older state with older versions. No writes follow until the informer must have
    /// noticed: once the new history reaches the old version, versions alone do not distinguish them.
    async fn restore(&mut self) {
        let Some(saved) = &self.saved else { return };
        self.witnesses.iter().for_each(|witness| witness.lock().unwrap().versions_may_go_back());
        (self.restored, self.honest) = (true, false);
        self.plan.server.restore(saved);
        log::note(|| format!("restore to {}", self.plan.server.revision()));
        self.plan.server.faults().clear();
        tokio::time::sleep(RESTORED).await;
        // For an undecodable object the cache still holds the state from before the restore.
        if self.difference(&self.truth()).is_none() && self.informer.health().undecodable.is_empty() {
            self.members.iter().for_each(|member| member.witness.lock().unwrap().new_epoch());
            self.restored = false;
        }
    }

    fn add_index(&mut self) {
        let label = |object: &T| object.label("l").map(ToOwned::to_owned);
        self.by_label = Some(self.informer.add_index("label", label).unwrap());
    }

    /// Stops the informer and replaces it with a new one.
    async fn begin_anew(&mut self) {
        log::note(|| "a new informer replaces the old one".to_owned());
        if self.random.random_bool(0.5) {
            self.informer.stop().await;
        } else {
            // No call of a handler takes that long.
            self.informer.stop_within(Duration::from_secs(10)).await.unwrap();
        }
        assert!(self.informer.health().stopped);
        for member in self.members.drain(..) {
            member.witness.lock().unwrap().end();
        }
        self.by_label = None;
        self.informer = new_informer(&self.factory, &self.plan);
        self.rhythm = Rhythm::of(&self.informer, &self.plan.server);
        self.departed = self.plan.lingers.then(Departed::new);
        self.began = Instant::now();
        self.add_member();
    }

    /// Requests a relist or a catch-up, and sometimes waits for it.
    async fn relist(&mut self) {
        let revision = ResourceVersion::from(self.plan.server.revision());
        let catches_up = self.random.random_bool(0.4);
        let relist = if catches_up { self.informer.wait_for_latest() } else { self.informer.relist() };
        if self.random.random_bool(0.5) {
            log::note(|| "a relist is requested".to_owned());
            return;
        }
        let limit = Duration::from_secs(self.random.random_range(1..60));
        let outcome = relist.within(limit).await;
        log::note(|| format!("a relist was waited for: {outcome:?}"));
        match outcome {
            Ok(()) => {
                let reached = self.informer.store().version().is_some_and(|version| version.is_at_least(&revision));
                // An unchanged cache has caught up at its own version.
                let difference = self.cache_difference(&self.truth()).filter(|_| !reached);
                // After an inconclusive list the cache may differ.
                let inconclusive = self.informer.health().parts.iter().any(|part| part.inconclusive);
                let equal = catches_up && (inconclusive || difference.is_none());
                assert!(reached || equal || !self.honest, "a relist shows an older state: {difference:?}");
            }
            Err(error) => assert!(matches!(error, WaitError::TimedOut { .. }), "{error}"),
        }
    }

    /// Compares the cache with the server with `verify`.
    async fn verify(&mut self) {
        let (before, faults) = (self.difference(&self.truth()), self.plan.server.faults().counts());
        let outcome = self.informer.verify().await;
        log::note(|| format!("verified: {outcome:?}"));
        let truth = self.truth();
        let right = before.is_none() && self.difference(&truth).is_none();
        if let Ok(found) = outcome
            && right
            && self.plan.server.faults().counts() == faults
        {
            let marked = self.informer.health().undecodable;
            assert!(found.iter().all(|found| marked.contains_key(found.key())), "verify found {found:?}");
        }
    }

    /// Writes, and waits until the cache has the write.
    async fn write_and_wait(&mut self) {
        let (key, version) = (self.write(), ResourceVersion::from(self.plan.server.revision()));
        let limit = Duration::from_secs(self.random.random_range(1..100));
        let outcome = if self.random.random_bool(0.8) {
            self.informer.wait_for_version(&version).within(limit).await
        } else {
            // Waits for the object itself: the cache shows the written state or a later one.
            let there = self.truth().readable().contains_key(&key);
            let is_new = |object: &T| ResourceVersion::from(object.id().version).is_at_least(&version);
            let seen = self.informer.wait_for(&key, |object| object.is_some_and(is_new) || !there && object.is_none());
            seen.within(limit).await.map(|_| ())
        };
        log::note(|| format!("version {version} was waited for: {outcome:?}"));
        match outcome {
            Ok(()) => {
                let (truth, cache) = (self.truth(), self.informer.store().snapshot());
                let there = truth.readable().get(&key);
                let there = there.map(|object| object["metadata"]["resourceVersion"].as_str().unwrap());
                let health = self.informer.health();
                // After an inconclusive list the cache may differ.
                let inconclusive = health.parts.iter().any(|part| part.inconclusive);
                let unreadable = inconclusive || health.undecodable.contains_key(&key);
                let here = cache.get(&key).map(|object| object.id().version);
                assert!(
                    here == there || unreadable || !self.honest,
                    "{key} is at {here:?} in the cache, at {there:?} on the server"
                );
            }
            Err(WaitError::TimedOut { .. }) => {}
            Err(WaitError::VersionsRestarted | WaitError::NotComparable { .. }) if !self.honest => {}
            Err(error) => panic!("version {version}: {error}"),
        }
    }

    /// Follows other namespaces, and sometimes waits until the cache holds exactly their objects.
    async fn change_namespaces(&mut self) {
        let mut namespaces: Vec<_> = NAMESPACES.into_iter().filter(|_| self.random.random_bool(0.5)).collect();
        if namespaces.is_empty() {
            namespaces.push("b");
        }
        log::note(|| format!("follows {namespaces:?} instead of {:?}", self.plan.namespaces));
        self.plan.namespaces = namespaces;
        self.rhythm.forget();
        self.departed = None; // Objects leave the cache that are not deleted, until the change is applied.
        let change = self.informer.set_namespaces(&self.plan.namespaces).unwrap();
        if self.random.random_bool(0.5) {
            return;
        }
        let outcome = change.within(Duration::from_secs(self.random.random_range(1..60))).await;
        log::note(|| format!("the change was waited for: {outcome:?}"));
        if outcome.is_ok() {
            self.departed = self.plan.lingers.then(Departed::new);
            let cache = self.informer.store().snapshot();
            let left =
                cache.iter().find(|object| !self.plan.namespaces.contains(&object.id().key.namespace().unwrap()));
            assert!(left.is_none(), "an object of another namespace is left");
            let has_state = |name: &&str| self.informer.namespace_state(name) == NamespaceState::Listed;
            assert!(self.plan.namespaces.iter().all(has_state), "a namespace is not listed");
        }
    }

    /// Writes at the time of a resync.
    async fn write_at_resync(&mut self) {
        let Some(period) = self.plan.resync_period else { return };
        let periods = self.began.elapsed().as_millis() / period.as_millis() + 1;
        tokio::time::sleep_until(self.began + period * periods as u32).await;
        for _ in 0..self.random.random_range(1..30) {
            self.write();
            if self.random.random_bool(0.3) {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Returns the objects on the server that the informer follows.
    pub(crate) fn truth(&self) -> Truth {
        let (_, objects) = self.plan.server.list(RESOURCE).unwrap();
        let Plan { namespaces, label, .. } = &self.plan;
        let followed = |object: &Value| {
            let namespace = object["metadata"]["namespace"].as_str().unwrap();
            (namespaces.is_empty() || namespaces.contains(&namespace))
                && label.is_none_or(|label| object["metadata"]["labels"]["l"] == label)
        };
        Truth::new(objects.into_iter().filter(followed), |object| object["data"]["n"].is_string())
    }

    /// Stops everything, and returns the report.
    pub(crate) async fn end(self) -> Report {
        let compared = self.informer.store().len() as u64;
        if self.plan.lingers {
            lingering::end(&self.informer).await;
        }
        self.informer.stop().await;
        let mut trace = std::hash::DefaultHasher::new();
        for witness in &self.witnesses {
            let witness = witness.lock().unwrap();
            trace.write_u64(witness.told);
            trace.write_u64(witness.trace());
        }
        for request in self.plan.server.requests() {
            format!("{request:?}").hash(&mut trace);
        }
        let counts = self.plan.server.faults().counts();
        Report {
            trace: if self.plan.blocking { 0 } else { trace.finish() },
            writes: self.writes,
            told: self.witnesses.iter().map(|witness| witness.lock().unwrap().told).sum(),
            compared,
            rhythms: u64::from(self.rhythm.is_known()),
            faults: counts.into_iter().map(|(fault, count)| (fault.to_owned(), count as u64)).collect(),
        }
    }
}

fn new_informer<T: Subject>(factory: &SharedInformerFactory, plan: &Plan) -> SharedInformer<T> {
    // The namespaces may have changed since the factory was made.
    let mut selection = plan.selection();
    if let Some(label) = plan.label {
        selection = selection.labels(format!("l={label}")).unwrap();
    }
    factory.informer_with(T::request().select(selection)).unwrap()
}
