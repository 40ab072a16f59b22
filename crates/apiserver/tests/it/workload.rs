use crate::support::server;
use kube_embedded_apiserver::{Step, Verb, Workload};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

#[tokio::test(start_paused = true)]
async fn one_seed_lives_one_life() {
    let life = |seed| {
        let server = server();
        let mut workload = Workload::new(seed).pods(30);
        let steps: Vec<Option<Step>> = (0..2_000).map(|_| workload.step(&server)).collect();
        (steps, server.list("pods").unwrap())
    };
    assert!(life(1) == life(1));
    assert!(life(1).0 != life(2).0);
}

#[tokio::test(start_paused = true)]
async fn a_life_has_all_that_happens_to_pods_and_settles_at_its_size() {
    let server = server();
    let mut workload = Workload::new(3).pods(40).nodes(3).namespaces(["default", "web"]);
    let mut kinds = BTreeSet::new();
    for _ in 0..5_000 {
        let before = server.revision();
        let step = workload.step(&server).expect("nobody else writes");
        assert_eq!(server.revision(), before + 1, "{step:?}");
        kinds.insert((step.verb, step.resource));
    }
    for expected in [
        (Verb::Create, "pods"),
        (Verb::Update, "pods"),
        (Verb::Delete, "pods"),
        (Verb::Create, "deployments"),
        (Verb::Update, "deployments"),
        (Verb::Delete, "deployments"),
        (Verb::Update, "nodes"),
    ] {
        assert!(kinds.contains(&expected), "{expected:?}");
    }
    let (_, pods) = server.list("pods").unwrap();
    assert!((10..=90).contains(&pods.len()), "{}", pods.len());
    let running = pods.iter().filter(|pod| pod["status"]["phase"] == "Running");
    assert!(running.clone().count() > pods.len() / 4);
    assert!(running.clone().all(|pod| pod["spec"]["nodeName"].is_string()));
}

#[tokio::test(start_paused = true)]
async fn a_life_at_a_rate_stops_when_it_is_cancelled() {
    let server = server();
    let before = server.revision();
    let cancel = CancellationToken::new();
    let life = Workload::new(1).run(server.clone(), 100.0, cancel.clone());
    let stop = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        cancel.cancel();
    };
    tokio::join!(life, stop);
    assert!((980..=1_001).contains(&(server.revision() - before)), "{}", server.revision() - before);
}

#[tokio::test(start_paused = true)]
async fn pods_can_be_made_large() {
    let server = server();
    let mut workload = Workload::new(1).pods(20).pod_bytes(9_000);
    (0..60).for_each(|_| drop(workload.step(&server)));
    let (_, pods) = server.list("pods").unwrap();
    let sizes: Vec<_> = pods.iter().map(|pod| pod.to_string().len()).collect();
    assert!(sizes.iter().all(|size| (8_900..9_300).contains(size)), "{sizes:?}");
}
