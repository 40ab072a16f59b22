//! What there really is, at each moment, and a life that changes it.

use std::collections::BTreeMap;

use kube_embedded_apiserver::ApiServer;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::Error;
use crate::digest::{Digest, number};
use crate::step::{Followed, NAMESPACES, SELECTED};

/// Objects that life leaves alone, for what is done on purpose.
pub(crate) const FIXED: usize = 10;
/// How many names life draws from, even where nothing is there yet.
const LEAST_NAMES: usize = 40;

/// The server's objects, and what they were before.
pub(crate) struct Truth {
    server: ApiServer,
    followed: Followed,
    random: StdRng,
    /// How many names life draws from.
    names: usize,
    writes: u64,
    started: Instant,
    /// Of what is followed, by key.
    objects: BTreeMap<String, u64>,
    digest: Digest,
    /// What was true from when on, in seconds.
    pub(crate) history: Vec<(f64, String)>,
}

impl Truth {
    /// Fills a server with so many objects of a size.
    pub(crate) fn new(
        server: &ApiServer,
        followed: Followed,
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

    /// Makes the objects that life leaves alone, and so many others. What is there already stays.
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

    /// The beginning.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// Seconds since the beginning.
    pub(crate) fn now(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    pub(crate) fn current(&self) -> String {
        self.digest.to_string()
    }

    /// One change, drawn from the seed.
    pub(crate) fn live(&mut self) -> Result<(), Error> {
        let number = self.random.random_range(0..self.names.max(1));
        let (namespace, name) = (NAMESPACES[number % 2], name(number));
        let label = if self.random.random_bool(0.8) { "1" } else { "2" };
        let delete = self.random.random_bool(0.25);
        // Whatever is refused, such as a write to a namespace that goes, is no change.
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
        if self.followed != Followed::Widgets {
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

    /// Looks at the whole server, after something other than a write of ours.
    pub(crate) fn reload(&mut self) -> Result<(), Error> {
        self.objects.clear();
        self.digest = Digest::default();
        // A resource that is not there has no objects.
        let items = self.server.list(self.followed.resource()).map(|(_, items)| items).unwrap_or_default();
        items.iter().for_each(|item| self.keep(item));
        self.write_down();
        Ok(())
    }

    fn object(&self, name: &str, label: &str) -> Value {
        let writes = self.writes.to_string();
        let mut object = json!({"metadata": {"name": name, "labels": {"t": label}, "annotations": {"writes": writes}}});
        if self.followed != Followed::Widgets {
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
            Followed::Everything | Followed::Widgets => true,
            Followed::Namespace(namespace) => text("namespace") == namespace,
            Followed::Selected => object["metadata"]["labels"]["t"] == SELECTED,
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
