//! The state of informers and queues in responses.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_embedded_apiserver::Fault;
use kube_informer::{AnyProbe, AnyQueue, ElectionHealth, FailingItem, Problem, QueueHealth, WorkTimes};
use kube_informer_inspect::Inspection;
use kube_informer_inspect::model::{History, Informer, Overview, Phase, Queue};
use serde_json::json;

use crate::world::{Events, LIMIT, World, answer};

struct Letters;

impl AnyQueue for Letters {
    fn health(&self) -> QueueHealth {
        let mut health = QueueHealth::default();
        (health.name, health.waiting, health.worked) = ("letters".to_owned(), 3, 40);
        health.longest_running = Duration::from_millis(1500);
        health.last_error = Some("web/a: no stamp".to_owned());
        let mut failing = FailingItem::default();
        (failing.item, failing.attempts, failing.error) = ("web/a".to_owned(), 7, "no stamp".to_owned());
        failing.next_try = Some(Duration::from_secs(64));
        (health.failing, health.failing_items) = (vec![failing], 1);
        let mut times = WorkTimes::default();
        (times.median, times.longest) = (Duration::from_micros(250), Duration::from_secs(2));
        health.times = Some(times);
        health
    }
}

/// A program that stands by in an election.
struct Candidate;

impl AnyProbe for Candidate {
    fn live(&self) -> Vec<Problem> {
        Vec::new()
    }

    fn ready(&self) -> Vec<Problem> {
        Vec::new()
    }

    fn elections(&self) -> Vec<ElectionHealth> {
        let mut election = ElectionHealth::default();
        (election.lease, election.identity) = ("web/letters".to_owned(), "pod-2".to_owned());
        election.leader = Some("pod-1".to_owned());
        vec![election]
    }
}

#[tokio::test]
async fn an_informer_is_shown_with_its_whole_state() {
    let world = World::new().await;
    let router = world.inspection().title("shop").fresh_within(Duration::from_secs(90)).open().router();
    let overview: Overview = answer(&router, "/api/informers").await;
    assert_eq!((overview.title.as_str(), overview.fresh_within_ms), ("shop", 90_000));
    let ids: Vec<&str> = overview.informers.iter().map(|informer| informer.id.as_str()).collect();
    assert_eq!(ids, ["configmaps", "pods", "secrets"]);
    let pods: Informer = answer(&router, "/api/informers/pods").await;
    assert_eq!(pods.resource.as_ref().unwrap().kind, "Pod");
    assert_eq!((pods.objects, pods.queued), (3, 0));
    assert!(pods.live && pods.synced && pods.fresh && pods.age_ms.is_some());
    assert_eq!(pods.version, world.pods.store().version().map(|version| version.to_string()));
    assert_eq!(pods.counts.lists["first"], 1);
    assert!(pods.counts.wire_bytes > 100 && pods.counts.events >= 3);
    assert_eq!((pods.handlers[0].name.as_str(), pods.handlers[0].folds), ("audit", 0));
    assert_eq!(pods.indexes, ["namespace", "node"]);
    assert_eq!((pods.parts.len(), pods.parts[0].namespace.as_deref()), (1, None));
    world.factory.stop().await;
}

#[tokio::test]
async fn a_failure_is_shown_as_a_phase_with_its_error_until_it_is_over() {
    let world = World::new().await;
    let router = world.router();
    let phase = async |wanted: fn(&Phase) -> bool| {
        tokio::time::timeout(LIMIT, async {
            loop {
                let pods: Informer = answer(&router, "/api/informers/pods").await;
                if wanted(&pods.parts[0].phase) {
                    return pods;
                }
                tokio::task::yield_now().await;
            }
        })
        .await
        .expect("the phase is reached within a minute")
    };
    world.server.faults().add(Fault::status(503).resource("pods"));
    world.server.disconnect_watches();
    let failing = phase(|phase| matches!(phase, Phase::BackingOff { why, .. } if why.contains("503"))).await;
    let Phase::BackingOff { why, left_ms } = &failing.parts[0].phase else { panic!("{failing:?}") };
    assert!(*left_ms < 60_000, "{why}, {left_ms} ms");
    assert!(failing.counts.failures > 0 && failing.parts[0].last_error.is_some() && !failing.watching);
    let recent = failing.recent_failures.last().unwrap();
    assert!(recent.why.contains("503") && recent.at_ms > 1_600_000_000_000, "{recent:?}");
    assert!(failing.recent_failures.len() as u64 <= failing.counts.failures);
    world.server.faults().clear();
    let healed = phase(|phase| *phase == Phase::Watching).await;
    assert!(healed.watching && healed.parts[0].last_error.is_none());
    assert!(!healed.recent_failures.is_empty(), "past failures can still be read");
    world.factory.stop().await;
}

#[tokio::test]
async fn work_queues_are_shown() {
    let router = Inspection::of(Vec::new).queue(Arc::new(Letters)).queues(|| vec![Arc::new(Letters)]).open().router();
    let queues: Vec<Queue> = answer(&router, "/api/queues").await;
    assert_eq!(queues.len(), 2);
    let letters = &queues[0];
    assert_eq!((letters.name.as_str(), letters.waiting, letters.worked), ("letters", 3, 40));
    assert_eq!((letters.longest_running_ms, letters.last_error.as_deref()), (1500, Some("web/a: no stamp")));
    let [failing] = letters.failing.as_slice() else { panic!("{letters:?}") };
    assert_eq!((failing.item.as_str(), failing.attempts, failing.next_try_ms), ("web/a", 7, Some(64_000)));
    assert_eq!((failing.why.as_str(), letters.failing_items), ("no stamp", 1));
    let times = letters.times.as_ref().unwrap();
    assert_eq!((times.median_ms, times.longest_ms), (0.25, 2_000.0));
    let overview: Overview = answer(&router, "/api/informers").await;
    assert_eq!(overview.queues, queues);
}

#[tokio::test]
async fn elections_of_probes_are_shown() {
    let router = Inspection::of(Vec::new).probe(Candidate).open().router();
    let overview: Overview = answer(&router, "/api/informers").await;
    let [election] = overview.elections.as_slice() else { panic!("{overview:?}") };
    assert_eq!((election.lease.as_str(), election.identity.as_str()), ("web/letters", "pod-2"));
    assert_eq!((election.leader.as_deref(), election.leads, election.term_left_ms), (Some("pod-1"), false, None));
}

#[tokio::test]
async fn informers_with_the_same_name_get_different_ids() {
    let (one, other) = (World::new().await, World::new().await);
    let (first, second) = (one.factory.weak_informers(), other.factory.weak_informers());
    let router = Inspection::of(move || [first(), second()].concat()).open().router();
    let overview: Overview = answer(&router, "/api/informers").await;
    let ids: Vec<&str> = overview.informers.iter().map(|informer| informer.id.as_str()).collect();
    assert_eq!(ids, ["configmaps", "pods", "secrets", "configmaps~2", "pods~2", "secrets~2"]);
    other.server.delete("pods", Some("web"), "a").unwrap();
    other.pods.wait_for("web/a", |pod| pod.is_none()).within(LIMIT).await.unwrap();
    let other_pods: Informer = answer(&router, "/api/informers/pods~2").await;
    assert_eq!(other_pods.objects, 2);
    one.factory.stop().await;
    other.factory.stop().await;
}

#[tokio::test]
async fn an_informer_keeps_its_id_and_its_history() {
    let (one, other) = (World::new().await, World::new().await);
    let (first, second) = (one.factory.weak_informers(), other.factory.weak_informers());
    let router = Inspection::of(move || [first(), second()].concat()).open().router();
    let ids = async || {
        let overview: Overview = answer(&router, "/api/informers").await;
        overview
            .informers
            .into_iter()
            .map(|informer| informer.id)
            .filter(|id| id.starts_with("pods"))
            .collect::<Vec<_>>()
    };
    let states = async |id: &str| {
        let history: History = answer(&router, &format!("/api/informers/{id}/history?key=web/a")).await;
        history.states.len()
    };
    assert_eq!(ids().await, ["pods", "pods~2"]);
    let mut tail = Events::open(&router, "/api/stream?informer=pods~2").await;
    let touched = json!({"metadata": {"annotations": {"touched": "once"}}});
    other.server.patch("pods", Some("web"), "a", touched).unwrap();
    tail.find("changes", |changes| changes["changes"][0]["key"] == "web/a").await;
    assert_eq!((states("pods").await, states("pods~2").await), (0, 2));

    one.pods.stop().await;
    assert_eq!(ids().await, ["pods~2"]);
    assert_eq!(states("pods~2").await, 2);
    one.factory.informer::<Pod>().unwrap();
    assert_eq!(ids().await, ["pods", "pods~2"]);
    assert_eq!((states("pods").await, states("pods~2").await), (0, 2));
    one.factory.stop().await;
    other.factory.stop().await;
}

#[tokio::test]
async fn an_open_stream_does_not_keep_informers_running() {
    let world = World::new().await;
    let router = world.router();
    let mut events = crate::world::Events::open(&router, "/api/stream").await;
    events.find("health", |overview| overview["informers"].as_array().unwrap().len() == 3).await;
    let any = world.pods.any();
    drop(world);
    events.find("health", |overview| overview["informers"].as_array().unwrap().is_empty()).await;
    assert!(!any.is_running());
}
