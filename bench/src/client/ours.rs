//! kube-informer, with any representation.

use std::hint::black_box;

use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::DynamicObject;
use kube_informer::{
    Compact, Decode, Event, Index, InformerOptions, InformerRequest, ObjectKey, ResourceType, Selector, SharedInformer,
    SharedInformerFactory, StaticResource as _, Store, View,
};

use super::Error;
use super::cache::{Cache, GONE, Handler, Listing, PAGE, SELECTED, SENT};
use super::connection::Connection;
use super::view::PodView;
use crate::objects::Kind;

pub(super) struct Ours<T: OnNode> {
    /// Keeps the informer running.
    _factory: SharedInformerFactory,
    informer: SharedInformer<T>,
    store: Store<T>,
    by_node: Option<Index<T>>,
}

/// An object that has a node.
pub(super) trait OnNode: Decode {
    /// Passes the name of the node to `add`.
    fn node(&self, add: &mut dyn FnMut(&str));
}

impl OnNode for Pod {
    fn node(&self, add: &mut dyn FnMut(&str)) {
        self.spec.iter().filter_map(|spec| spec.node_name.as_deref()).for_each(add);
    }
}

impl OnNode for Node {
    fn node(&self, add: &mut dyn FnMut(&str)) {
        self.metadata.name.as_deref().into_iter().for_each(add);
    }
}

impl OnNode for ConfigMap {
    fn node(&self, add: &mut dyn FnMut(&str)) {
        self.data.iter().filter_map(|data| data.get("node")).for_each(|node| add(node));
    }
}

impl OnNode for DynamicObject {
    fn node(&self, add: &mut dyn FnMut(&str)) {
        self.data["spec"]["nodeName"].as_str().into_iter().for_each(add);
    }
}

impl OnNode for View<PodView> {
    fn node(&self, add: &mut dyn FnMut(&str)) {
        self.spec.node_name.as_deref().into_iter().for_each(add);
    }
}

impl<K: Decode> OnNode for Compact<K> {
    fn node(&self, add: &mut dyn FnMut(&str)) {
        let of = |pointer| self.get::<Box<str>>(pointer).ok().flatten();
        of("/spec/nodeName").or_else(|| of("/data/node")).iter().for_each(|node| add(node));
    }
}

impl<T: OnNode> Cache for Ours<T> {
    type Key = ObjectKey;

    async fn start(
        connection: &Connection,
        kind: Kind,
        listing: Listing,
        handlers: Vec<Handler>,
    ) -> Result<Self, Error> {
        let options = match listing {
            Listing::Streamed => InformerOptions::new(),
            Listing::Paged => InformerOptions::new().streaming(false).page_size(PAGE),
        };
        let factory = SharedInformerFactory::builder(connection.ours()?).options(options).build();
        let informer = factory.dynamic_with::<T>(resource(kind), InformerRequest::new())?;
        informer.on_error(|error| {
            // The server ends watches on purpose.
            if error.status().is_none_or(|status| status.code != GONE) {
                eprintln!("error: {error}");
            }
        });
        handlers.into_iter().for_each(|handler| register(&informer, handler));
        factory.start()?;
        Ok(Self { _factory: factory, store: informer.store(), informer, by_node: None })
    }

    fn len(&self) -> usize {
        self.store.len()
    }

    fn lists(&self) -> u64 {
        let health = self.informer.health();
        let lists = health.counts.lists.values().sum::<u64>();
        // A list that is requested but not applied yet does not count.
        if health.is_watching() && health.queued == 0 { lists } else { lists.saturating_sub(1) }
    }

    fn keys(&self) -> Vec<ObjectKey> {
        let mut keys: Vec<ObjectKey> = self.store.iter().map(|object| object.id().key.into()).collect();
        keys.sort_unstable();
        keys
    }

    fn get(&self, keys: &[ObjectKey]) -> usize {
        keys.iter().filter(|key| black_box(self.store.get(*key)).is_some()).count()
    }

    fn get_from_snapshot(&self, keys: &[ObjectKey]) -> Option<usize> {
        let snapshot = self.store.snapshot();
        Some(keys.iter().filter(|key| black_box(snapshot.get(*key)).is_some()).count())
    }

    fn index_by_node(&mut self) -> Result<bool, Error> {
        self.by_node = Some(self.informer.add_index_with("node", T::node)?);
        Ok(true)
    }

    fn nodes(&self) -> Vec<String> {
        self.by_node.iter().flat_map(Index::values).collect()
    }

    fn on_nodes(&self, nodes: &[String]) -> usize {
        let on = |index: &Index<T>| nodes.iter().map(|node| black_box(index.get(node)).len()).sum();
        self.by_node.as_ref().map_or(0, on)
    }

    fn selected(&self) -> Result<usize, Error> {
        let selector: Selector = SELECTED.parse()?;
        Ok(black_box(self.informer.lister().list(&selector)).len())
    }
}

fn register<T: OnNode>(informer: &SharedInformer<T>, handler: Handler) {
    match handler {
        Handler::Counts(received) => {
            informer.on_event(move |event| received.record(event.object().id().version));
        }
        Handler::Times(received, latency) => {
            informer.on_event(move |event| {
                latency.record(event.object().annotation(SENT).unwrap_or_default());
                received.record(event.object().id().version);
            });
        }
        Handler::Stuck => {
            informer.register().on_event_async(|event| async move {
                if !matches!(event, Event::Added { .. }) {
                    std::future::pending().await
                }
            });
        }
    }
}

fn resource(kind: Kind) -> ResourceType {
    match kind {
        Kind::Pods => Pod::resource_type(),
        Kind::Nodes => Node::resource_type(),
        Kind::ConfigMaps => ConfigMap::resource_type(),
        Kind::Widgets => ResourceType {
            group: "bench.example.com".to_owned(),
            version: "v1".to_owned(),
            kind: "Widget".to_owned(),
            plural: "widgets".to_owned(),
            namespaced: true,
        },
    }
}
