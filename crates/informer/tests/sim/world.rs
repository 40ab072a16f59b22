//! One simulated cluster: a server, an informer, handlers, somebody who writes, and things that go wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash as _, Hasher as _};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded_apiserver::{ApiServer, History, Saved};
use kube_informer::factory::InformerOptions;
use kube_informer::{
    Delivery, Event, HandlerHandle, HandlerOptions, Index, ObjectKey, QueueOrder, Removal, SharedInformer,
    SharedInformerFactory,
};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::witness::SharedWitness;
use crate::{Report, faults, log};

const NAMESPACES: [&str; 3] = ["a", "a-b", "b"];
/// So many objects can be there at once.
const KEYS: usize = 36;
const RESOURCE: &str = "configmaps";
/// Faults are over: within this time the cache must be right. A watch that has fallen silent, or that brings a few bytes at
/// a time, lasts up to ten minutes; then come a delay and a list.
const RECOVERY: Duration = Duration::from_secs(900);
/// An informer that hears from its server must not be wrong for longer than one such watch.
const WRONG_THOUGH_FRESH: Duration = Duration::from_secs(660);

pub(crate) struct World {
    random: StdRng,
    server: ApiServer,
    saved: Option<Saved>,
    factory: SharedInformerFactory,
    informer: SharedInformer<ConfigMap>,
    by_label: Option<Index<ConfigMap>>,
    /// What the informer follows.
    selection: Selection,
    order: QueueOrder,
    witnesses: Vec<SharedWitness>,
    handlers: Vec<(SharedWitness, HandlerHandle)>,
    /// True while it is not certain that everybody knows that the server was restored: versions may go back.
    restored: bool,
    writes: u64,
}

/// What an informer follows: namespaces, all if empty, and a label.
#[derive(Clone)]
struct Selection {
    namespaces: Vec<&'static str>,
    label: Option<&'static str>,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let bookmarks = Duration::from_secs(random.random_range(1..90));
        let history = random.random_range(5..200);
        let server = ApiServer::builder().seed(seed).bookmark_interval(bookmarks).history(history).build();
        for namespace in NAMESPACES {
            server.create("namespaces", None, json!({"metadata": {"name": namespace}})).unwrap();
        }
        let namespaces = match random.random_range(0..4) {
            0 => vec!["a"],
            1 => vec!["a", "b"],
            _ => vec![],
        };
        let label = if random.random_bool(0.3) { Some("1") } else { None };
        let order = if random.random_bool(0.3) { QueueOrder::PerObject } else { QueueOrder::Ordered };
        let mut factory = SharedInformerFactory::builder(server.client()).seed(seed).namespaces(namespaces.clone());
        if random.random_bool(0.2) {
            factory = factory.resync_period(Duration::from_secs(random.random_range(20..400)));
        }
        if random.random_bool(0.2) {
            factory = factory.relist_period(Duration::from_secs(random.random_range(20..2000)));
        }
        if random.random_bool(0.3) {
            factory = factory.streaming(false);
        }
        if random.random_bool(0.3) {
            factory = factory.page_size(random.random_range(1..10));
        }
        let factory = factory.queue_order(order).build();
        let selection = Selection { namespaces, label };
        let informer = new_informer(&factory, &selection);
        let mut world = Self {
            random,
            server,
            saved: None,
            factory,
            informer,
            by_label: None,
            selection,
            order,
            witnesses: Vec::new(),
            handlers: Vec::new(),
            restored: false,
            writes: 0,
        };
        for _ in 0..world.random.random_range(0..40) {
            world.write();
        }
        for _ in 0..world.random.random_range(1..3) {
            world.add_handler();
        }
        world
    }

    /// A while of writes and faults.
    pub(crate) async fn live(&mut self) {
        if self.random.random_bool(0.3) {
            self.break_something();
        }
        self.factory.start().unwrap();
        for _ in 0..self.random.random_range(150..400) {
            match self.random.random_range(0..1000) {
                0..760 => self.write(),
                760..860 => self.pause().await,
                860..942 => self.break_something(),
                942..950 => self.restore().await,
                950..960 => {
                    log::note(|| "faults are cleared".to_owned());
                    self.server.faults().clear();
                }
                960..975 if self.handlers.len() < 5 => self.add_handler(),
                975..983 => self.remove_handler().await,
                983..988 => self.add_index(),
                988..992 => self.begin_anew().await,
                992..996 => self.saved = Some(self.server.save()),
                _ => self.pause().await,
            }
            self.check_mailboxes();
        }
    }

    /// Nobody holds more than was agreed: so many events, or folded one of each object and one deletion that is owed; and
    /// the batch in hand, which is no larger than that.
    fn check_mailboxes(&self) {
        for (witness, handle) in &self.handlers {
            let (waits, bound) = (handle.backlog(), witness.lock().unwrap().max_backlog.max(2 * KEYS) + 2 * KEYS);
            assert!(waits <= bound, "{waits} events wait for {}, at most {bound} may", handle.name());
        }
    }

    /// No more faults: waits until the cache is right, for as long as it may take at most.
    pub(crate) async fn calm_down(&mut self) {
        log::note(|| format!("no more faults; the server is at {}", self.server.revision()));
        self.server.faults().clear();
        let start = Instant::now();
        while let Some(difference) = self.difference() {
            let health = self.informer.health();
            let fresh = health.is_watching() && health.age().is_some_and(|age| age < Duration::from_secs(10));
            assert!(!fresh || start.elapsed() < WRONG_THOUGH_FRESH, "wrong though fresh: {difference}\n{health:#?}");
            assert!(start.elapsed() < RECOVERY, "not recovered: {difference}\n{health:#?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        // What came and went in the end may still be told; after that nothing, and what is right must stay right.
        tokio::time::sleep(RECOVERY).await;
        let changes = self.changes();
        tokio::time::sleep(Duration::from_secs(1500)).await;
        assert_eq!(self.difference(), None);
        assert_eq!(self.changes(), changes, "told of a change though nothing changed");
        let found = self.informer.verify().await.unwrap();
        assert!(found.iter().all(|difference| self.is_undecodable(difference)), "verify found {found:?}");
    }

    /// Stops everything and reports.
    pub(crate) async fn end(self) -> Report {
        let compared = self.informer.store().len() as u64;
        self.informer.stop().await;
        let mut trace = std::hash::DefaultHasher::new();
        for witness in &self.witnesses {
            let witness = witness.lock().unwrap();
            trace.write_u64(witness.told);
            trace.write_u64(witness.trace.finish());
        }
        for request in self.server.requests() {
            format!("{request:?}").hash(&mut trace);
        }
        let counts = self.server.faults().counts();
        let faults = counts.into_iter().map(|(fault, count)| (fault.to_owned(), count as u64)).collect();
        let told = self.witnesses.iter().map(|witness| witness.lock().unwrap().told).sum();
        Report { trace: trace.finish(), writes: self.writes, told, compared, faults }
    }

    /// Somebody creates, changes or deletes an object; now and then one that is not as it should be.
    fn write(&mut self) {
        let namespace = *NAMESPACES.choose(&mut self.random).unwrap();
        let name = format!("c{}", self.random.random_range(0..KEYS / NAMESPACES.len()));
        let value = match self.random.random_range(0..100) {
            0 => json!(5),
            _ => json!(self.random.random_range(0..1000).to_string()),
        };
        let body = json!({
            "metadata": {"name": name, "labels": {"l": self.random.random_range(0..3).to_string()}},
            "data": {"n": value},
        });
        let exists = self.server.get(RESOURCE, Some(namespace), &name).is_ok();
        let outcome = match (exists, self.random.random_range(0..10)) {
            (false, _) => self.server.create(RESOURCE, Some(namespace), body),
            (true, 0..7) => self.server.update(RESOURCE, Some(namespace), body),
            (true, 7..9) => self.server.delete(RESOURCE, Some(namespace), &name),
            (true, _) => {
                self.server.delete(RESOURCE, Some(namespace), &name).unwrap();
                self.server.create(RESOURCE, Some(namespace), body)
            }
        };
        let written = outcome.unwrap();
        log::note(|| format!("write {namespace}/{name}@{}", written["metadata"]["resourceVersion"]));
        self.writes += 1;
    }

    /// Lets time pass: nothing, a moment, or so long that watches time out.
    async fn pause(&mut self) {
        let pause = match self.random.random_range(0..10) {
            0..4 => Duration::ZERO,
            4..8 => Duration::from_millis(self.random.random_range(1..2000)),
            8 => Duration::from_secs(self.random.random_range(1..60)),
            _ => Duration::from_secs(self.random.random_range(60..700)),
        };
        if pause.is_zero() {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(pause).await;
        }
    }

    fn break_something(&mut self) {
        match self.random.random_range(0..20) {
            0 | 1 => {
                log::note(|| "disconnect".to_owned());
                self.server.disconnect_watches();
            }
            2 | 3 => {
                log::note(|| format!("compact at {}", self.server.revision()));
                self.server.compact();
            }
            4 => {
                let history = *[History::Kept, History::Lost].choose(&mut self.random).unwrap();
                log::note(|| format!("restart, history {history:?}"));
                self.server.restart(history);
            }
            _ => {
                let fault = faults::any(&mut self.random);
                log::note(|| format!("fault {fault:?}"));
                self.server.faults().add(fault.resource(RESOURCE).times(self.random.random_range(1..4)));
            }
        }
    }

    /// The server goes back to an older state, and its versions with it. Nobody writes until that can have been noticed: once
    /// the new history has as many versions as the old one had, versions alone do not tell them apart.
    async fn restore(&mut self) {
        let Some(saved) = &self.saved else { return };
        self.witnesses.iter().for_each(|witness| witness.lock().unwrap().versions_may_go_back());
        self.restored = true;
        self.server.restore(saved);
        log::note(|| format!("restore to {}", self.server.revision()));
        self.server.faults().clear();
        tokio::time::sleep(RECOVERY).await;
        // Of what cannot be read the cache still holds what it was before.
        if self.difference().is_none() && self.informer.health().undecodable.is_empty() {
            self.handlers.iter().for_each(|(witness, _)| witness.lock().unwrap().new_epoch());
            self.restored = false;
        }
    }

    fn add_handler(&mut self) {
        let witness = SharedWitness::default();
        if self.restored {
            witness.lock().unwrap().versions_may_go_back();
        }
        let number = self.witnesses.len();
        log::note(|| format!("handler {number} is added"));
        let mut options = HandlerOptions::new().name(format!("handler {number}"));
        let delivery = match self.random.random_range(0..4) {
            0 => Delivery::Latest,
            1 => Delivery::Every { max_backlog: self.random.random_range(0..20) },
            _ => Delivery::default(),
        };
        if let Delivery::Every { max_backlog } = delivery {
            witness.lock().unwrap().max_backlog = max_backlog;
        }
        options = options.delivery(delivery);
        let registration = self.informer.with(options);
        let tell = {
            let witness = witness.clone();
            move |event: &Event<ConfigMap>| {
                if !matches!(event, Event::Resynced(_)) {
                    log::note(|| format!("handler {number} is told {event:?}"));
                }
                witness.lock().unwrap().tell(event);
            }
        };
        let handle = match self.random.random_range(0..4) {
            // Slow: it takes its time with each event.
            0 => {
                let slow = Duration::from_millis(self.random.random_range(1..1000));
                registration.on_event_async(move |event| async move {
                    tell(&event);
                    tokio::time::sleep(slow).await;
                })
            }
            // It panics now and then, but has heard what it was told.
            1 => {
                let mut count = 0;
                registration.on_event(move |event| {
                    tell(&event);
                    count += 1;
                    if count % 7 == 0 {
                        // Not through the hook that prints: it happens all the time.
                        std::panic::resume_unwind(Box::new("handlers may panic"));
                    }
                })
            }
            _ => registration.on_event(move |event| tell(&event)),
        };
        self.witnesses.push(witness.clone());
        self.handlers.push((witness, handle));
    }

    async fn remove_handler(&mut self) {
        if self.handlers.len() < 2 {
            return;
        }
        let at = self.random.random_range(0..self.handlers.len());
        let (witness, handle) = self.handlers.swap_remove(at);
        log::note(|| format!("{} is removed", handle.name()));
        handle.remove(*[Removal::Drain, Removal::Discard].choose(&mut self.random).unwrap()).await.unwrap();
        witness.lock().unwrap().ended = true;
    }

    fn add_index(&mut self) {
        let label = |object: &ConfigMap| object.metadata.labels.as_ref()?.get("l").cloned();
        self.by_label = Some(self.informer.add_index("label", label).unwrap());
    }

    /// The informer ends, and a new one takes its place.
    async fn begin_anew(&mut self) {
        log::note(|| "the informer begins anew".to_owned());
        self.factory.stop_informer(&self.informer).await;
        for (witness, _) in self.handlers.drain(..) {
            witness.lock().unwrap().ended = true;
        }
        self.by_label = None;
        self.informer = new_informer(&self.factory, &self.selection);
        self.add_handler();
    }

    /// How many changes all handlers were told of.
    fn changes(&self) -> u64 {
        self.witnesses.iter().map(|witness| witness.lock().unwrap().changes).sum()
    }

    /// What the server has, of what the informer follows.
    fn expected(&self) -> BTreeMap<String, Value> {
        let (_, objects) = self.server.list(RESOURCE).unwrap();
        let Selection { namespaces, label } = &self.selection;
        let followed = |object: &Value| {
            let namespace = object["metadata"]["namespace"].as_str().unwrap();
            (namespaces.is_empty() || namespaces.contains(&namespace))
                && label.is_none_or(|label| object["metadata"]["labels"]["l"] == label)
        };
        let text = |object: &Value, field: &str| object["metadata"][field].as_str().unwrap().to_owned();
        let keyed = |object: Value| (format!("{}/{}", text(&object, "namespace"), text(&object, "name")), object);
        objects.into_iter().filter(followed).map(keyed).collect()
    }

    /// The first thing that is not as it should be.
    fn difference(&self) -> Option<String> {
        if !self.informer.is_synced() {
            return Some("not synced".to_owned());
        }
        let mut expected = self.expected();
        let snapshot = self.informer.store().snapshot();
        let undecodable = self.informer.health().undecodable;
        // Of what cannot be read the cache holds something older or nothing, and says so.
        expected.retain(|_, object| object["data"]["n"].is_string());
        for (key, there) in &expected {
            let here = snapshot.get(key.as_str()).map(|object| without_type(serde_json::to_value(&**object).unwrap()));
            let there = without_type(there.clone());
            if here.as_ref() != Some(&there) {
                return Some(format!("{key}: here {here:?}, there {there}"));
            }
        }
        for object in snapshot.iter() {
            let key = ObjectKey::of(&**object).unwrap();
            if !expected.contains_key(key.as_str()) && !undecodable.contains_key(&key) {
                return Some(format!("{key} is here, but not there"));
            }
        }
        self.handlers_differ().or_else(|| self.index_differs())
    }

    /// Replaying what each handler was told must give the cache.
    fn handlers_differ(&self) -> Option<String> {
        let snapshot = self.informer.store().snapshot();
        let version = |object: &ConfigMap| object.metadata.resource_version.clone().unwrap_or_default();
        let key = |object: &ConfigMap| ObjectKey::of(object).unwrap().to_string();
        let cached: BTreeMap<_, _> = snapshot.iter().map(|object| (key(object), version(object))).collect();
        let differs = self.handlers.iter().find(|(witness, _)| witness.lock().unwrap().known != cached);
        differs.map(|(_, handle)| format!("{} was told something else", handle.name()))
    }

    fn index_differs(&self) -> Option<String> {
        let index = self.by_label.as_ref()?;
        let mut expected: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for object in self.informer.store().snapshot().iter() {
            if let Some(value) = object.metadata.labels.as_ref().and_then(|labels| labels.get("l")) {
                expected.entry(value.clone()).or_default().insert(ObjectKey::of(&**object).unwrap().to_string());
            }
        }
        let keys =
            |value: &str| index.get(value).iter().map(|object| ObjectKey::of(&**object).unwrap().to_string()).collect();
        let found: BTreeMap<String, BTreeSet<String>> =
            index.values().into_iter().map(|value| (value.clone(), keys(&value))).collect();
        (found != expected).then(|| format!("index {found:?}, cache {expected:?}"))
    }

    /// True if it is about an object that cannot be read.
    fn is_undecodable(&self, difference: &kube_informer::informer::Difference) -> bool {
        use kube_informer::informer::Difference::{Extra, Missing, Stale};
        let (Missing { key, .. } | Stale { key, .. } | Extra { key, .. }) = difference;
        self.expected().get(key.as_str()).is_some_and(|object| !object["data"]["n"].is_string())
    }
}

fn new_informer(factory: &SharedInformerFactory, selection: &Selection) -> SharedInformer<ConfigMap> {
    let mut options = InformerOptions::new();
    if let Some(label) = selection.label {
        options = options.labels(format!("l={label}"));
    }
    let informer = factory.informer_with::<ConfigMap>(options).unwrap();
    informer.on_error(|error| log::note(|| format!("error: {error}")));
    informer
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "World {{ order: {:?} }}", self.order)
    }
}

/// Kind and version of the API, and managed fields, are not part of what is compared.
fn without_type(mut value: Value) -> Value {
    if let Some(object) = value.as_object_mut() {
        object.remove("kind");
        object.remove("apiVersion");
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
    }
    value
}
