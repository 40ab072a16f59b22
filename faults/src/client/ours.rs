//! kube-informer, with default settings.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::DynamicObject;
use kube_informer::{
    Decode, Event, InformerRequest, Object, ObjectKey, Selection, SharedInformer, SharedInformerFactory,
};
use parking_lot::Mutex;

use super::{Options, config, report, widgets};
use crate::Error;
use crate::digest::{Digest, number};
use crate::line::Line;

pub(super) async fn follow(options: &Options) -> Result<(), Error> {
    let client = kube_informer::client_from(config(&options.kubeconfig).await?)?;
    let factory = SharedInformerFactory::new(client);
    let mut selection = Selection::new();
    if let Some(namespace) = &options.namespace {
        selection = selection.namespace(namespace)?;
    }
    if let Some(selector) = &options.selector {
        selection = selection.labels(selector)?;
    }
    if options.widgets {
        let request = InformerRequest::<DynamicObject>::new().select(selection);
        observe(&factory, &factory.dynamic_with(widgets(), request)?, |_| "").await
    } else {
        let request = InformerRequest::<ConfigMap>::new().select(selection);
        observe(&factory, &factory.informer_with(request)?, |map| super::content(map)).await
    }
}

async fn observe<T: Decode>(
    factory: &SharedInformerFactory,
    informer: &SharedInformer<T>,
    content: fn(&T) -> &str,
) -> Result<(), Error> {
    let failed = Arc::new(AtomicBool::new(false));
    let fails = failed.clone();
    informer.on_error(move |_| fails.store(true, Relaxed));
    let told = Arc::new(Mutex::new(BTreeMap::<ObjectKey, u64>::new()));
    let (written, works) = (told.clone(), failed.clone());
    informer.on_event(move |event| {
        works.store(false, Relaxed);
        let mut told = written.lock();
        match event {
            Event::Deleted(gone) => {
                told.remove(&gone.key());
            }
            event => {
                told.insert(event.key(), state(&**event.object(), content));
            }
        }
    });
    factory.start()?;
    let store = informer.store();
    report(|| {
        let health = informer.health();
        let unsure = !health.undecodable.is_empty() || health.parts.iter().any(|part| part.inconclusive);
        Line {
            synced: health.synced,
            unwell: failed.load(Relaxed) || !health.is_watching() || unsure,
            store: store.snapshot().iter().map(|object| state(object, content)).collect::<Digest>().to_string(),
            told: told.lock().values().copied().collect::<Digest>().to_string(),
        }
    })
    .await
}

fn state<T: Object>(object: &T, content: fn(&T) -> &str) -> u64 {
    let id = object.id();
    number(&id.key.to_string(), id.uid, id.version, content(object))
}
