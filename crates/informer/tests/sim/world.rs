//! One simulated cluster: a server, an informer, handlers, somebody who writes, and things that go wrong.

use std::collections::BTreeMap;
use std::hash::{Hash as _, Hasher as _};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded_apiserver::{ApiServer, Fault, Verb};
use kube_informer::{SharedInformer, SharedInformerFactory};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::witness::SharedWitness;
use crate::{Report, log};

const NAMESPACES: [&str; 3] = ["a", "a-b", "b"];
const RESOURCE: &str = "configmaps";
/// Faults are over: within this time the cache must be right.
const RECOVERY: Duration = Duration::from_secs(300);

pub(crate) struct World {
    random: StdRng,
    server: ApiServer,
    factory: SharedInformerFactory,
    informer: SharedInformer<ConfigMap>,
    /// The namespaces the informer follows; all if empty.
    followed: Vec<&'static str>,
    witnesses: Vec<SharedWitness>,
    writes: u64,
    faults: BTreeMap<String, u64>,
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
        let followed: Vec<_> = match random.random_range(0..3) {
            0 => vec!["a"],
            1 => vec!["a", "b"],
            _ => vec![],
        };
        let mut factory = SharedInformerFactory::builder(server.client()).seed(seed);
        for namespace in &followed {
            factory = factory.namespace(*namespace);
        }
        let factory = factory.build();
        let informer = factory.informer::<ConfigMap>().unwrap();
        informer.on_error(|error| log::note(|| format!("error: {error}")));
        let mut world = Self {
            random,
            server,
            factory,
            informer,
            followed,
            witnesses: Vec::new(),
            writes: 0,
            faults: BTreeMap::new(),
        };
        for _ in 0..world.random.random_range(0..30) {
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
        for _ in 0..self.random.random_range(60..200) {
            match self.random.random_range(0..100) {
                0..70 => self.write(),
                70..85 => self.pause().await,
                85..96 => self.break_something(),
                96 => self.server.faults().clear(),
                _ if self.witnesses.len() < 5 => self.add_handler(),
                _ => self.pause().await,
            }
        }
    }

    /// No more faults: waits until the cache is right, for as long as it may take at most.
    pub(crate) async fn calm_down(&mut self) {
        log::note(|| format!("no more faults; the server is at {}", self.server.revision()));
        self.server.faults().clear();
        let recovered = async {
            while self.difference().is_some() || !self.handlers_agree() {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        if tokio::time::timeout(RECOVERY, recovered).await.is_err() {
            let difference = self.difference();
            panic!(
                "not recovered: {difference:?}\nhandlers agree: {}\n{:#?}",
                self.handlers_agree(),
                self.informer.health()
            );
        }
        // What came and went in the end may still be told; after that nothing, and what is right must stay right.
        tokio::time::sleep(RECOVERY).await;
        let told = self.told();
        tokio::time::sleep(Duration::from_secs(1500)).await;
        assert_eq!(self.difference(), None);
        assert!(self.handlers_agree());
        assert_eq!(self.told(), told, "told of something though nothing changed");
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
        let mut faults = self.faults;
        for (fault, count) in self.server.faults().counts() {
            *faults.entry(fault.to_owned()).or_default() += count as u64;
        }
        let told = self.witnesses.iter().map(|witness| witness.lock().unwrap().told).sum();
        Report { trace: trace.finish(), writes: self.writes, told, compared, faults }
    }

    /// Somebody creates, changes or deletes an object.
    fn write(&mut self) {
        let namespace = *NAMESPACES.choose(&mut self.random).unwrap();
        let name = format!("c{}", self.random.random_range(0..12));
        let body = json!({
            "metadata": {"name": name, "labels": {"l": self.random.random_range(0..3).to_string()}},
            "data": {"n": self.random.random_range(0..1000).to_string()},
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
        let fault = match self.random.random_range(0..6) {
            0 => {
                log::note(|| "disconnect".to_owned());
                *self.faults.entry("disconnect".to_owned()).or_default() += 1;
                return self.server.disconnect_watches();
            }
            1 => {
                log::note(|| format!("compact at {}", self.server.revision()));
                *self.faults.entry("compact".to_owned()).or_default() += 1;
                return self.server.compact();
            }
            // At any byte: between frames, inside of one, before the first.
            2 => Fault::reset_after_bytes(self.random.random_range(0..3000)),
            3 => Fault::error_event(410, self.random.random_range(0..4)).verb(Verb::Watch),
            4 => Fault::status(410),
            _ => Fault::status(*[429, 500, 502, 503, 504].choose(&mut self.random).unwrap()),
        };
        log::note(|| format!("fault {fault:?}"));
        self.server.faults().add(fault.resource(RESOURCE).times(self.random.random_range(1..4)));
    }

    fn add_handler(&mut self) {
        let witness = SharedWitness::default();
        self.witnesses.push(witness.clone());
        let number = self.witnesses.len();
        log::note(|| format!("handler {number} is added"));
        self.informer.on_event(move |event| {
            log::note(|| format!("handler {number} is told {event:?}"));
            witness.lock().unwrap().tell(&event);
        });
    }

    fn told(&self) -> u64 {
        self.witnesses.iter().map(|witness| witness.lock().unwrap().told).sum()
    }

    /// What the server has, of what the informer follows.
    fn expected(&self) -> BTreeMap<String, Value> {
        let (_, objects) = self.server.list(RESOURCE).unwrap();
        let text = |object: &Value, field: &str| object["metadata"][field].as_str().unwrap().to_owned();
        let followed = |object: &Value| {
            self.followed.is_empty() || self.followed.contains(&object["metadata"]["namespace"].as_str().unwrap())
        };
        let keyed = |object: Value| (format!("{}/{}", text(&object, "namespace"), text(&object, "name")), object);
        objects.into_iter().filter(followed).map(keyed).collect()
    }

    /// The first object that is not the same here and there.
    fn difference(&self) -> Option<String> {
        if !self.informer.is_synced() {
            return Some("not synced".to_owned());
        }
        let expected = self.expected();
        let snapshot = self.informer.store().snapshot();
        if snapshot.len() != expected.len() {
            return Some(format!("{} objects here, {} on the server", snapshot.len(), expected.len()));
        }
        expected.into_iter().find_map(|(key, value)| {
            let here = snapshot.get(key.as_str()).map(|object| without_type(serde_json::to_value(&**object).unwrap()));
            let there = without_type(value);
            (here.as_ref() != Some(&there)).then(|| format!("{key}: here {here:?}, there {there}"))
        })
    }

    /// True if replaying what each handler was told gives the cache.
    fn handlers_agree(&self) -> bool {
        let snapshot = self.informer.store().snapshot();
        let version = |object: &ConfigMap| object.metadata.resource_version.clone().unwrap_or_default();
        let key = |object: &ConfigMap| kube_informer::ObjectKey::of(object).unwrap().to_string();
        let cached: BTreeMap<_, _> = snapshot.iter().map(|object| (key(object), version(object))).collect();
        self.witnesses.iter().all(|witness| witness.lock().unwrap().known == cached)
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
