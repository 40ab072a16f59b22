//! The state after a controller has finished, and the differences between two states.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::story::{DEPLOYMENTS, EVENTS, FOOS};
use crate::server::Server;

/// The fields of Foos, deployments and events by their paths, without random values.
#[derive(Debug, PartialEq)]
pub(crate) struct EndState(BTreeMap<Vec<String>, Value>);

impl EndState {
    pub(crate) async fn of(server: &Server) -> Self {
        let mut fields = BTreeMap::new();
        for (kind, path) in [("foos", FOOS), ("deployments", DEPLOYMENTS)] {
            let objects = items(server, path).await;
            let objects: Map<_, _> = objects.iter().map(|object| (name(object), written(object))).collect();
            flatten(vec![kind.to_owned()], &objects.into(), &mut fields);
        }
        flatten(vec!["events".to_owned()], &events(&items(server, EVENTS).await), &mut fields);
        Self(fields)
    }

    /// Returns the number of fields.
    pub(crate) fn fields(&self) -> usize {
        self.0.len()
    }
}

/// Returns a line for each different field, without the allowed ones.
pub(crate) fn differences(client_go: &EndState, ours: &EndState, listed: &[(&str, &str)]) -> Vec<String> {
    let mut paths: Vec<_> = client_go.0.keys().chain(ours.0.keys()).collect();
    paths.sort();
    paths.dedup();
    let shown = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
    let differing = paths.into_iter().filter(|path| client_go.0.get(*path) != ours.0.get(*path));
    differing
        .filter(|path| !listed.iter().any(|(pattern, _)| is_like(path, pattern)))
        .map(|path| {
            let (theirs, ours) = (shown(client_go.0.get(path)), shown(ours.0.get(path)));
            format!("{}: client-go's has {theirs}, ours {ours}", path.join("/"))
        })
        .collect()
}

/// Returns true if a path starts with the pattern.
fn is_like(path: &[String], pattern: &str) -> bool {
    let parts: Vec<_> = pattern.split('/').collect();
    parts.len() <= path.len() && parts.iter().zip(path).all(|(part, name)| *part == "*" || part == name)
}

/// Returns the fields that clients write; the others are set by the server or random.
fn written(object: &Value) -> Value {
    let metadata = &object["metadata"];
    let mut owners = metadata["ownerReferences"].clone();
    for owner in owners.as_array_mut().into_iter().flatten() {
        owner.as_object_mut().unwrap().remove("uid");
    }
    let metadata = json!({
        "name": metadata["name"], "labels": metadata["labels"], "annotations": metadata["annotations"],
        "finalizers": metadata["finalizers"], "ownerReferences": owners,
    });
    json!({"metadata": metadata, "spec": object["spec"], "status": object["status"]})
}

/// Returns the events of each object by reason. How often an event occurs depends on timing.
fn events(events: &[Value]) -> Value {
    let mut found = BTreeMap::<_, Map<_, _>>::new();
    // The server creates events of its own services too.
    for event in
        events.iter().filter(|event| ["Foo", "Deployment"].iter().any(|kind| event["regarding"]["kind"] == *kind))
    {
        let [api_version, kind, name] =
            ["apiVersion", "kind", "name"].map(|field| event["regarding"][field].as_str().unwrap_or_default());
        let reason = format!("{} {}", event["type"].as_str().unwrap(), event["reason"].as_str().unwrap());
        let fields = json!({"note": event["note"], "reportingController": event["reportingController"]});
        found.entry(format!("{api_version} {kind} {name}")).or_default().insert(reason, fields);
    }
    json!(found)
}

async fn items(server: &Server, path: &str) -> Vec<Value> {
    let (code, mut list) = server.send("GET", path, &Value::Null).await;
    assert_eq!(code, 200, "{list}");
    match list["items"].take() {
        Value::Array(items) => items,
        _ => panic!("no list"),
    }
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

/// Collects all values by their paths. A null counts as missing.
fn flatten(path: Vec<String>, value: &Value, fields: &mut BTreeMap<Vec<String>, Value>) {
    let below = |name: String| path.iter().cloned().chain([name]).collect::<Vec<_>>();
    match value {
        Value::Object(object) if !object.is_empty() => {
            object.iter().for_each(|(name, value)| flatten(below(name.clone()), value, fields));
        }
        Value::Array(array) if !array.is_empty() => {
            array.iter().enumerate().for_each(|(at, value)| flatten(below(at.to_string()), value, fields));
        }
        Value::Null => {}
        value => drop(fields.insert(path, value.clone())),
    }
}
