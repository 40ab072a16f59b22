//! A custom resource that is defined for each input.

use kube_embedded_apiserver::ApiServer;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use std::time::Duration;

use crate::ask::{Ask, settled};

pub(crate) const THINGS: &str = "/apis/fuzz.example.com/v1/namespaces/default/things";
pub(crate) const THING: &str = "/apis/fuzz.example.com/v1/namespaces/default/things/a";
/// As a table, which uses the columns of the CRD.
pub(crate) const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The time limit for an input of a few kilobytes. Allowed work takes a few seconds at most in a build with little
/// optimisation.
const LONGEST: Duration = Duration::from_secs(20);

/// Runs work, and checks the processor time of this thread, which does not depend on the load of the machine.
pub(crate) fn in_time(work: impl FnOnce()) {
    let start = busy();
    work();
    let took = busy().saturating_sub(start);
    assert!(took <= LONGEST, "the input took {took:?}");
}

/// Returns the processor time of this thread.
fn busy() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Returns a version of things with this schema.
pub(crate) fn version_of(schema: Value) -> Value {
    json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}})
}

/// Creates the CRD of things with this version; returns false if the server refuses it.
pub(crate) async fn define(server: &ApiServer, version: Value) -> bool {
    let definition = json!({"metadata": {"name": "things.fuzz.example.com"}, "spec": {"group": "fuzz.example.com",
        "names": {"plural": "things", "kind": "Thing"}, "scope": "Namespaced", "versions": [version]}});
    let answer = Ask::json("POST", DEFINITIONS, &definition).send(server).await;
    if !answer.is_success() {
        return false;
    }
    settled().await;
    for (target, accept) in [(THINGS, TABLE), ("/openapi/v3/apis/fuzz.example.com/v1", "")] {
        let answer = Ask { accept, ..Ask::get(target) }.send(server).await;
        assert_eq!(answer.code, 200, "the resource is served: {definition}: {answer:?}");
    }
    true
}

/// Returns a thing with the name `a` and these members.
pub(crate) fn thing(mut members: Value) -> Value {
    members["apiVersion"] = "fuzz.example.com/v1".into();
    members["kind"] = "Thing".into();
    members["metadata"] = json!({"name": "a"});
    members
}
