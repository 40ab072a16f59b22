//! An informer with its handlers, and the checks of their promises.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Client;
use kube_core::ApiResource;
use kube_core::gvk::GroupVersionKind;
use kube_informer::{
    Compact, Delivery, Event, HandlerHandle, Health, InformerError, InformerOptions, InformerRequest, Object,
    Projection, QueueOrder, RemoveMode, SharedInformer, SharedInformerFactory, View,
};
use serde_json::Value;
use tokio::time::Instant;

use crate::oracle::SharedWitness;
use crate::server::{Collection, Objects};

/// The number of failures of each kind, over all informers.
pub(crate) type Failures = Arc<Mutex<BTreeMap<String, u64>>>;

/// The objects that an informer selects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Selection {
    pub(crate) collection: Collection,
    /// The namespaces; empty for all.
    namespaces: &'static [&'static str],
    /// The value of the label `l`.
    label: Option<&'static str>,
    /// A namespace that a field selector excludes.
    not_in: Option<&'static str>,
    /// True if the informer keeps only metadata.
    metadata_only: bool,
}

const ALL: Selection =
    Selection { collection: Collection::ConfigMaps, namespaces: &[], label: None, not_in: None, metadata_only: false };

impl Selection {
    /// Returns the selected objects of the server.
    pub(crate) fn of<'a>(&self, objects: &'a Objects) -> impl Iterator<Item = (&'a String, &'a Value)> {
        let Self { namespaces, label, not_in, .. } = *self;
        objects.iter().filter(move |(_, object)| {
            let namespace = object["metadata"]["namespace"].as_str().unwrap();
            (namespaces.is_empty() || namespaces.contains(&namespace))
                && not_in != Some(namespace)
                && label.is_none_or(|label| object["metadata"]["labels"]["l"] == label)
        })
    }
}

/// An informer of any type, with its checks.
pub(crate) trait Follower: Send + Sync {
    fn name(&self) -> &str;
    fn selection(&self) -> Selection;
    fn health(&self) -> Health;
    fn is_synced(&self) -> bool;
    /// Returns the first difference between the cache and the server, by keys and versions.
    fn quick_difference(&self, objects: &Objects) -> Option<String>;
    /// Returns the first difference of a whole object between server, cache and handlers; otherwise the number of
    /// compared objects.
    fn compare(&self, objects: &Objects) -> Result<u64, String>;
    /// Returns how many events the handlers have received.
    fn changes(&self) -> u64;
    /// Allows versions to go back once, because the server will be restored to an older state.
    fn versions_may_go_back(&self);
    /// Removes the handlers, and adds new ones.
    fn change_handlers(&mut self) -> BoxFuture<'_, ()>;
    /// Lets the informer verify its cache, and returns the differences.
    fn verify(&self) -> BoxFuture<'_, Vec<String>>;
}

/// Informers of every form, which share the connections of a client.
pub(crate) struct Followers {
    pub(crate) all: Vec<Box<dyn Follower>>,
    factories: Vec<SharedInformerFactory>,
    pub(crate) failures: Failures,
}

impl Followers {
    /// Starts the informers: typed, compact, views, dynamic, metadata only, several namespaces, selectors; in both
    /// queue orders.
    pub(crate) fn start(client: &Client) -> Self {
        let mut followers = Self { all: Vec::new(), factories: Vec::new(), failures: Failures::default() };
        for order in [QueueOrder::Ordered, QueueOrder::PerObject] {
            let options = InformerOptions::new().queue_order(order);
            let factory = SharedInformerFactory::builder(client.clone()).options(options).build();
            let mut add = |form: &str, follower: &dyn Fn(String, Failures) -> Box<dyn Follower>| {
                followers.all.push(follower(format!("{form}, {order:?}"), followers.failures.clone()));
            };
            add("typed", &|name, failures| {
                Watched::start(name, ALL, factory.informer::<ConfigMap>().unwrap(), failures)
            });
            add("compact", &|name, failures| {
                Watched::start(name, ALL, factory.informer::<Compact<ConfigMap>>().unwrap(), failures)
            });
            add("view", &|name, failures| {
                let informer = factory.informer::<View<Whole>>().unwrap();
                Watched::start_as(name, ALL, informer, failures, |view| Value::Object(view.0.clone()))
            });
            add("dynamic", &|name, failures| {
                let resource = resource("", "ConfigMap", "configmaps");
                Watched::start(name, ALL, factory.dynamic(resource).unwrap(), failures)
            });
            add("metadata", &|name, failures| {
                let selection = Selection { metadata_only: true, ..ALL };
                Watched::start(
                    name,
                    selection,
                    factory.metadata::<ConfigMap>(InformerRequest::new()).unwrap(),
                    failures,
                )
            });
            add("namespaces", &|name, failures| {
                let selection = Selection { namespaces: &["e1", "e4", "e4-b"], ..ALL };
                let asked = kube_informer::Selection::new().namespaces(selection.namespaces).unwrap();
                let request = InformerRequest::<ConfigMap>::new().select(asked);
                Watched::start(name, selection, factory.informer_with(request).unwrap(), failures)
            });
            add("labels", &|name, failures| {
                let selection = Selection { label: Some("1"), ..ALL };
                let asked = kube_informer::Selection::new().labels("l=1").unwrap();
                let request = InformerRequest::<ConfigMap>::new().select(asked);
                Watched::start(name, selection, factory.informer_with(request).unwrap(), failures)
            });
            add("fields", &|name, failures| {
                let selection = Selection { not_in: Some("e2"), ..ALL };
                let asked = kube_informer::Selection::new().fields("metadata.namespace!=e2").unwrap();
                let listed = InformerOptions::new().streaming(false);
                let request = InformerRequest::<ConfigMap>::new().select(asked).options(listed);
                Watched::start(name, selection, factory.informer_with(request).unwrap(), failures)
            });
            add("custom", &|name, failures| {
                let selection = Selection { collection: Collection::Widgets, ..ALL };
                let resource = resource("demo.example.com", "Widget", "widgets");
                Watched::start(name, selection, factory.dynamic(resource).unwrap(), failures)
            });
            factory.start().unwrap();
            followers.factories.push(factory);
        }
        followers
    }

    /// Returns the number of failures of this kind.
    pub(crate) fn failed(&self, kind: &str) -> u64 {
        self.failures.lock().unwrap().get(kind).copied().unwrap_or_default()
    }

    pub(crate) async fn stop(self) {
        drop(self.all);
        for factory in self.factories {
            factory.stop().await;
        }
    }
}

pub(crate) fn resource(group: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", kind), plural)
}

/// An informer of one type, with its handlers.
struct Watched<T> {
    name: String,
    selection: Selection,
    informer: SharedInformer<T>,
    /// Converts an object to JSON.
    json: fn(&T) -> Value,
    handlers: Vec<(SharedWitness, HandlerHandle)>,
    /// The number of events that removed handlers have received.
    changes_before: u64,
}

/// A view with all fields.
#[derive(serde::Deserialize)]
struct Whole(serde_json::Map<String, Value>);

impl Projection for Whole {
    type Of = ConfigMap;
}

impl<T: Object> Watched<T> {
    fn start(name: String, selection: Selection, informer: SharedInformer<T>, failures: Failures) -> Box<dyn Follower> {
        Self::start_as(name, selection, informer, failures, |object| object.to_json().unwrap())
    }

    fn start_as(
        name: String,
        selection: Selection,
        informer: SharedInformer<T>,
        failures: Failures,
        json: fn(&T) -> Value,
    ) -> Box<dyn Follower> {
        informer.on_error(move |error| {
            let kind = match (error, error.status()) {
                (_, Some(status)) => status.code.to_string(),
                (InformerError::Reflector { .. }, None) => "connection".to_owned(),
                (other, None) => format!("{other}"),
            };
            *failures.lock().unwrap().entry(kind).or_default() += 1;
        });
        let mut watched = Self { name, selection, informer, json, handlers: Vec::new(), changes_before: 0 };
        watched.add_handlers();
        Box::new(watched)
    }

    /// Adds a handler that receives every event, and a slow one that receives only the latest event of each object.
    fn add_handlers(&mut self) {
        for delivery in [Delivery::default(), Delivery::Latest] {
            let slow = delivery == Delivery::Latest;
            let witness = SharedWitness::default();
            let registration = self.informer.register().delivery(delivery);
            let recorded = witness.clone();
            let handle = match slow {
                false => registration.on_event(move |event: Event<T>| recorded.lock().unwrap().tell(&event)),
                true => {
                    let mut count = 0;
                    registration.on_event_async(move |event: Event<T>| {
                        recorded.lock().unwrap().tell(&event);
                        count += 1;
                        let rest = count % 100 == 0;
                        async move {
                            if rest {
                                tokio::time::sleep(Duration::from_millis(5)).await;
                            }
                        }
                    })
                }
            };
            self.handlers.push((witness, handle));
        }
    }
}

impl<T: Object> Follower for Watched<T> {
    fn name(&self) -> &str {
        &self.name
    }

    fn selection(&self) -> Selection {
        self.selection
    }

    fn health(&self) -> Health {
        self.informer.health()
    }

    fn is_synced(&self) -> bool {
        self.informer.health().is_ready()
    }

    fn quick_difference(&self, objects: &Objects) -> Option<String> {
        let snapshot = self.informer.store().snapshot();
        let mut expected = 0;
        for (key, there) in self.selection.of(objects) {
            expected += 1;
            let here = snapshot.get(key.as_str());
            let here = here.as_ref().map(|object| object.id().version);
            let there = there["metadata"]["resourceVersion"].as_str();
            if here != there {
                return Some(format!("{key}: here {here:?}, there {there:?}"));
            }
        }
        (snapshot.len() != expected).then(|| format!("{} objects here, {expected} there", snapshot.len()))
    }

    fn compare(&self, objects: &Objects) -> Result<u64, String> {
        let snapshot = self.informer.store().snapshot();
        let mut compared = 0;
        for (key, there) in self.selection.of(objects) {
            let here = snapshot.get(key.as_str()).map(|object| (self.json)(object));
            let [here, there] =
                [here.unwrap_or_default(), there.clone()].map(|object| comparable(object, self.selection));
            if here != there {
                return Err(format!("{key}: here {here}, there {there}"));
            }
            compared += 1;
        }
        if snapshot.len() as u64 != compared {
            return Err(format!("{} objects here, {compared} there", snapshot.len()));
        }
        for (witness, handle) in &self.handlers {
            let witness = witness.lock().unwrap();
            witness.check(handle.name());
            if let Some(difference) = witness.difference(&snapshot) {
                return Err(format!(
                    "{} has received events that lead to another state than the cache: {difference}",
                    handle.name()
                ));
            }
        }
        Ok(compared)
    }

    fn changes(&self) -> u64 {
        self.changes_before + self.handlers.iter().map(|(witness, _)| witness.lock().unwrap().changes).sum::<u64>()
    }

    fn versions_may_go_back(&self) {
        self.handlers.iter().for_each(|(witness, _)| witness.lock().unwrap().versions_may_go_back());
    }

    fn change_handlers(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.changes_before = self.changes();
            for (witness, handle) in self.handlers.drain(..) {
                handle.remove(RemoveMode::Drain).await.unwrap();
                witness.lock().unwrap().end();
            }
            self.add_handlers();
        })
    }

    fn verify(&self) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async {
            let found = self.informer.verify().await.unwrap();
            found.into_iter().map(|difference| format!("{difference:?}")).collect()
        })
    }
}

/// Removes the fields that the cache does not keep.
fn comparable(mut object: Value, selection: Selection) -> Value {
    if selection.metadata_only {
        object = serde_json::json!({"metadata": object["metadata"].take()});
    }
    if let Some(members) = object.as_object_mut() {
        members.remove("kind");
        members.remove("apiVersion");
        if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
    }
    object
}

/// Returns true if the informer reports that it watches, and has received a message in the last 10 s.
pub(crate) fn says_fresh(health: &Health) -> bool {
    health.is_watching() && health.age().is_some_and(|age| age < Duration::from_secs(10))
}

/// Since when wrong followers have reported that they are fresh.
#[derive(Default)]
pub(crate) struct FreshThoughWrong(BTreeMap<String, Instant>);

impl FreshThoughWrong {
    /// Records what a wrong follower reports, and returns for how long it has reported to be fresh.
    pub(crate) fn note(&mut self, name: &str, fresh: bool) -> Duration {
        if !fresh {
            self.0.remove(name);
            return Duration::ZERO;
        }
        self.0.entry(name.to_owned()).or_insert_with(Instant::now).elapsed()
    }
}
