//! Probes report what is wrong, and why.

use axum::http::StatusCode;
use k8s_openapi::api::core::v1::Pod;
use kube_embedded_apiserver::Fault;
use kube_informer::{AnyProbe, Problem};
use kube_informer_inspect::Inspection;
use kube_informer_inspect::model::{Informer, Probe};

use crate::world::{LIMIT, World, answer, get};

fn probe(text: &str) -> Probe {
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn readyz_needs_synced_informers_and_livez_running_ones() {
    let world = World::before_start();
    let router = world.router();
    let early = get(&router, "/readyz").await;
    assert_eq!(early.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(probe(&early.text).problems[1].why, "not synced: not started");
    assert_eq!(get(&router, "/livez").await.status, StatusCode::OK, "a restart would not help");
    world.factory.start().unwrap();
    world.factory.synced().within(LIMIT).await.unwrap();
    let ready: Probe = answer(&router, "/readyz").await;
    assert!(ready.ok && ready.informers == 3 && ready.problems.is_empty());

    let stopped = world.pods.any();
    let held = Inspection::of(move || vec![stopped.clone()]).open().router();
    world.factory.stop().await;
    for path in ["/livez", "/readyz"] {
        let reply = get(&held, path).await;
        assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert_eq!(probe(&reply.text).problems[0].why, "it has stopped");
    }
}

#[tokio::test]
async fn a_dead_informer_fails_the_probes_until_it_is_replaced() {
    let world = World::before_start();
    let router = world.router();
    let elsewhere = tokio::runtime::Runtime::new().unwrap();
    {
        let _entered = elsewhere.enter();
        world.pods.start().unwrap();
    }
    world.factory.start().unwrap();
    world.factory.synced().within(LIMIT).await.unwrap();
    let World { server, factory, pods } = world;
    // The runtime is dropped, and with it all tasks of the informer.
    tokio::task::spawn_blocking(move || drop(elsewhere)).await.unwrap();
    drop(pods);
    for path in ["/livez", "/readyz"] {
        let reply = get(&router, path).await;
        assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
        let problems = probe(&reply.text).problems;
        assert_eq!((problems[0].part.as_str(), problems[0].why.as_str()), ("pods", "it has stopped"));
    }
    let shown: Informer = answer(&router, "/api/informers/pods").await;
    assert!(!shown.live);

    factory.informer::<Pod>().unwrap();
    factory.synced().within(LIMIT).await.unwrap();
    let ready: Probe = answer(&router, "/readyz").await;
    assert!(ready.ok && ready.informers == 3);
    factory.stop().await;
    drop(server);
}

#[tokio::test]
async fn an_informer_that_is_not_synced_reports_the_servers_error() {
    let world = World::before_start();
    world.server.faults().add(Fault::status(403).resource("pods"));
    let router = world.router();
    world.factory.start().unwrap();
    let refused = async {
        loop {
            let reply = get(&router, "/readyz").await;
            let probe = probe(&reply.text);
            if let [problem] = probe.problems.as_slice()
                && problem.why.contains("403")
            {
                assert_eq!((problem.part.as_str(), reply.status), ("pods", StatusCode::SERVICE_UNAVAILABLE));
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, refused).await.expect("the error is reported within a minute");
    world.factory.stop().await;
}

#[tokio::test]
async fn readyz_fresh_uses_the_requested_bound() {
    let world = World::new().await;
    let router = world.router();
    assert_eq!(get(&router, "/readyz?fresh=10m").await.status, StatusCode::OK);
    assert_eq!(get(&router, "/readyz?fresh").await.status, StatusCode::OK, "the default bound");
    let late = async {
        loop {
            let reply = get(&router, "/readyz?fresh=1ms").await;
            if reply.status == StatusCode::SERVICE_UNAVAILABLE {
                return reply;
            }
            tokio::task::yield_now().await;
        }
    };
    let late = tokio::time::timeout(LIMIT, late).await.expect("a millisecond passes");
    assert!(probe(&late.text).problems[0].why.starts_with("nothing heard from the API server for"), "{}", late.text);
    world.factory.stop().await;
}

/// A probe that is not ready, and also reports a problem of an informer.
struct Database;

impl AnyProbe for Database {
    fn live(&self) -> Vec<Problem> {
        Vec::new()
    }

    fn ready(&self) -> Vec<Problem> {
        vec![Problem::new("database", "not connected"), Problem::new("pods", "not synced, as the probe sees it")]
    }
}

#[tokio::test]
async fn problems_of_probes_are_added_but_no_informer_is_reported_twice() {
    let world = World::before_start();
    let router = Inspection::of(world.factory.weak_informers()).probe(Database).open().router();
    assert_eq!(get(&router, "/livez").await.status, StatusCode::OK);
    let reply = get(&router, "/readyz").await;
    assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE);
    let problems = probe(&reply.text).problems;
    assert_eq!(problems.iter().filter(|problem| problem.part == "pods").count(), 1, "{}", reply.text);
    let last = problems.last().unwrap();
    assert_eq!((last.part.as_str(), last.why.as_str()), ("database", "not connected"));
    world.factory.start().unwrap();
    world.factory.synced().within(LIMIT).await.unwrap();
    let ready = get(&router, "/readyz").await;
    let parts: Vec<String> = probe(&ready.text).problems.into_iter().map(|problem| problem.part).collect();
    assert_eq!(parts, ["database", "pods"], "the probe's problems remain");
    world.factory.stop().await;
}

#[tokio::test]
async fn metrics_are_the_text_that_the_program_renders() {
    let router = Inspection::of(Vec::new).metrics(|| "up 1\n".to_owned()).open().router();
    let reply = get(&router, "/metrics").await;
    assert_eq!((reply.status, reply.text.as_str()), (StatusCode::OK, "up 1\n"));
    assert!(reply.headers["content-type"].to_str().unwrap().starts_with("text/plain"));
    let none = get(&Inspection::of(Vec::new).open().router(), "/metrics").await;
    assert_eq!(none.status, StatusCode::NOT_FOUND);
    assert!(none.text.contains("Inspection::metrics"), "{}", none.text);
}
