//! Faults of objects.

use serde_json::json;

use super::{LONG, Row, relisted};
use crate::Error;
use crate::stage::Stage;
use crate::step::{NAMESPACES, Setup, Step, WatchedCollection};

const DEFINITION: &str = "widgets.demo.example.com";
const DEFINITIONS: &str = "customresourcedefinitions";

pub(super) fn rows() -> Vec<Row> {
    let follows = |followed| Setup { followed, ..Setup::default() };
    vec![
        Row::new("F33", "an object is large", "An event with an object of 12 MiB.").steps([Step::Do(large)]).heavy(),
        Row::new("F33b", "an object is huge", "An event with an object of 17 MiB.").steps([Step::Do(huge)]).heavy(),
        Row::new("F49", "the server's clock is wrong", "Two hours behind, to the end; watches are reopened.").steps([
            Step::Do(|stage| {
                stage.server.set_clock_skew(-7200);
                Ok(())
            }),
            Step::Disconnect,
            Step::Burst(20),
        ]),
        Row::new(
            "F51",
            "a CRD is deleted and created again",
            "Deleted for 8 s; then there are new objects with the same names.",
        )
        .on(follows(WatchedCollection::Widgets))
        .steps([
            Step::Pause,
            Step::Do(undefine),
            Step::Wait(8.0),
            Step::Do(define),
            Step::Wait(1.0),
            Step::Do(refill),
            Step::Resume,
        ])
        .within(LONG),
        Row::new("F52", "the selected namespace is deleted", "For 3 s; then it is created again, with new objects.")
            .on(follows(WatchedCollection::Namespace(NAMESPACES[0])))
            .steps([Step::Pause, Step::Do(remove_namespace), Step::Wait(3.0), Step::Do(make_namespace), Step::Resume]),
        Row::new(
            "F53",
            "objects stop and start to match the selector",
            "100 changes at once, many of them of the selected label.",
        )
        .on(follows(WatchedCollection::Selected))
        .steps([Step::Burst(100)]),
        Row::new(
            "F54",
            "an object is replaced by another with its name",
            "Deleted and created again while there are no watches; then history is forgotten.",
        )
        .steps(relisted([Step::Do(|stage| {
            stage.server.disconnect_watches();
            replace(stage)
        })])),
    ]
}

fn large(stage: &mut Stage) -> Result<(), Error> {
    put(stage, 12 << 20)
}

fn huge(stage: &mut Stage) -> Result<(), Error> {
    put(stage, 17 << 20)
}

fn put(stage: &mut Stage, bytes: usize) -> Result<(), Error> {
    let object = json!({"metadata": {"name": "huge"}, "data": {"much": "x".repeat(bytes)}});
    stage.server.create("configmaps", Some(NAMESPACES[0]), object)?;
    stage.truth.reload()
}

fn undefine(stage: &mut Stage) -> Result<(), Error> {
    stage.server.delete(DEFINITIONS, None, DEFINITION)?;
    stage.truth.reload()
}

fn define(stage: &mut Stage) -> Result<(), Error> {
    let names = json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"});
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let versions = json!([{"name": "v1", "served": true, "storage": true, "schema": schema}]);
    let spec = json!({"group": "demo.example.com", "scope": "Namespaced", "names": names, "versions": versions});
    stage.server.create(DEFINITIONS, None, json!({"metadata": {"name": DEFINITION}, "spec": spec}))?;
    Ok(())
}

fn refill(stage: &mut Stage) -> Result<(), Error> {
    stage.truth.fill(100, 0)?;
    stage.truth.reload()
}

fn remove_namespace(stage: &mut Stage) -> Result<(), Error> {
    stage.server.delete("namespaces", None, NAMESPACES[0])?;
    stage.truth.reload()
}

fn make_namespace(stage: &mut Stage) -> Result<(), Error> {
    stage.server.create("namespaces", None, json!({"metadata": {"name": NAMESPACES[0]}}))?;
    stage.truth.fill(20, 0)?;
    stage.truth.reload()
}

fn replace(stage: &mut Stage) -> Result<(), Error> {
    stage.truth.delete(NAMESPACES[0], "fixed-3")?;
    stage.truth.create(NAMESPACES[0], "fixed-3", "1")
}
