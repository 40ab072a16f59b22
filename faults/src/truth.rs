//! The true state of the server over time, and random changes.

use std::collections::BTreeMap;

use kube_embedded_apiserver::ApiServer;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::Error;
use crate::digest::{Digest, number};
use crate::step::{NAMESPACES, SELECTED, WatchedCollection};

/// Objects that random changes leave alone, for use by faults.
pub(crate) const FIXED: usize = 10;
/// The smallest number of names for random objects.
const LEAST_NAMES: usize = 40;

/// The server's objects, and their history.
pub(crate) struct Truth {
    server: ApiServer,
    followed: WatchedCollection,
    random: StdRng,
    /// The number of names for random objects.
    names: usize,
    writes: u64,
    started: Instant,
    /// The hashes of the watched objects, by key.
    objects: BTreeMap<String, u64>,
    digest: Digest,
    /// The digests of the state, with the seconds at which each began.
    pub(crate) history: Vec<(f64, String)>,
}

impl Truth {
    /// Creates objects of a size in a server.
    pub(crate) fn new(
        server: &ApiServer,
        followed: WatchedCollection,
        seed: u64,
        objects: usize,
        bytes: usize,
    ) -> Result<Self, Error> {
        let mut truth = Self {
            server: server.clone(),
            followed,
            random: StdRng::seed_from_u64(seed),
            names: (objects + objects / 4).max(LEAST_NAMES),
            writes: 0,
            started: Instant::now(),
            objects: BTreeMap::new(),
            digest: Digest::default(),
            history: Vec::new(),
        };
        for namespace in NAMESPACES {
            server.create("namespaces", None, json!({"metadata": {"name": namespace}}))?;
        }
        truth.fill(objects, bytes)?;
        truth.reload()?;
        Ok(truth)
    }

    /// Creates the fixed objects and some others, unless they exist.
    pub(crate) fn fill(&mut self, objects: usize, bytes: usize) -> Result<(), Error> {
        let fixed = (0..FIXED.min(objects)).map(|number| (NAMESPACES[0], format!("fixed-{number}")));
        let others = (0..objects.saturating_sub(FIXED)).map(|number| (NAMESPACES[number % 2], name(number)));
        for (namespace, name) in fixed.chain(others) {
            if self.server.get(self.followed.resource(), Some(namespace), &name).is_ok() {
                continue;
            }
            let mut object = self.object(&name, "1");
            if bytes > 0 {
                object["data"]["much"] = "x".repeat(bytes).into();
            }
            self.server.create(self.followed.resource(), Some(namespace), object)?;
        }
        Ok(())
    }

    /// Returns the start time.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// Returns the seconds since the start.
    pub(crate) fn now(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    pub(crate) fn current(&self) -> String {
        self.digest.to_string()
    }

    /// Makes a random change.
    pub(crate) fn random_change(&mut self) -> Result<(), Error> {
        let number = self.random.random_range(0..self.names.max(1));
        let (namespace, name) = (NAMESPACES[number % 2], name(number));
        let label = if self.random.random_bool(0.8) { "1" } else { "2" };
        let delete = self.random.random_bool(0.25);
        // A refused write, such as one to a namespace that is being deleted, changes nothing.
        if self.server.get(self.followed.resource(), Some(namespace), &name).is_err() {
            self.create(namespace, &name, label).or_else(|_| self.reload())
        } else if delete {
            self.delete(namespace, &name)
        } else {
            self.update(namespace, &name, label)
        }
    }

    pub(crate) fn create(&mut self, namespace: &str, name: &str, label: &str) -> Result<(), Error> {
        self.writes += 1;
        let object = self.object(name, label);
        let created = self.server.create(self.followed.resource(), Some(namespace), object)?;
        self.note(&created);
        Ok(())
    }

    pub(crate) fn update(&mut self, namespace: &str, name: &str, label: &str) -> Result<(), Error> {
        self.writes += 1;
        let mut change =
            json!({"metadata": {"labels": {"t": label}, "annotations": {"writes": self.writes.to_string()}}});
        if self.followed != WatchedCollection::Widgets {
            change["data"] = json!({"writes": self.writes.to_string()});
        }
        let updated = self.server.patch(self.followed.resource(), Some(namespace), name, change)?;
        self.note(&updated);
        Ok(())
    }

    pub(crate) fn delete(&mut self, namespace: &str, name: &str) -> Result<(), Error> {
        self.server.delete(self.followed.resource(), Some(namespace), name)?;
        self.forget(&format!("{namespace}/{name}"));
        self.write_down();
        Ok(())
    }

    /// Reads the whole state, after a change that did not go through this type.
    pub(crate) fn reload(&mut self) -> Result<(), Error> {
        self.objects.clear();
        self.digest = Digest::default();
        // A resource whose CRD is deleted has no objects.
        let items = self.server.list(self.followed.resource()).map(|(_, items)| items).unwrap_or_default();
        items.iter().for_each(|item| self.keep(item));
        self.write_down();
        Ok(())
    }

    fn object(&self, name: &str, label: &str) -> Value {
        let writes = self.writes.to_string();
        let mut object = json!({"metadata": {"name": name, "labels": {"t": label}, "annotations": {"writes": writes}}});
        if self.followed != WatchedCollection::Widgets {
            object["data"] = json!({"writes": writes});
        }
        object
    }

    fn note(&mut self, object: &Value) {
        self.keep(object);
        self.write_down();
    }

    fn keep(&mut self, object: &Value) {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let key = format!("{}/{}", text("namespace"), text("name"));
        self.forget(&key);
        let selected = match self.followed {
            WatchedCollection::Everything | WatchedCollection::Widgets => true,
            WatchedCollection::Namespace(namespace) => text("namespace") == namespace,
            WatchedCollection::Selected => object["metadata"]["labels"]["t"] == SELECTED,
        };
        if selected {
            let content = object["data"]["writes"].as_str().unwrap_or_default();
            let state = number(&key, text("uid"), text("resourceVersion"), content);
            self.digest.add(state);
            self.objects.insert(key, state);
        }
    }

    fn forget(&mut self, key: &str) {
        if let Some(state) = self.objects.remove(key) {
            self.digest.remove(state);
        }
    }

    fn write_down(&mut self) {
        let now = self.current();
        if self.history.last().is_none_or(|(_, last)| *last != now) {
            self.history.push((self.now(), now));
        }
    }
}

fn name(number: usize) -> String {
    format!("c{number}")
}
