//! Watches with wrong, missing or late events.

use std::time::Duration;

use kube_embedded_apiserver::{Action, Fault, Verb};
use serde_json::json;

use super::{Row, code, lasting, of_watches, reopened};
use crate::Error;
use crate::stage::Stage;
use crate::step::{NAMESPACES, Setup, Step};

pub(super) fn rows() -> Vec<Row> {
    let streams = || Setup { kube_rs_streams: true, ..Setup::default() };
    vec![
        Row::new("F5", "a line of a watch is not JSON", "One line, among events.").steps(reopened([once(line("not json"))])),
        Row::new("F5b", "an event has an unknown type", "One event, among others.").steps(reopened([once(line(
            r#"{"type":"WEIRD","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","namespace":"a"}}}"#,
        ))])),
        Row::new("F6", "watches end right after their headers", "Every watch, for 10 s.")
            .steps(lasting(10.0, reopened([of_watches(Action::EndAfterEvents(0))])))
            .heavy(),
        Row::new("F7", "the initial stream ends before it is complete", "From the start and for 10 s, every streaming list ends after three objects. kube-rs is set to streaming lists.")
            .on(streams())
            .before([Step::Fault(Fault::new(Action::EndAfterEvents(3)).query_contains("sendInitialEvents=true"))])
            .steps([Step::Wait(10.0), Step::Clear])
            .heavy(),
        Row::new("F8", "the initial stream has no final bookmark", "From the start and for 10 s, streaming lists do not send the bookmark at their end, and stay open. kube-rs is set to streaming lists.")
            .on(streams())
            .before([Step::Fault(Fault::withhold_end_bookmark())])
            .steps([Step::Wait(10.0), Step::Clear])
            .within(150.0),
        Row::new("F9", "the server refuses streaming lists", "From the start: a server before 1.34. kube-rs is set to streaming lists.")
            .on(Setup { streaming: false, ..streams() })
            .within(30.0),
        Row::new("F17", "watches fail to start with 500", "For 8 s.")
            .steps(lasting(8.0, reopened([of_watches(code(500))]))),
        Row::new("F17b", "watches fail to start with 503", "For 8 s.")
            .steps(lasting(8.0, reopened([of_watches(code(503))]))),
        Row::new("F19", "a watch has an error event", "An `ERROR` event with code 500 after two events, three times.")
            .steps(lasting(8.0, reopened([Step::Fault(Fault::error_event(500, 2).times(3))]))),
        Row::new("F20", "lists work and watches are forbidden", "403 for every watch, for 20 s.")
            .steps(lasting(20.0, reopened([of_watches(code(403))])))
            .within(90.0),
        Row::new("F20b", "lists work and watches are not found", "404 for every watch, for 20 s.")
            .steps(lasting(20.0, reopened([of_watches(code(404))])))
            .within(90.0),
        Row::new("F21", "an event is sent twice", "One of twenty events.").steps(reopened([once(Action::DuplicateEvent(2))])),
        Row::new("F22", "an older state of an object is sent after a newer one", "For one object, which does not change afterwards.")
            .steps([Step::Do(older)]),
        Row::new("F23", "events have the wrong type", "A new object is `MODIFIED`, a known one is `ADDED`, and one that never existed is `DELETED`.")
            .steps([Step::Do(retyped)]),
        Row::new("F24", "an event is missing", "The event of a delete is dropped: no later message contradicts the cache.")
            .steps([Step::Do(missed)]),
        Row::new("F25", "only bookmarks arrive", "Only other resources change for 5 s; then history is forgotten and all watches are cut. The last bookmark's version is still valid.")
            .on(Setup { bookmarks: 1, ..Setup::default() })
            .steps([Step::Pause, Step::Wait(2.0), Step::Do(elsewhere), Step::Wait(3.0), Step::Compact, Step::Resume, Step::Disconnect, Step::Burst(20)]),
        Row::new("F26", "bookmarks have a lower version", "Version 1, for 4 s; then all watches are cut.")
            .on(Setup { bookmarks: 1, ..Setup::default() })
            .steps(bookmarks("1")),
        Row::new("F26b", "bookmarks have no version", "For 4 s; then all watches are cut.")
            .on(Setup { bookmarks: 1, ..Setup::default() })
            .steps(bookmarks("")),
        Row::new("F32", "events arrive faster than they are read", "20,000 changes as fast as possible; the server closes watches that are 20 events behind.")
            .on(Setup { max_lag: Some(20), ..Setup::default() })
            .steps([Step::Burst(20_000)])
            .heavy(),
        Row::new("F42", "an event has an object of another kind", "One Secret among config maps.").steps(reopened([once(line(
            r#"{"type":"MODIFIED","object":{"kind":"Secret","apiVersion":"v1","metadata":{"name":"fixed-0","namespace":"a"}}}"#,
        ))])),
        Row::new("F42b", "an event's object has no metadata", "One event, among others.").steps(reopened([once(line(
            r#"{"type":"MODIFIED","object":{"kind":"ConfigMap","apiVersion":"v1"}}"#,
        ))])),
        Row::new("F48", "compressed watches consist of many gzip members", "From the start, for clients that accept gzip for watches.")
            .on(streams())
            .within(30.0),
        Row::new("F48b", "a compressed response is cut off", "Each streaming list is cut after 2,000 bytes, for 8 s from the start.")
            .on(streams())
            .before([Step::Fault(Fault::new(Action::ResetAfterBytes(2000)).query_contains("sendInitialEvents=true"))])
            .steps([Step::Wait(8.0), Step::Clear])
            .heavy(),
        Row::new("F48c", "responses are compressed although the client does not accept it", "Every watch, for 8 s.")
            .steps(lasting(8.0, reopened([of_watches(Action::UnaskedGzip)]))),
        Row::new("F50", "response headers are late", "The next watch gets its headers after 30 s.")
            .steps(reopened([once(Action::Delay(Duration::from_secs(30)))]))
            .within(90.0),
        Row::new("F50b", "an event is late", "The first event of the next watch is sent after 30 s.")
            .steps(reopened([once(Action::DelayEvent { nth: 1, delay: Duration::from_secs(30) })]))
            .within(90.0),
    ]
}

fn once(action: Action) -> Step {
    Step::Fault(Fault::new(action).verb(Verb::Watch).times(1))
}

fn line(line: &str) -> Action {
    Action::InsertLine { after_events: 2, line: line.to_owned() }
}

fn bookmarks(version: &str) -> Vec<Step> {
    let odd = of_watches(Action::BookmarkVersion(version.to_owned()));
    let mut steps = lasting(4.0, reopened([odd]));
    steps.extend([Step::Disconnect, Step::Burst(20)]);
    steps
}

fn older(stage: &mut Stage) -> Result<(), Error> {
    let old = stage.server.get("configmaps", Some(NAMESPACES[0]), "fixed-0")?;
    stage.truth.update(NAMESPACES[0], "fixed-0", "1")?;
    let line = json!({"type": "MODIFIED", "object": old}).to_string();
    // After the event of the update, wherever it is in the stream.
    let insert = Action::InsertLine { after_events: 5, line };
    stage.spoil(Fault::new(insert).verb(Verb::Watch).times(1));
    stage.server.disconnect_watches();
    (0..20).try_for_each(|_| stage.truth.random_change())
}

fn retyped(stage: &mut Stage) -> Result<(), Error> {
    // The version of the previous change: a lower one would be a different fault.
    let version = (stage.server.revision() + 2).to_string();
    let metadata = json!({"name": "ghost", "namespace": NAMESPACES[0], "uid": "0", "resourceVersion": version});
    let ghost = json!({"type": "DELETED", "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}});
    let actions = [
        Action::RetypeEvent { nth: 1, to: "MODIFIED" },
        Action::RetypeEvent { nth: 2, to: "ADDED" },
        Action::InsertLine { after_events: 2, line: ghost.to_string() },
    ];
    for action in actions {
        stage.spoil(Fault::new(action).verb(Verb::Watch).times(1));
    }
    // An event that was sent before the disconnect does not count; the next two events of the new watch are these two
    // changes.
    stage.server.disconnect_watches();
    stage.truth.create(NAMESPACES[0], "new", "1")?;
    stage.truth.update(NAMESPACES[0], "fixed-1", "1")?;
    (0..20).try_for_each(|_| stage.truth.random_change())
}

fn missed(stage: &mut Stage) -> Result<(), Error> {
    stage.spoil(Fault::new(Action::DropEvent(1)).verb(Verb::Watch).times(1));
    stage.server.disconnect_watches();
    stage.truth.delete(NAMESPACES[0], "fixed-2")?;
    (0..20).try_for_each(|_| stage.truth.random_change())
}

fn elsewhere(stage: &mut Stage) -> Result<(), Error> {
    for number in 0..20 {
        stage.server.create("nodes", None, json!({"metadata": {"name": format!("node-{number}")}}))?;
    }
    Ok(())
}
