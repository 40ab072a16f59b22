//! Writes of several managers to the same objects.

use kube_embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::ask::{APPLY, Answer, Ask, JSON, MERGE, OPERATIONS, STRATEGIC, differences, encoded, settled};
use crate::choices::Choices;
use crate::samples::{SAMPLES, SHAPES, Sample};

/// More writes to the same objects find little more.
const MOST_WRITES: usize = 8;
const MANAGERS: &[&str] = &["one", "two", "kubectl", "é"];
const PARTS: &[&str] = &["", "", "/status", "/scale"];

/// A few writes, by several managers, to a deployment, a config map and an object with every type of list and map. The
/// server accepts or refuses each. Afterwards the managed fields are readable, and the same write again changes
/// nothing.
pub fn applies(input: &[u8]) {
    let mut choices = Choices::new(input);
    let server = ApiServer::builder().seed(1).build();
    let subjects = [&SAMPLES[1], &SAMPLES[3], &SHAPES[1]];
    SHAPES[0].put(&server);
    subjects.iter().for_each(|subject| subject.put(&server));
    crate::run(async {
        for _ in 0..MOST_WRITES {
            if choices.is_empty() {
                break;
            }
            let subject = choices.pick(&subjects);
            Write::of(subject, &mut choices).check(&server, subject).await;
        }
    });
}

/// One write.
struct Write {
    way: Way,
    /// The path of the object.
    object: String,
    /// The path of the object or a subresource, with the query.
    target: String,
    body: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Apply,
    Merge,
    Strategic,
    Operations,
    Replace,
    Delete,
}

impl Write {
    fn of(subject: &Sample, choices: &mut Choices<'_>) -> Self {
        use Way::{Apply, Delete, Merge, Operations, Replace, Strategic};
        let way = choices.pick(&[Apply, Apply, Apply, Apply, Merge, Merge, Strategic, Replace, Operations, Delete]);
        // The object `b` does not exist at first.
        let name = choices.pick(&["a", "a", "a", "b"]);
        let manager = encoded(choices.pick(MANAGERS));
        let force = if way == Apply && !choices.coin() { "&force=true" } else { "" };
        let object = format!("{}/{name}", subject.collection);
        let part = choices.pick(PARTS);
        let target = format!("{object}{part}?fieldManager={manager}{force}");
        let body = match way {
            Operations => choices.operations(&subject.object),
            Delete => json!({}),
            _ if part == "/scale" => choices.varied(&scale()),
            _ => wanted(subject, name, way, choices),
        };
        Self { way, object, target, body }
    }

    /// Sends the write, and sends it again.
    async fn check(mut self, server: &ApiServer, subject: &Sample) {
        if self.way == Way::Replace && self.body["metadata"].is_object() {
            let known = self.read(server).await.unwrap_or_default();
            self.body["metadata"]["resourceVersion"] = known["metadata"]["resourceVersion"].clone();
        }
        if !self.send(server).await.is_success() {
            return;
        }
        if self.way == Way::Delete {
            // A finalizer may keep the object.
            let held = json!({"metadata": {"finalizers": null}});
            let _ = server.patch(subject.resource, Some("default"), self.name(), held);
            return settled().await;
        }
        let Some(first) = self.read(server).await else { return };
        if !self.is_repeatable() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        let again = self.send(server).await;
        assert!(
            again.is_success(),
            "{} was accepted, and is refused the second time: {again:?}: {}",
            self.target,
            self.body
        );
        let second = self.read(server).await.expect("the object exists");
        let changes = if is_reordered(&first, &second) { Vec::new() } else { differences(&first, &second) };
        assert!(changes.is_empty(), "{:?} to {} again: {changes:#?}: {}", self.way, self.target, self.body);
    }

    /// Returns true if the same write again must change nothing. A write that sets managed fields removes the server's
    /// entries.
    fn is_repeatable(&self) -> bool {
        match self.way {
            Way::Apply => true,
            Way::Merge | Way::Strategic => self.body["metadata"].get("managedFields").is_none(),
            Way::Operations | Way::Replace | Way::Delete => false,
        }
    }

    fn name(&self) -> &str {
        self.object.rsplit('/').next().unwrap_or_default()
    }

    fn method(&self) -> &'static str {
        match self.way {
            Way::Replace => "PUT",
            Way::Delete => "DELETE",
            _ => "PATCH",
        }
    }

    async fn send(&self, server: &ApiServer) -> Answer {
        let content_type = match self.way {
            Way::Apply => APPLY,
            Way::Merge => MERGE,
            Way::Strategic => STRATEGIC,
            Way::Operations => OPERATIONS,
            Way::Replace | Way::Delete => JSON,
        };
        Ask { content_type, ..Ask::json(self.method(), &self.target, &self.body) }.send(server).await
    }

    /// Reads the object, if it exists, and checks that its managed fields are readable.
    async fn read(&self, server: &ApiServer) -> Option<Value> {
        let answer = Ask::get(&self.object).send(server).await;
        let object = answer.is_success().then(|| answer.value())?;
        for entry in object["metadata"]["managedFields"].as_array().into_iter().flatten() {
            let known = matches!(entry["operation"].as_str(), Some("Apply" | "Update"));
            assert!(known && entry["apiVersion"].is_string() && entry["fieldsType"] == "FieldsV1", "{entry}");
            assert!(is_readable(&entry["fieldsV1"]), "{entry}");
        }
        Some(object)
    }
}

/// Returns a body for the scale subresource.
fn scale() -> Value {
    json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"labels": {"a": "b"}},
        "spec": {"replicas": 3}, "status": {"replicas": 1}})
}

/// Returns the body of an apply, an update or a patch.
fn wanted(subject: &Sample, name: &str, way: Way, choices: &mut Choices<'_>) -> Value {
    let mut sample = subject.object.clone();
    if way != Way::Apply {
        sample["metadata"]["managedFields"] = managed_fields();
    }
    let mut body = choices.varied(&sample);
    if way == Way::Strategic && body.is_object() {
        direct(&mut body, choices);
    }
    let named = !body.is_object() || choices.byte() == 1;
    if !named && way != Way::Merge && way != Way::Strategic {
        body["apiVersion"] = subject.api_version().into();
        body["kind"] = subject.kind().into();
        if body["metadata"].is_object() || body["metadata"].is_null() {
            body["metadata"]["name"] = name.into();
        }
    }
    body
}

/// Adds directives to a strategic merge patch.
fn direct(body: &mut Value, choices: &mut Choices<'_>) {
    match body {
        Value::Object(members) => {
            let names: Vec<String> = members.keys().cloned().collect();
            members.values_mut().for_each(|member| direct(member, choices));
            match choices.below(24) {
                1 => members.insert("$patch".into(), choices.pick(&["delete", "replace", "merge", "x"]).into()),
                2 => members.insert("$retainKeys".into(), names.into()),
                3 => names.first().and_then(|name| {
                    let order = members[name].clone();
                    members.insert(format!("$setElementOrder/{name}"), order)
                }),
                4 => names.first().and_then(|name| {
                    let deleted = members[name].clone();
                    members.insert(format!("$deleteFromPrimitiveList/{name}"), deleted)
                }),
                5 => members.insert(choices.pick(DIRECTIVES).into(), choices.json(&["a", "c", "name"], 2)),
                _ => None,
            };
        }
        Value::Array(items) => items.iter_mut().for_each(|item| direct(item, choices)),
        _ => {}
    }
}

const DIRECTIVES: &[&str] = &[
    "$patch",
    "$retainKeys",
    "$setElementOrder/containers",
    "$setElementOrder/finalizers",
    "$setElementOrder",
    "$deleteFromPrimitiveList/finalizers",
    "$deleteFromPrimitiveList",
    "$deleteFromPrimitiveList/args",
];

/// Returns managed fields with every kind of path element.
fn managed_fields() -> Value {
    json!([
        {"manager": "one", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsV1": {"f:spec": {".": {}, "f:replicas": {}, "f:template": {"f:spec": {"f:containers": {
                "k:{\"name\":\"c\"}": {".": {}, "f:image": {}}}}}}}},
        {"manager": "two", "operation": "Update", "apiVersion": "fuzz.example.com/v1", "fieldsType": "FieldsV1",
            "subresource": "status", "fieldsV1": {"f:spec": {"f:set": {"v:\"x\"": {}}, "f:numbers": {"v:1": {}, "i:0": {}},
                "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {}}}}},
    ])
}

/// Returns true if only the times of managed fields differ, and so their order. kube-apiserver stores a new version
/// then too.
fn is_reordered(one: &Value, other: &Value) -> bool {
    let owners = |object: &Value| {
        let mut entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        entries.iter_mut().filter_map(Value::as_object_mut).for_each(|entry| drop(entry.remove("time")));
        entries.into_iter().map(|entry| entry.to_string()).collect::<Vec<_>>()
    };
    let rest = |object: &Value| {
        let mut object = object.clone();
        object["metadata"]["managedFields"] = Value::Null;
        object["metadata"]["resourceVersion"] = Value::Null;
        object
    };
    let (mut before, mut after) = (owners(one), owners(other));
    let moved = before != after;
    before.sort_unstable();
    after.sort_unstable();
    moved && before == after && rest(one) == rest(other)
}

/// Returns true if every path element of a field set is valid.
fn is_readable(fields: &Value) -> bool {
    let Some(steps) = fields.as_object() else { return false };
    steps.iter().all(|(step, below)| {
        let rest = step.get(2..).unwrap_or_default();
        let known = match step.get(..2) {
            Some("f:") => true,
            Some("k:") => serde_json::from_str::<Value>(rest).is_ok_and(|keys| keys.is_object()),
            Some("v:") => serde_json::from_str::<Value>(rest).is_ok(),
            Some("i:") => rest.parse::<i64>().is_ok(),
            _ => step == ".",
        };
        known && is_readable(below)
    })
}
