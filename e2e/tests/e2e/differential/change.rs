//! A write. It depends on the current object and on its seed, but not on the server.

use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use serde_json::{Value, json};

use super::objects::{KINDS, Kind, container, pick, words};
use super::{Answer, Side};

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const OPERATIONS: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// A write with its own seed.
#[derive(Debug, Clone)]
pub(super) struct Change {
    kind: Kind,
    name: &'static str,
    verb: Verb,
    seed: u64,
}

#[derive(Debug, Clone, Copy)]
enum Verb {
    Create,
    Update,
    Merge,
    Operations,
    Strategic,
    Apply,
    Status,
    Scale,
    Delete,
    Read,
}

/// Returns a sequence of writes.
pub(super) fn changes(seed: u64, count: usize) -> Vec<Change> {
    let mut chance = StdRng::seed_from_u64(seed);
    let change = |_| {
        let kind = KINDS[chance.random_range(0..KINDS.len())];
        let verb = match chance.random_range(0..100) {
            0..18 => Verb::Create,
            18..36 => Verb::Update,
            36..48 => Verb::Merge,
            48..54 => Verb::Operations,
            54..62 if kind != Kind::Gear => Verb::Strategic,
            54..82 => Verb::Apply,
            82..89 if kind.has_status() => Verb::Status,
            89..93 if matches!(kind, Kind::Deployment | Kind::Gear) => Verb::Scale,
            82..95 => Verb::Delete,
            _ => Verb::Read,
        };
        Change { kind, name: pick(&mut chance, &["a", "b"]), verb, seed: chance.next_u64() }
    };
    (0..count).map(change).collect()
}

impl Change {
    /// Makes this change on a server.
    pub(super) async fn make(&self, side: &Side) -> Answer {
        let chance = &mut StdRng::seed_from_u64(self.seed);
        let collection = self.kind.path(&side.namespace);
        let path = format!("{collection}/{}", self.name);
        match self.verb {
            Verb::Read => side.send("GET", &path, "", &Value::Null).await,
            Verb::Delete => side.send("DELETE", &path, JSON, &self.delete(side, &path, chance).await).await,
            Verb::Create => {
                let mut object = self.kind.object(self.name, chance);
                let query = self.spoil(&mut object, chance);
                side.send("POST", &format!("{collection}?{query}"), JSON, &object).await
            }
            Verb::Update => {
                let mut object = side.send("GET", &path, "", &Value::Null).await.body;
                if object["kind"] == "Status" {
                    object = self.kind.object(self.name, chance);
                } else {
                    self.change(&mut object, chance);
                }
                let query = self.spoil(&mut object, chance);
                side.send("PUT", &format!("{path}?{query}"), JSON, &object).await
            }
            Verb::Merge => {
                let query = manager(chance);
                side.send("PATCH", &format!("{path}?{query}"), MERGE, &self.merge(chance)).await
            }
            Verb::Operations => side.send("PATCH", &path, OPERATIONS, &operations(chance)).await,
            Verb::Strategic => {
                let mut patch = self.strategic(chance);
                let mut path = path;
                if chance.random_bool(0.1) {
                    patch["spec"] = json!({"unknown": "x"});
                    path.push_str("?fieldValidation=Strict");
                }
                side.send("PATCH", &path, STRATEGIC, &patch).await
            }
            Verb::Apply => {
                let wanted = self.wanted(chance);
                let force = if chance.random_bool(0.4) { "&force=true" } else { "" };
                let query = format!("fieldManager={}{force}", pick(chance, &["one", "two", "three"]));
                side.send("PATCH", &format!("{path}?{query}"), APPLY, &wanted).await
            }
            Verb::Status => self.write_status(side, &path, chance).await,
            Verb::Scale => {
                let body = json!({"spec": {"replicas": chance.random_range(0..4)}});
                side.send("PATCH", &format!("{path}/scale?{}", manager(chance)), MERGE, &body).await
            }
        }
    }

    async fn delete(&self, side: &Side, path: &str, chance: &mut StdRng) -> Value {
        match chance.random_range(0..5) {
            0 => json!({"preconditions": {"uid": "00000000-0000-4000-8000-000000000000"}}),
            1 => {
                let object = side.send("GET", path, "", &Value::Null).await.body;
                json!({"preconditions": {"uid": object["metadata"]["uid"]}})
            }
            2 => json!({"gracePeriodSeconds": 0}),
            _ => Value::Null,
        }
    }

    /// Sometimes makes a write invalid or causes a warning; returns the query.
    fn spoil(&self, object: &mut Value, chance: &mut StdRng) -> String {
        let mut query = manager(chance);
        match chance.random_range(0..24) {
            0 => object["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000".into(),
            1 => object["metadata"]["resourceVersion"] = "1".into(),
            2 => object["unknown"] = json!({"a": 1}),
            3 => {
                object["metadata"]["unknown"] = true.into();
                query.push_str("&fieldValidation=Strict");
            }
            4 => object["metadata"]["labels"] = json!({"a b": "x"}),
            5 => object["metadata"]["name"] = "other".into(),
            6 if self.kind == Kind::Deployment => object["spec"]["replicas"] = "many".into(),
            6 if self.kind == Kind::Gear => object["spec"]["size"] = "many".into(),
            7 if self.kind == Kind::Gear => object["spec"]["size"] = (-1).into(),
            8 if self.kind == Kind::Gear => object["spec"]["size"] = 101.into(),
            9 if self.kind == Kind::Gear => object["spec"]["colour"] = "green".into(),
            10 if self.kind == Kind::Gear => object["spec"]["code"] = "UPPER".into(),
            11 if self.kind == Kind::Gear => object["spec"]["list"] = json!([1, -1]),
            6 | 7 if self.kind == Kind::ConfigMap => object["data"] = json!({"k": 1}),
            12 if self.kind == Kind::Deployment => object["spec"]["selector"] = json!({"matchLabels": {"app": "x"}}),
            13 => {
                let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"});
                object["metadata"]["ownerReferences"] = json!([owner]);
            }
            14 => query.push_str("&dryRun=All"),
            _ => {}
        }
        query
    }

    /// Changes an object that was read.
    fn change(&self, object: &mut Value, chance: &mut StdRng) {
        if chance.random_bool(0.3)
            && let Some(metadata) = object["metadata"].as_object_mut()
        {
            metadata.remove("resourceVersion");
        }
        match chance.random_range(0..6) {
            0 => object["metadata"]["labels"] = words(chance),
            1 => object["metadata"]["annotations"] = words(chance),
            2 => object["metadata"]["finalizers"] = json!([]),
            3 if self.kind != Kind::Pod => {
                let fresh = self.kind.object(self.name, chance);
                for member in ["data", "spec"] {
                    if !fresh[member].is_null() && self.kind != Kind::Service {
                        object[member] = fresh[member].clone();
                    }
                }
            }
            4 => object["metadata"]["managedFields"] = json!([]),
            _ => match self.kind {
                Kind::ConfigMap => object["data"] = words(chance),
                Kind::Deployment => object["spec"]["replicas"] = chance.random_range(0..4).into(),
                Kind::Service => object["spec"]["selector"] = json!({"app": pick(chance, &["a", "b", "c"])}),
                Kind::Pod => object["spec"]["containers"][0]["image"] = pick(chance, &["web:7", "web:8"]).into(),
                Kind::Gear => object["spec"]["size"] = chance.random_range(0..100).into(),
            },
        }
    }

    fn merge(&self, chance: &mut StdRng) -> Value {
        let key = pick(chance, &["a", "b", "c"]);
        let value = if chance.random_bool(0.3) { Value::Null } else { pick(chance, &["1", "2"]).into() };
        match (chance.random_range(0..4), self.kind) {
            (0, _) => json!({"metadata": {"labels": {key: value}}}),
            (1, _) => json!({"metadata": {"annotations": {key: value}}}),
            (_, Kind::ConfigMap) => json!({"data": {key: value}}),
            (_, Kind::Deployment) => json!({"spec": {"replicas": chance.random_range(0..4), "paused": value == "1"}}),
            (_, Kind::Service) => json!({"spec": {"publishNotReadyAddresses": value == "1"}}),
            (_, Kind::Pod) => json!({"metadata": {"labels": {key: value}, "annotations": null}}),
            (2, Kind::Gear) => json!({"spec": {"map": {key: value}, "either": chance.random_range(0..4)}}),
            (_, Kind::Gear) => json!({"spec": {"size": chance.random_range(0..120), "free": {"n": {key: value}}}}),
        }
    }

    fn strategic(&self, chance: &mut StdRng) -> Value {
        let container = container(pick(chance, &["one", "second", "last"]), chance);
        let key = pick(chance, &["a", "b"]);
        match (chance.random_range(0..5), self.kind) {
            (0, _) => json!({"metadata": {"labels": {key: pick(chance, &["1", "2"])}}}),
            (1, _) => json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/hold"]}}),
            (2, Kind::Deployment) => {
                json!({"spec": {"template": {"spec": {"containers": [{"name": "second", "$patch": "delete"}]}}}})
            }
            (3, Kind::Deployment) => json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
            (_, Kind::Deployment) => json!({"spec": {"template": {"spec": {
                "$setElementOrder/containers": [{"name": container["name"]}, {"name": "one"}], "containers": [container]}}}}),
            (2, Kind::Service) => json!({"spec": {"ports": [{"port": 90, "$patch": "delete"}]}}),
            (_, Kind::Service) => json!({"spec": {"ports": [{"port": 90, "name": "other", "protocol": "TCP"}]}}),
            (_, Kind::ConfigMap) => json!({"data": {key: null, "z": "1"}}),
            (_, Kind::Pod) => json!({"spec": {"containers": [{"name": "one", "image": "web:9"}]}}),
            (_, Kind::Gear) => json!({}),
        }
    }

    /// Returns the body of an apply: a whole object, or the required fields.
    fn wanted(&self, chance: &mut StdRng) -> Value {
        let mut wanted = self.kind.object(self.name, chance);
        if let Some(metadata) = wanted["metadata"].as_object_mut() {
            metadata.remove("finalizers");
        }
        if chance.random_bool(0.3) {
            match self.kind {
                Kind::ConfigMap => wanted["data"] = words(chance),
                Kind::Deployment => wanted["spec"] = json!({"replicas": chance.random_range(0..3)}),
                Kind::Gear => wanted["spec"] = json!({"size": chance.random_range(0..3), "set": ["c"]}),
                Kind::Service | Kind::Pod => {}
            }
        }
        match chance.random_range(0..30) {
            0 => wanted["spec"]["unknown"] = 1.into(),
            1 => wanted["apiVersion"] = "v9".into(),
            2 => wanted["metadata"]["managedFields"] = json!([{"manager": "x"}]),
            _ => {}
        }
        // Most fields of a pod are immutable.
        if self.kind == Kind::Pod {
            wanted["spec"] = json!({"containers": [{"name": "one", "image": pick(chance, &["web", "web:1"])}]});
        }
        wanted
    }

    async fn write_status(&self, side: &Side, path: &str, chance: &mut StdRng) -> Answer {
        let found = side.send("GET", path, "", &Value::Null).await;
        // kube-apiserver creates a service through its status, without an address; no client relies on this.
        if self.kind == Kind::Service && found.code == 404 {
            return found;
        }
        let (path, status) = (format!("{path}/status"), self.kind.status(chance));
        match chance.random_range(0..3) {
            0 => side.send("PATCH", &path, MERGE, &json!({"status": status})).await,
            1 => {
                let mut wanted = self.kind.object(self.name, chance);
                wanted = json!({"apiVersion": wanted["apiVersion"].take(), "kind": wanted["kind"].take(),
                    "metadata": {"name": self.name}, "status": status});
                side.send("PATCH", &format!("{path}?fieldManager=status&force=true"), APPLY, &wanted).await
            }
            _ => {
                let mut object = side.send("GET", &path, "", &Value::Null).await.body;
                if object["kind"] == "Status" {
                    object = self.kind.object(self.name, chance);
                }
                object["status"] = status;
                object["metadata"]["labels"] = words(chance);
                object["metadata"]["annotations"] = words(chance);
                side.send("PUT", &path, JSON, &object).await
            }
        }
    }
}

fn manager(chance: &mut StdRng) -> String {
    match chance.random_range(0..3) {
        0 => format!("fieldManager={}", pick(chance, &["one", "two", "other"])),
        _ => String::new(),
    }
}

fn operations(chance: &mut StdRng) -> Value {
    let label = pick(chance, &["a", "b"]);
    match chance.random_range(0..5) {
        0 => json!([{"op": "test", "path": format!("/metadata/labels/{label}"), "value": "1"},
            {"op": "replace", "path": format!("/metadata/labels/{label}"), "value": "2"}]),
        1 => json!([{"op": "add", "path": "/metadata/annotations", "value": {"x": "1"}}]),
        2 => json!([{"op": "remove", "path": format!("/metadata/labels/{label}")}]),
        3 => json!([{"op": "copy", "from": "/metadata/labels", "path": "/metadata/annotations"}]),
        _ => json!([{"op": "add", "path": "/metadata/labels", "value": {label: "1"}}]),
    }
}
