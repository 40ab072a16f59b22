//! A factory can stop informers that the program does not use (issue 22, item 4).

use std::any::Any;
use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded_apiserver::ApiServer;
use kube_informer::{Consumer, SharedInformer, SharedInformerFactory};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::script::{NoTaskLeft, SEED, options, quiet, within};

const MINUTE: Duration = Duration::from_secs(60);
/// An idle informer is stopped at the first check after its time.
const LATER: Duration = Duration::from_secs(31);

fn factory(server: &ApiServer, idle: Duration) -> SharedInformerFactory {
    let factory = SharedInformerFactory::builder(server.client()).options(options()).stop_idle_after(idle).build();
    factory.start().unwrap();
    factory
}

fn server() -> ApiServer {
    let server = ApiServer::builder().seed(SEED).build();
    server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}})).unwrap();
    server
}

fn informers(factory: &SharedInformerFactory) -> usize {
    factory.informers().len()
}

async fn synced(factory: &SharedInformerFactory) -> SharedInformer<ConfigMap> {
    let informer = factory.informer::<ConfigMap>().unwrap();
    within("the first list", informer.synced()).await.unwrap();
    informer
}

#[tokio::test(start_paused = true)]
async fn an_idle_informer_is_stopped_and_the_next_request_makes_a_new_one() {
    let no_task_left = NoTaskLeft::since_now();
    let server = server();
    let factory = factory(&server, MINUTE);
    let first = synced(&factory).await.any();
    sleep(MINUTE - Duration::from_secs(1)).await;
    assert!(informers(&factory) == 1 && !first.health().stopped);
    // A request begins the time anew.
    drop(synced(&factory).await);
    sleep(MINUTE - Duration::from_secs(1)).await;
    assert_eq!(informers(&factory), 1);
    sleep(LATER).await;
    assert!(informers(&factory) == 0 && first.health().stopped);
    let second = synced(&factory).await;
    assert_ne!(second.any().number(), first.number());
    assert!(second.store().contains("web/a"));
    factory.stop().await;
    drop((factory, second));
    quiet().await; // The client's own task ends once its last owner is dropped.
    no_task_left.check();
}

/// Uses an informer without its handle, until the result is dropped.
type Use = fn(SharedInformer<ConfigMap>) -> Box<dyn Any>;

#[tokio::test(start_paused = true)]
async fn an_informer_that_is_used_is_not_stopped() {
    let server = server();
    let uses: [(&str, Use); 7] = [
        ("a handle", |informer| Box::new(informer)),
        ("a store", |informer| Box::new(informer.store())),
        ("a lister", |informer| Box::new(informer.lister().namespace("web"))),
        ("an index", |informer| Box::new(informer.add_index("name", |_: &ConfigMap| "x").unwrap())),
        ("a reader of deleted objects", |informer| Box::new(informer.lingering())),
        ("a stream", |informer| Box::new(informer.events())),
        ("a wait", |informer| Box::new(informer.synced())),
    ];
    for (what, begin) in uses {
        let factory = factory(&server, MINUTE);
        let used = begin(synced(&factory).await);
        sleep(MINUTE * 3).await;
        assert_eq!(informers(&factory), 1, "{what}");
        drop(used);
        sleep(MINUTE + LATER).await;
        assert_eq!(informers(&factory), 0, "{what}");
    }
    // A handler stays registered when its handle is dropped.
    let factory = factory(&server, MINUTE);
    let consumer = Consumer::new(()).on(&synced(&factory).await, |(), _, _| {}).start();
    sleep(MINUTE * 3).await;
    assert_eq!(informers(&factory), 1);
    within("the removal", consumer.remove(kube_informer::RemoveMode::Drain)).await.unwrap();
    sleep(MINUTE + LATER).await;
    assert_eq!(informers(&factory), 0);
}

// Some requests come while an informer is being stopped.
#[tokio::test(start_paused = true)]
async fn a_request_returns_an_informer_that_runs_as_long_as_its_handle() {
    let server = server();
    let factory = factory(&server, Duration::ZERO);
    let mut tasks = JoinSet::new();
    for seed in 0..4 {
        let (factory, mut random) = (factory.clone(), StdRng::seed_from_u64(seed));
        tasks.spawn(async move {
            let mut numbers = BTreeSet::new();
            for _ in 0..100 {
                sleep(Duration::from_millis(random.random_range(0..200))).await;
                let informer = synced(&factory).await;
                sleep(Duration::from_millis(random.random_range(0..30))).await;
                assert!(!informer.health().stopped && informer.store().contains("web/a"));
                assert_eq!(informers(&factory), 1, "equal requests share one informer");
                numbers.insert(informer.any().number());
            }
            numbers
        });
    }
    let numbers: BTreeSet<u64> = within("the tasks", tasks.join_all()).await.into_iter().flatten().collect();
    assert!(numbers.len() > 10, "it was stopped {} times", numbers.len() - 1);
    factory.stop().await;
}
