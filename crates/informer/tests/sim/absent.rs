//! An optional kind whose CRD is installed and removed at any time, with faults. In the end the cache equals the server,
//! and so do the replayed events of a handler.

use std::time::Duration;

use kube_client::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube_embedded_apiserver::{ApiServer, Fault, Verb};
use kube_informer::{InformerOptions, InformerRequest, SharedInformerFactory};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use crate::oracle::{SharedWitness, Truth};

const CRDS: &str = "customresourcedefinitions.apiextensions.k8s.io";
const ROUTES: &str = "routes.gateway.example";
/// After the last fault the cache is correct within this time.
const RECOVERY: Duration = Duration::from_secs(900);

fn install(server: &ApiServer) {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let crd = json!({
        "metadata": {"name": ROUTES},
        "spec": {
            "group": "gateway.example", "scope": "Namespaced", "names": {"plural": "routes", "kind": "Route"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    });
    // It may be installed already.
    let _ = server.create(CRDS, None, crd);
}

fn is_installed(server: &ApiServer) -> bool {
    server.get(CRDS, None, ROUTES).is_ok()
}

async fn live(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let server = ApiServer::builder().seed(seed).build();
    let options = InformerOptions::new().seed(seed).streaming(random.random_bool(0.5));
    let factory = SharedInformerFactory::builder(server.client()).options(options).build();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("gateway.example", "v1", "Route"));
    let routes = factory.dynamic_with::<DynamicObject>(kind, InformerRequest::new().optional()).unwrap();
    let witness = SharedWitness::default();
    let tells = witness.clone();
    let handle = routes.on_event(move |event| tells.lock().unwrap().tell(&event));
    factory.start().unwrap();
    for _ in 0..random.random_range(20..80) {
        let name = format!("r{}", random.random_range(0..5));
        match random.random_range(0..20) {
            0..3 => install(&server),
            3 | 4 => drop(server.delete(CRDS, None, ROUTES)),
            5..11 => {
                let route = json!({"metadata": {"name": name}, "data": random.random_range(0..100)});
                if server.create(ROUTES, Some("web"), route.clone()).is_err() {
                    let _ = server.update(ROUTES, Some("web"), route);
                }
            }
            11 => drop(server.delete(ROUTES, Some("web"), &name)),
            12 => server.disconnect_watches(),
            13 => {
                let (code, verb) = (*[404, 403, 500, 503].get(random.random_range(0..4)).unwrap(), Verb::List);
                server.faults().add(Fault::status(code).verb(verb).times(random.random_range(1..4)));
            }
            14 => drop(routes.relist()),
            _ => tokio::time::sleep(Duration::from_millis(random.random_range(1..20_000))).await,
        }
    }
    server.faults().clear();
    if random.random_bool(0.5) {
        install(&server);
    }
    let objects = || match is_installed(&server) {
        true => server.list(ROUTES).unwrap().1,
        false => Vec::new(),
    };
    let difference = || {
        let (truth, cache) = (Truth::new(objects(), |_| true), routes.store().snapshot());
        let health = routes.health();
        let wrong_phase = (health.absent_since().is_some() == is_installed(&server)).then(|| format!("{health}"));
        let replayed = || witness.lock().unwrap().difference(&cache);
        let not_ready = (!health.is_ready()).then(|| "not synced".to_owned());
        not_ready.or(wrong_phase).or_else(|| truth.difference(&cache, &health.undecodable)).or_else(replayed)
    };
    let recovered = tokio::time::timeout(RECOVERY, async {
        while difference().is_some() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    assert!(recovered.await.is_ok(), "seed {seed}: {:?}", difference());
    tokio::time::sleep(RECOVERY).await;
    assert_eq!(difference(), None, "seed {seed}");
    witness.lock().unwrap().check(&format!("seed {seed}"));
    drop(handle);
    factory.stop().await;
}

#[test]
fn an_optional_kind_converges_whenever_its_crd_is_installed_or_removed() {
    for seed in 0..60 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(live(seed));
    }
}
