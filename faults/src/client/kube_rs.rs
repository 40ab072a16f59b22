//! kube-rs's reflector, with the backoff that its documentation recommends.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DynamicObject};
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::{WatchStreamExt as _, reflector};
use kube::{Client, Resource};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use super::{Options, config, report, widgets};
use crate::Error;
use crate::digest::{Digest, number};
use crate::line::Line;

pub(super) async fn follow(options: &Options) -> Result<(), Error> {
    let client = Client::try_from(config(&options.kubeconfig).await?)?;
    if options.widgets {
        let resource = widgets();
        observe(Api::<DynamicObject>::all_with(client, &resource), resource, options, |_| "").await
    } else {
        let api = match &options.namespace {
            Some(namespace) => Api::<ConfigMap>::namespaced(client, namespace),
            None => Api::all(client),
        };
        observe(api, (), options, |map| super::content(map)).await
    }
}

/// The state that a reader of the stream can derive from it.
#[derive(Default)]
struct Derived {
    objects: BTreeMap<String, u64>,
    /// The objects of an unfinished initial list. Objects that are not in it are removed at its end, without an event.
    initial: BTreeMap<String, u64>,
}

async fn observe<K>(
    api: Api<K>,
    resource: K::DynamicType,
    options: &Options,
    content: fn(&K) -> &str,
) -> Result<(), Error>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Send + Sync + Unpin,
{
    let mut watched = watcher::Config::default();
    if options.streaming {
        watched = watched.streaming_lists();
    }
    if let Some(selector) = &options.selector {
        watched = watched.labels(selector);
    }
    let writer = Writer::new(resource);
    let store = writer.as_reader();
    let (failed, synced, told) = (AtomicBool::new(false), AtomicBool::new(false), Mutex::new(Derived::default()));
    let (failed, synced, told) = (&failed, &synced, &told);
    let reading = async {
        let mut stream = std::pin::pin!(reflector(writer, watcher(api, watched).default_backoff()));
        while let Some(event) = stream.next().await {
            let mut told = told.lock();
            failed.store(event.is_err(), Relaxed);
            match event {
                Ok(Event::Init) => told.initial.clear(),
                Ok(Event::InitApply(object)) => {
                    let (key, state) = state(&object, content);
                    told.initial.insert(key, state);
                }
                Ok(Event::InitDone) => {
                    told.objects = std::mem::take(&mut told.initial);
                    synced.store(true, Relaxed);
                }
                Ok(Event::Apply(object)) => {
                    let (key, state) = state(&object, content);
                    told.objects.insert(key, state);
                }
                Ok(Event::Delete(object)) => {
                    told.objects.remove(&state(&object, content).0);
                }
                Err(_) => {}
            }
        }
        Err(Error::from("the stream has ended"))
    };
    let reporting = report(|| Line {
        synced: synced.load(Relaxed),
        unwell: failed.load(Relaxed),
        store: store.state().iter().map(|object: &Arc<K>| state(&**object, content).1).collect::<Digest>().to_string(),
        told: told.lock().objects.values().copied().collect::<Digest>().to_string(),
    });
    tokio::select! {
        ended = reading => ended,
        failed = reporting => failed,
    }
}

fn state<K: Resource>(object: &K, content: fn(&K) -> &str) -> (String, u64) {
    let meta = object.meta();
    let name = meta.name.as_deref().unwrap_or_default();
    let key = meta.namespace.as_ref().map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"));
    let version = meta.resource_version.as_deref().unwrap_or_default();
    let state = number(&key, meta.uid.as_deref().unwrap_or_default(), version, content(object));
    (key, state)
}
