//! When a runtime shuts down, its informers stop, and every wait on them ends.

use std::future::IntoFuture as _;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded_apiserver::ApiServer;
use kube_informer::parts::KubeSource;
use kube_informer::{ResourceVersion, SharedInformer, WaitError};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::timeout;

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

#[test]
fn an_informer_whose_runtime_has_shut_down_is_stopped_and_every_wait_on_it_ends() {
    let (theirs, ours) = (runtime(), runtime());
    let server = ApiServer::new();
    server.create("configmaps", Some("a"), json!({"metadata": {"name": "c"}})).unwrap();
    let informer = theirs.block_on(async {
        let informer = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
        informer.start().unwrap();
        informer.synced().await.unwrap();
        informer
    });
    let handle = informer.on_event(|_| {});
    let mut waits = JoinSet::new();
    let future = ResourceVersion::from(server.revision() + 1_000_000);
    waits.spawn_on(informer.wait_for_version(&future).into_future(), ours.handle());
    let never = informer.wait_for("a/never", |object: Option<&ConfigMap>| object.is_some());
    waits.spawn_on(async { never.await.map(|_| ()) }, ours.handle());
    drop(theirs);
    ours.block_on(async {
        let all_end = async {
            while let Some(ended) = waits.join_next().await {
                assert!(matches!(ended.unwrap(), Err(WaitError::Stopped(_))));
            }
            assert!(matches!(informer.relist().await, Err(WaitError::Stopped(_))));
            handle.synced().await;
            handle.remove(kube_informer::RemoveMode::Drain).await.unwrap();
            informer.stop().await;
        };
        timeout(Duration::from_secs(30), all_end).await.expect("every wait ends");
    });
    let health = informer.health();
    assert!(health.stopped && !health.is_live() && !health.is_watching(), "{health:#?}");
    assert!(informer.start().is_err());
    assert_eq!(informer.store().len(), 1, "the cache stays readable");
    assert_eq!(server.open_watches(), 0);
}
