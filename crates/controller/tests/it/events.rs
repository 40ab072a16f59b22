//! Events: equal events become one event with a count, their number is limited, and dropped events are counted.

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube_controller::{EventRecorder, EventType, Published};
use kube_embedded_apiserver::{ApiServer, Fault, Verb};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::network::{Mode, Network};

fn about(name: &str) -> ObjectReference {
    let text = |text: &str| Some(text.to_owned());
    ObjectReference { kind: text("Foo"), name: text(name), namespace: text("default"), ..ObjectReference::default() }
}

fn events(server: &ApiServer) -> Vec<Value> {
    server.list("events.events.k8s.io").unwrap().1
}

async fn publish(recorder: &EventRecorder, name: &str, note: &str) -> Result<Published, String> {
    let published = recorder.publish(&about(name), EventType::Warning, "Failed", "Sync", note).await;
    published.map_err(|error| error.to_string())
}

#[tokio::test(start_paused = true)]
async fn equal_events_become_one_event_with_a_count() {
    let server = ApiServer::builder().seed(1).build();
    let recorder = EventRecorder::new(server.client(), "example.com/controller", "me");
    assert_eq!(publish(&recorder, "a", "no").await, Ok(Published::Created));
    assert_eq!(publish(&recorder, "a", "no").await, Ok(Published::Counted(2)));
    assert_eq!(publish(&recorder, "a", "no").await, Ok(Published::Counted(3)));
    assert_eq!(publish(&recorder, "a", "other").await, Ok(Published::Created));
    let written = events(&server);
    assert_eq!(written.len(), 2);
    let counted = written.iter().find(|event| event["note"] == "no").unwrap();
    assert_eq!(counted["series"]["count"], 3);
    assert_eq!(
        (&counted["type"], &counted["reason"], &counted["action"]),
        (&"Warning".into(), &"Failed".into(), &"Sync".into())
    );
    assert_eq!(
        (&counted["reportingController"], &counted["reportingInstance"]),
        (&"example.com/controller".into(), &"me".into())
    );
    assert_eq!(counted["regarding"]["name"], "a");
    // After 400 s without an equal event the series is over, and a new event is created.
    tokio::time::sleep(Duration::from_secs(400)).await;
    assert_eq!(publish(&recorder, "a", "no").await, Ok(Published::Created));
}

#[tokio::test(start_paused = true)]
async fn events_beyond_the_limit_are_counted_and_written_with_the_next_event_or_by_a_flush() {
    let server = ApiServer::builder().seed(1).build();
    let recorder = EventRecorder::new(server.client(), "example.com/controller", "me");
    for _ in 0..25 {
        publish(&recorder, "a", "no").await.unwrap();
    }
    assert_eq!(publish(&recorder, "a", "no").await, Ok(Published::Held(1)));
    assert_eq!(publish(&recorder, "a", "no").await, Ok(Published::Held(2)));
    assert_eq!(publish(&recorder, "a", "never seen").await, Ok(Published::Held(1)));
    assert_eq!(publish(&recorder, "b", "no").await, Ok(Published::Created), "events about other objects are not held");
    assert_eq!(recorder.unwritten(), 3);
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(publish(&recorder, "a", "no").await, Ok(Published::Counted(28)));
    publish(&recorder, "a", "never seen").await.unwrap();
    recorder.flush().await.unwrap();
    assert_eq!(recorder.unwritten(), 0);
    let late = events(&server).into_iter().find(|event| event["note"] == "never seen").unwrap();
    assert_eq!(late["series"]["count"], 2);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_the_server_refuses_is_an_error_and_is_written_by_a_flush() {
    let server = ApiServer::builder().seed(1).build();
    let recorder = EventRecorder::new(server.client(), "example.com/controller", "me");
    let away = server.faults().add(Fault::status(503).verb(Verb::Create));
    let error = publish(&recorder, "a", "no").await.unwrap_err();
    assert!(error.contains("Failed") && error.contains('a'), "{error}");
    server.faults().remove(away);
    assert_eq!(recorder.unwritten(), 1);
    recorder.flush().await.unwrap();
    assert_eq!((events(&server).len(), recorder.unwritten()), (1, 0));
    // The API server deletes events after an hour. The next write creates a new event.
    let name = events(&server)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    server.delete("events.events.k8s.io", Some("default"), &name).unwrap();
    assert!(publish(&recorder, "a", "no").await.is_err());
    assert_eq!(publish(&recorder, "a", "no").await, Ok(Published::Created));
    recorder.flush().await.unwrap();
    assert_eq!(events(&server)[0]["series"]["count"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_note_is_cut_to_the_length_that_a_server_accepts_and_memory_is_bounded() {
    let server = ApiServer::builder().seed(1).build();
    let recorder = EventRecorder::new(server.client(), "example.com/controller", "me");
    publish(&recorder, "a", &"ü".repeat(1000)).await.unwrap();
    assert_eq!(events(&server)[0]["note"].as_str().unwrap().len(), 1024);
    for number in 0..5000 {
        publish(&recorder, &format!("o{number}"), "no").await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(
        publish(&recorder, "o0", "no").await,
        Ok(Published::Created),
        "the oldest object was dropped from memory"
    );
    assert_eq!(publish(&recorder, "o4999", "no").await, Ok(Published::Counted(2)));
}

#[tokio::test(start_paused = true)]
async fn events_that_cannot_be_written_are_dropped_and_counted() {
    let server = ApiServer::builder().seed(1).build();
    let recorder = EventRecorder::new(server.client(), "example.com/controller", "me");
    server.faults().add(Fault::status(403).verb(Verb::Create));
    for number in 0..10_000 {
        assert!(publish(&recorder, &format!("o{number}"), "no").await.is_err());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(recorder.unwritten() <= 4096);
    assert_eq!(recorder.unwritten() + recorder.dropped(), 10_000);
}

#[tokio::test]
async fn events_about_names_that_no_event_may_have_are_accepted() {
    let server = ApiServer::new();
    let recorder = EventRecorder::new(server.client(), "example.com/controller", "me");
    let (longest, longer) = ("a".repeat(236), "a".repeat(253));
    for name in ["system:node", "Upper", "under_score", &longest, &longer] {
        assert_eq!(publish(&recorder, name, "no").await, Ok(Published::Created), "{name}");
    }
    let names: Vec<String> = events(&server).iter().map(|event| event["regarding"]["name"].to_string()).collect();
    assert_eq!(names.len(), 5);
    let kept = |event: &Value| event["metadata"]["name"].as_str().unwrap().starts_with(&longest);
    assert_eq!(events(&server).into_iter().filter(kept).count(), 1, "236 characters leave room for the suffix");
}

/// Publishes this number of events over a network that refuses them, so that the recorder only counts them.
async fn fill(recorder: &EventRecorder, network: &Network, many: u32) {
    network.set(Mode::Refused);
    for number in 0..many {
        publish(recorder, &format!("o{number}"), "no").await.unwrap_err();
    }
    assert_eq!(recorder.unwritten(), u64::from(many));
}

#[tokio::test(start_paused = true)]
async fn a_flush_ends_after_five_seconds_even_if_the_server_does_not_answer() {
    let (server, network) = (ApiServer::builder().seed(1).build(), Network::default());
    let recorder = EventRecorder::new(network.client(&server), "example.com/controller", "me");
    fill(&recorder, &network, 4000).await;
    network.set(Mode::Silent);
    let began = Instant::now();
    let error = recorder.flush().await.unwrap_err().to_string();
    assert!(began.elapsed() <= Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!((error.as_str(), recorder.unwritten()), ("4000 events were not written within 5s", 4000));
    // None of them is lost.
    network.set(Mode::Open);
    recorder.flush().await.unwrap();
    assert_eq!((events(&server).len(), recorder.unwritten()), (4000, 0));
}

#[tokio::test(start_paused = true)]
async fn a_flush_writes_several_events_at_the_same_time() {
    let (server, network) = (ApiServer::builder().seed(1).build(), Network::default());
    let recorder = EventRecorder::new(network.client(&server), "example.com/controller", "me");
    fill(&recorder, &network, 160).await;
    network.set(Mode::Slow(100, 100));
    let began = Instant::now();
    recorder.flush().await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(1));
    assert_eq!(events(&server).len(), 160);
}

fn record(recorder: &EventRecorder, name: &str) {
    recorder.record(&about(name), EventType::Normal, "Synced", "Sync", "done");
}

#[tokio::test(start_paused = true)]
async fn recording_does_not_wait_for_a_slow_server_and_the_event_arrives() {
    let (server, network) = (ApiServer::builder().seed(1).build(), Network::default());
    let recorder = EventRecorder::new(network.client(&server), "example.com/controller", "me");
    network.set(Mode::Slow(3_000, 3_000));
    let began = Instant::now();
    (0..100).for_each(|number| record(&recorder, &format!("o{number}")));
    assert_eq!(began.elapsed(), Duration::ZERO);
    sleep(Duration::from_millis(3_100)).await;
    assert_eq!(network.asked().len(), 32, "16 at a time");
    sleep(Duration::from_secs(30)).await;
    assert_eq!((events(&server).len(), recorder.unwritten()), (100, 0));
}

#[tokio::test(start_paused = true)]
async fn equal_events_that_are_recorded_while_the_first_is_written_are_one_event() {
    let (server, network) = (ApiServer::builder().seed(1).build(), Network::default());
    let recorder = EventRecorder::new(network.client(&server), "example.com/controller", "me");
    network.set(Mode::Slow(3_000, 3_000));
    for _ in 0..4 {
        record(&recorder, "a");
        sleep(Duration::from_millis(100)).await;
    }
    let published = recorder.publish(&about("a"), EventType::Normal, "Synced", "Sync", "done").await.unwrap();
    assert_eq!(published, Published::Held(5), "the first is being written");
    sleep(Duration::from_secs(10)).await;
    let written = events(&server);
    assert_eq!((written.len(), &written[0]["series"]["count"]), (1, &5.into()));
    assert_eq!(recorder.unwritten(), 0);
}

#[tokio::test(start_paused = true)]
async fn recorded_events_that_the_server_refuses_are_counted_and_flushed() {
    let (server, network) = (ApiServer::builder().seed(1).build(), Network::default());
    let recorder = EventRecorder::new(network.client(&server), "example.com/controller", "me");
    network.set(Mode::Silent);
    (0..40).for_each(|number| record(&recorder, &format!("o{number}")));
    sleep(Duration::from_secs(60)).await;
    assert_eq!((network.asked().len(), recorder.unwritten()), (40, 40), "each event is sent once");
    network.set(Mode::Open);
    recorder.flush().await.unwrap();
    assert_eq!((events(&server).len(), recorder.unwritten()), (40, 0));
}

#[tokio::test(start_paused = true)]
async fn a_flush_writes_others_beside_an_event_in_flight_that_is_not_answered() {
    let (server, network) = (ApiServer::builder().seed(1).build(), Network::default());
    let recorder = EventRecorder::new(network.client(&server), "example.com/controller", "me");
    network.set(Mode::Refused);
    (0..9).for_each(|number| record(&recorder, &format!("o{number}")));
    sleep(Duration::from_millis(10)).await;
    network.set(Mode::Silent);
    record(&recorder, "silent");
    sleep(Duration::from_millis(10)).await;
    network.set(Mode::Open);
    (0..9).for_each(|number| record(&recorder, &format!("o{number}")));
    assert!(
        tokio::time::timeout(Duration::from_secs(1), recorder.flush()).await.is_err(),
        "the flush waits for the event in flight"
    );
    let written = events(&server);
    assert_eq!((written.len(), recorder.unwritten()), (9, 1));
    assert!(written.iter().all(|event| event["series"]["count"] == 2));
    recorder.flush().await.unwrap();
    assert_eq!((events(&server).len(), recorder.unwritten()), (10, 0));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_dropped_does_not_block_other_writes() {
    let (server, network) = (ApiServer::builder().seed(1).build(), Network::default());
    let recorder = EventRecorder::new(network.client(&server), "example.com/controller", "me");
    network.set(Mode::Silent);
    let waits = Duration::from_secs(1);
    assert!(tokio::time::timeout(waits, publish(&recorder, "a", "no")).await.is_err());
    assert!(tokio::time::timeout(waits, recorder.flush()).await.is_err());
    network.set(Mode::Open);
    assert_eq!(publish(&recorder, "a", "no").await, Ok(Published::Created));
}

#[test]
fn recording_outside_of_a_runtime_only_counts() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (server, recorder) = runtime.block_on(async {
        let server = ApiServer::new();
        (server.clone(), EventRecorder::new(server.client(), "example.com/controller", "me"))
    });
    record(&recorder, "a");
    assert_eq!(recorder.unwritten(), 1);
    runtime.block_on(recorder.flush()).unwrap();
    assert_eq!(events(&server).len(), 1);
}
