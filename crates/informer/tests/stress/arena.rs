//! One server and one informer, with writers, readers, handlers and disruptions at the same time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded_apiserver::ApiServer;
use kube_informer::parts::KubeSource;
use kube_informer::{
    BackoffOptions, Decode, Delivery, HandlerHandle, Identity, Index, InformerOptions, Object, ObjectKey, QueueOrder,
    RemoveMode, ResourceVersion, SharedInformer, StaticResource,
};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::oracle::{Form, Listening, SharedWitness, Truth, Witness, handle_difference, index_difference};

const RESOURCE: &str = "configmaps";
const NAMESPACES: [&str; 3] = ["a", "b", "c"];
const KEYS: u64 = 150;
const WRITERS: u64 = 3;
const READERS: u64 = 3;
/// Tasks that add and remove handlers.
const VISITORS: u64 = 3;
/// Everything must be correct again within this time, also on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The representations under test: whole objects, or identities only.
pub(crate) trait Subject: Decode {}
impl Subject for ConfigMap {}
impl Subject for Identity {}

pub(crate) struct Arena<T: Subject> {
    server: ApiServer,
    informer: SharedInformer<T>,
    index: Index<T>,
    /// Handlers that stay until the end.
    residents: Vec<(SharedWitness, HandlerHandle)>,
    stream: (SharedWitness, Listening),
    over: Arc<AtomicBool>,
    counts: Arc<Counts>,
}

/// What the tasks have done.
#[derive(Default)]
struct Counts {
    writes: AtomicU64,
    reads: AtomicU64,
    visits: AtomicU64,
    told: AtomicU64,
}

impl<T: Subject> Arena<T> {
    pub(crate) fn new(order: QueueOrder) -> Self {
        let server = ApiServer::builder().history(500).bookmark_interval(Duration::from_millis(300)).build();
        let backoff = BackoffOptions {
            initial: Duration::from_millis(5),
            max: Duration::from_millis(100),
            ..BackoffOptions::default()
        };
        let options = InformerOptions::new()
            .queue_order(order)
            .backoff(backoff)
            .queue_bytes(4096)
            .page_size(20)
            .resync_period(Duration::from_secs(1));
        let source = KubeSource::<T>::of(server.client(), ConfigMap::resource_type()).options(&options);
        let informer = SharedInformer::builder(source).options(options).name("arena").build();
        informer.on_error(|_| {});
        let index = informer.add_index("namespace of", values::<T>).unwrap();
        let residents = Form::WITHOUT_THREAD.into_iter().chain([Form::Blocking]).map(|form| {
            let witness = witness(form);
            let handle = form.register(informer.register().name("resident"), &witness, None);
            (witness, handle)
        });
        let residents = residents.collect();
        let witness = SharedWitness::default();
        let stream = Listening::start(informer.register().name("stream").events(), witness.clone(), None, false);
        let (over, counts) = (Arc::default(), Arc::default());
        Self { server, informer, index, residents, stream: (witness, stream), over, counts }
    }

    /// Runs all tasks for this time.
    pub(crate) async fn fight(&self, lasts: Duration) {
        let mut tasks = JoinSet::new();
        for seed in 0..WRITERS {
            tasks.spawn(write(self.server.clone(), seed, self.over.clone(), self.counts.clone()));
        }
        self.informer.start().unwrap();
        for seed in 0..READERS {
            tasks.spawn(read(self.informer.clone(), self.index.clone(), seed, self.over.clone(), self.counts.clone()));
        }
        for seed in 0..VISITORS {
            tasks.spawn(visit(self.informer.clone(), seed, self.over.clone(), self.counts.clone()));
        }
        tasks.spawn(disturb(self.server.clone(), self.informer.clone(), self.over.clone()));
        sleep(lasts).await;
        self.over.store(true, Ordering::Relaxed);
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
    }

    /// Waits without writes until everything is correct, and checks that it stays so.
    pub(crate) async fn settle(&self) {
        let (_, objects) = self.server.list(RESOURCE).unwrap();
        let (truth, start) = (Truth::new(objects, |_| true), Instant::now());
        assert!(truth.unreadable().is_empty());
        while let Some(difference) = self.difference(&truth) {
            assert!(start.elapsed() < PATIENCE, "{difference}\n{:#?}", self.informer.health());
            sleep(Duration::from_millis(20)).await;
        }
        self.informer.relist().within(PATIENCE).await.unwrap();
        assert_eq!(self.informer.verify().await.unwrap(), []);
        assert_eq!(self.difference(&truth), None);
        let handlers = self.informer.health().handlers;
        assert_eq!(
            handlers.len(),
            self.residents.len() + 1,
            "only the handlers that were not removed are left: {handlers:?}"
        );
    }

    fn difference(&self, truth: &Truth) -> Option<String> {
        let (cache, health) = (self.informer.store().snapshot(), self.informer.health());
        let waits = || {
            // Resyncs occur all the time and change nothing.
            let behind = health.handlers.iter().find(|handler| !handler.synced)?;
            Some(format!("{behind:?} is not synced"))
        };
        truth
            .difference(&cache, &health.undecodable)
            .or_else(|| index_difference(&cache, &self.index, |object| values(object).collect()))
            .or_else(|| handle_difference(&cache, &self.index))
            .or_else(waits)
            .or_else(|| self.witnesses().find_map(|witness| witness.lock().unwrap().difference(&cache)))
    }

    fn witnesses(&self) -> impl Iterator<Item = &SharedWitness> {
        self.residents.iter().map(|(witness, _)| witness).chain([&self.stream.0])
    }

    /// Stops the informer, and checks that no handler receives events and no task runs afterwards.
    pub(crate) async fn end(self) {
        timeout(PATIENCE, self.informer.stop()).await.expect("stop waits only for running calls");
        assert!(self.informer.health().stopped);
        self.witnesses().for_each(|witness| witness.lock().unwrap().end());
        for (number, witness) in self.witnesses().enumerate() {
            let witness = witness.lock().unwrap();
            witness.check(&format!("handler {number}"));
            self.counts.told.fetch_add(witness.told, Ordering::Relaxed);
        }
        let Counts { writes, reads, visits, told } = &*self.counts;
        println!("writes {writes:?}, snapshots read {reads:?}, handlers added and removed {visits:?}, events {told:?}");
        assert!(self.informer.store().version().is_some());
        self.stream.1.end().await;
    }
}

/// The values under which the index finds an object.
fn values<T: Object>(object: &T) -> impl Iterator<Item = String> + use<T> {
    object.id().key.namespace().map(ToOwned::to_owned).into_iter()
}

fn witness(form: Form) -> SharedWitness {
    let witness = if form == Form::Filtering { Witness::only(Form::LABEL) } else { Witness::default() };
    SharedWitness::new(witness.into())
}

/// Creates, updates and deletes objects as fast as possible.
async fn write(server: ApiServer, seed: u64, over: Arc<AtomicBool>, counts: Arc<Counts>) {
    let mut random = StdRng::seed_from_u64(seed);
    while !over.load(Ordering::Relaxed) {
        let namespace = *NAMESPACES.choose(&mut random).unwrap();
        let name = format!("c{}", random.random_range(0..KEYS / NAMESPACES.len() as u64));
        let labels = json!({"l": random.random_range(0..3).to_string()});
        let data =
            json!({"n": random.random_range(0..1000).to_string(), "long": "x".repeat(random.random_range(0..300))});
        let body = json!({"metadata": {"name": name, "labels": labels}, "data": data});
        // Another writer may have been faster, so the result does not matter.
        let _ = match random.random_range(0..10) {
            0..3 => server.create(RESOURCE, Some(namespace), body),
            3..8 => server.update(RESOURCE, Some(namespace), body),
            _ => server.delete(RESOURCE, Some(namespace), &name),
        };
        counts.writes.fetch_add(1, Ordering::Relaxed);
        match random.random_range(0..100) {
            0 => sleep(Duration::from_millis(random.random_range(1..20))).await,
            1..30 => sleep(Duration::from_micros(100)).await,
            _ => tokio::task::yield_now().await,
        }
    }
}

/// Reads snapshots, single objects and the index. Each must be consistent, and no version may go back.
async fn read<T: Subject>(
    informer: SharedInformer<T>,
    index: Index<T>,
    seed: u64,
    over: Arc<AtomicBool>,
    counts: Arc<Counts>,
) {
    let (mut random, mut last) = (StdRng::seed_from_u64(seed), None::<ResourceVersion>);
    let mut newest: BTreeMap<ObjectKey, ResourceVersion> = BTreeMap::new();
    while !over.load(Ordering::Relaxed) {
        let cache = informer.store().snapshot();
        assert_eq!(cache.iter().count(), cache.len());
        assert_eq!(index_difference(&cache, &index, |object| values(object).collect()), None);
        if let Some(version) = cache.version() {
            assert!(!last.as_ref().is_some_and(|last| version.is_older_than(last)), "from {last:?} to {version}");
            last = Some(version.clone());
        }
        for _ in 0..20 {
            let key = format!("{}/c{}", NAMESPACES.choose(&mut random).unwrap(), random.random_range(0..50));
            let Some(object) = informer.store().get(&key) else { continue };
            let (key, version) = (ObjectKey::from(object.id().key), ResourceVersion::from(object.id().version));
            let before = newest.insert(key.clone(), version.clone());
            assert!(!before.as_ref().is_some_and(|before| version.is_older_than(before)), "{key} from {before:?}");
        }
        for object in index.get("a") {
            assert_eq!(object.id().key.namespace(), Some("a"));
        }
        counts.reads.fetch_add(1, Ordering::Relaxed);
        sleep(Duration::from_micros(random.random_range(1..2000))).await;
    }
}

/// Adds a handler, removes it again, and checks that it receives no events after that.
async fn visit<T: Subject>(informer: SharedInformer<T>, seed: u64, over: Arc<AtomicBool>, counts: Arc<Counts>) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut gone: Vec<(Option<Form>, SharedWitness)> = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let form = match random.random_range(0..12) {
            0..2 => None,
            2 => Some(Form::Blocking),
            _ => Some(*Form::WITHOUT_THREAD.choose(&mut random).unwrap()),
        };
        let witness = form.map_or_else(SharedWitness::default, witness);
        let delivery = match random.random_range(0..3) {
            0 => Delivery::Latest,
            1 => {
                Delivery::Every { max_backlog: random.random_range(0..50), max_bytes: random.random_range(200..50_000) }
            }
            _ => Delivery::default(),
        };
        let pace = random.random_bool(0.3).then(|| Duration::from_micros(random.random_range(1..3000)));
        let stays = Duration::from_millis(random.random_range(0..100));
        let registration = informer.register().name("visitor").delivery(delivery);
        match form {
            Some(form) => {
                let handle = form.register(registration, &witness, pace.filter(|_| form.can_wait()));
                if random.random_bool(0.5) {
                    assert!(timeout(PATIENCE, handle.synced()).await.expect("the handler syncs in time"));
                }
                sleep(stays).await;
                let removal = *[RemoveMode::Drain, RemoveMode::Discard].choose(&mut random).unwrap();
                timeout(PATIENCE, handle.remove(removal)).await.expect("the removal ends in time").unwrap();
            }
            None => {
                let stream = Listening::start(registration.events(), witness.clone(), pace, false);
                sleep(stays).await;
                stream.end().await;
            }
        }
        witness.lock().unwrap().end();
        gone.push((form, witness));
        counts.visits.fetch_add(1, Ordering::Relaxed);
    }
    for (form, witness) in &gone {
        witness.lock().unwrap().check(&format!("visitor {form:?}"));
    }
    let told: u64 = gone.iter().map(|(_, witness)| witness.lock().unwrap().told).sum();
    counts.told.fetch_add(told, Ordering::Relaxed);
}

/// Disconnects watches, compacts the history, and requests relists.
async fn disturb<T: Subject>(server: ApiServer, informer: SharedInformer<T>, over: Arc<AtomicBool>) {
    let mut random = StdRng::seed_from_u64(1);
    while !over.load(Ordering::Relaxed) {
        sleep(Duration::from_millis(random.random_range(1..200))).await;
        match random.random_range(0..5) {
            0 => server.disconnect_watches(),
            1 => server.compact(),
            2 => {
                server.compact();
                server.disconnect_watches();
            }
            3 => informer.relist().within(PATIENCE).await.unwrap(),
            _ => {
                let version = ResourceVersion::from(server.revision());
                informer.wait_for_version(&version).within(PATIENCE).await.unwrap();
            }
        }
    }
}
