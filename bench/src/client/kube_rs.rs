//! kube-rs's reflector, used as its documentation recommends.

use std::hash::Hash;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use futures_util::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::core::Selector;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::{WatchStreamExt as _, reflector};
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use super::Error;
use super::cache::{Cache, GONE, Handler, Listing, PAGE, SELECTED, SENT};
use super::connection::Connection;
use crate::objects::Kind;

/// kube-rs has no indexes: each lookup by node visits all objects, so that only a few nodes are looked up.
const NODES: usize = 5;

pub(super) struct KubeRs<K: WatchedKind> {
    store: Store<K>,
    resource: K::DynamicType,
    lists: Arc<AtomicU64>,
    /// The task that polls the stream.
    _reader: JoinSet<()>,
}

/// A kind of object that kube-rs can watch.
pub(super) trait WatchedKind:
    Resource<DynamicType: Eq + Hash + Clone + Send + Sync + Unpin>
    + Clone
    + DeserializeOwned
    + std::fmt::Debug
    + Send
    + Sync
    + 'static
{
    fn resource() -> Self::DynamicType;
    fn node(&self) -> Option<&str>;
}

impl WatchedKind for Pod {
    fn resource() {}

    fn node(&self) -> Option<&str> {
        self.spec.as_ref()?.node_name.as_deref()
    }
}

impl WatchedKind for Node {
    fn resource() {}

    fn node(&self) -> Option<&str> {
        self.metadata.name.as_deref()
    }
}

impl WatchedKind for ConfigMap {
    fn resource() {}

    fn node(&self) -> Option<&str> {
        self.data.as_ref()?.get("node").map(String::as_str)
    }
}

impl WatchedKind for DynamicObject {
    fn resource() -> ApiResource {
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("bench.example.com", "v1", "Widget"), "widgets")
    }

    fn node(&self) -> Option<&str> {
        self.data["spec"]["nodeName"].as_str()
    }
}

impl<K: WatchedKind> Cache for KubeRs<K> {
    type Key = ObjectRef<K>;

    async fn start(connection: &Connection, _: Kind, listing: Listing, handlers: Vec<Handler>) -> Result<Self, Error> {
        let [handler] = &handlers[..] else { return Err("a stream of kube-rs has one reader".into()) };
        let (writer, resource) = (Writer::new(K::resource()), K::resource());
        let (store, lists, mut reader) = (writer.as_reader(), Arc::new(AtomicU64::new(0)), JoinSet::new());
        let config = match listing {
            Listing::Streamed => watcher::Config::default().streaming_lists(),
            Listing::Paged => watcher::Config::default().page_size(PAGE as u32),
        };
        let api = Api::<K>::all_with(connection.kube_rs()?, &resource);
        let stream = reflector(writer, watcher(api, config).default_backoff());
        reader.spawn(read(stream, handler.clone(), lists.clone()));
        Ok(Self { store, resource, lists, _reader: reader })
    }

    fn len(&self) -> usize {
        self.store.len()
    }

    fn lists(&self) -> u64 {
        self.lists.load(Relaxed)
    }

    fn keys(&self) -> Vec<ObjectRef<K>> {
        let key = |object: &Arc<K>| ObjectRef::from_obj_with(&**object, self.resource.clone());
        let mut keys: Vec<_> = self.store.state().iter().map(key).collect();
        keys.sort_unstable_by_key(|key| format!("{}/{}", key.namespace.as_deref().unwrap_or_default(), key.name));
        keys
    }

    fn get(&self, keys: &[ObjectRef<K>]) -> usize {
        keys.iter().filter(|key| black_box(self.store.get(key)).is_some()).count()
    }

    fn get_from_snapshot(&self, _: &[ObjectRef<K>]) -> Option<usize> {
        None
    }

    fn index_by_node(&mut self) -> Result<bool, Error> {
        Ok(false)
    }

    fn nodes(&self) -> Vec<String> {
        let objects = self.store.state();
        let mut nodes: Vec<_> =
            objects.iter().filter_map(|object| object.node()).take(NODES).map(str::to_owned).collect();
        nodes.dedup();
        nodes
    }

    fn on_nodes(&self, nodes: &[String]) -> usize {
        let on = |node: &String| black_box(self.store.state_filter(|object| object.node() == Some(node))).len();
        nodes.iter().map(on).sum()
    }

    fn selected(&self) -> Result<usize, Error> {
        let expressions = SELECTED.split(',').filter_map(|equal| equal.split_once('='));
        let selector: Selector =
            expressions.map(|(key, value)| kube::core::Expression::Equal(key.into(), value.into())).collect();
        Ok(black_box(self.store.state_filter_selector(&selector)).len())
    }
}

async fn read<K: WatchedKind>(
    stream: impl Stream<Item = Result<Event<K>, watcher::Error>>,
    handler: Handler,
    lists: Arc<AtomicU64>,
) {
    let mut stream = std::pin::pin!(stream);
    while let Some(event) = stream.next().await {
        match event {
            Ok(Event::Init) => {}
            Ok(Event::InitDone) => {
                lists.fetch_add(1, Relaxed);
            }
            Ok(Event::InitApply(object) | Event::Apply(object) | Event::Delete(object)) => call(&handler, &object),
            // The server ends watches on purpose; the watcher starts again by itself.
            Err(watcher::Error::WatchError(status)) if status.code == GONE => {}
            Err(error) => eprintln!("error: {error}"),
        }
    }
}

fn call<K: WatchedKind>(handler: &Handler, object: &K) {
    let version = object.meta().resource_version.as_deref().unwrap_or_default();
    match handler {
        Handler::Counts(received) => received.record(version),
        Handler::Times(received, latency) => {
            latency.record(object.annotations().get(SENT).map_or("", String::as_str));
            received.record(version);
        }
        Handler::Stuck => {}
    }
}
