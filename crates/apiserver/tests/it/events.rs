//! Events of the core group and of `events.k8s.io` are the same objects under two sets of names.

use crate::support::*;
use serde_json::{Value, json};

const CORE: &str = "/api/v1/namespaces/default/events";
const OTHER: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

/// The name of each field in both representations.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

fn core_event(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "default"}, "reason": "Started", "type": "Normal",
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}, "message": "it runs",
        "source": {"component": "kubelet"}, "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:05Z", "count": 2, "reportingComponent": "kubelet",
    })
}

#[tokio::test(start_paused = true)]
async fn an_event_is_read_under_both_groups() {
    let server = server();
    let created = post(&server, CORE, &core_event("e")).await;
    assert_eq!(created.code, 201);
    let shown = get(&server, &format!("{OTHER}/e")).await.json();
    assert_eq!((&shown["kind"], &shown["apiVersion"]), (&json!("Event"), &json!("events.k8s.io/v1")));
    assert_eq!(shown["metadata"], created.json()["metadata"]);
    for (core, other) in NAMES {
        assert_eq!((shown.get(core), &shown[other]), (None, &core_event("e")[core]), "{core}");
    }
    assert_eq!(get(&server, OTHER).await.json()["items"][0]["note"], "it runs");
    assert_eq!(server.list("events.events.k8s.io").unwrap().1[0]["note"], "it runs");
    assert_eq!(server.list("events").unwrap().1[0]["message"], "it runs");
}

#[tokio::test(start_paused = true)]
async fn an_event_is_written_under_either_group_and_watched_under_both() {
    let server = server();
    let start = server.revision();
    let mut core = Watch::open(&server, &format!("{CORE}?watch=1&resourceVersion={start}")).await;
    let mut other = Watch::open(&server, &format!("{OTHER}?watch=1&resourceVersion={start}")).await;
    let body = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "name": "p"}, "note": "one", "reportingController": "me"});
    assert_eq!(post(&server, OTHER, &body).await.json()["note"], "one");
    let patched = merge(&server, &format!("{CORE}/e"), &json!({"message": "two"})).await.json();
    let again = merge(&server, &format!("{OTHER}/e"), &json!({"note": "two"})).await.json();
    assert_eq!((&again["note"], version(&again)), (&json!("two"), version(&patched)));
    assert_eq!(delete(&server, &format!("{OTHER}/e")).await.code, 200);
    assert_eq!(get(&server, &format!("{CORE}/e")).await.code, 404);
    for (kind, text) in [("ADDED e", "one"), ("MODIFIED e", "two"), ("DELETED e", "two")] {
        let (core, other) = (core.next().await, other.next().await);
        assert_eq!((told(&core).as_str(), told(&other).as_str()), (kind, kind));
        assert_eq!((&core["object"]["message"], &other["object"]["note"]), (&json!(text), &json!(text)));
        assert_eq!(core["object"]["metadata"], other["object"]["metadata"]);
        assert_eq!(other["object"]["reportingController"], "me");
    }
}

#[tokio::test(start_paused = true)]
async fn each_group_selects_by_its_own_names() {
    let server = server();
    post(&server, CORE, &core_event("e")).await;
    let mut other = core_event("f");
    other["involvedObject"]["name"] = json!("q");
    other["source"] = json!({});
    post(&server, CORE, &other).await;
    let found = async |path: &str, selector: &str| {
        let answer = get(&server, &format!("{path}?fieldSelector={selector}")).await;
        if answer.code == 200 { answer.names() } else { vec![answer.json()["message"].as_str().unwrap().to_owned()] }
    };
    assert_eq!(found(CORE, "involvedObject.name%3Dp").await, ["e"]);
    assert_eq!(found(OTHER, "regarding.name%3Dp").await, ["e"]);
    assert_eq!(found(OTHER, "reportingController%3Dkubelet,type%3DNormal").await, ["e", "f"]);
    assert_eq!(found(CORE, "source%3Dkubelet").await, ["e", "f"]);
    assert_eq!(found(OTHER, "involvedObject.name%3Dp").await, ["field label not supported: involvedObject.name"]);
    assert_eq!(found(OTHER, "source%3Dkubelet").await, ["field label not supported: source"]);
}
