//! Valid objects of the written kinds, and the CRD of a kind with every list type.

use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};

/// The written kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    ConfigMap,
    Deployment,
    Service,
    Pod,
    Gear,
}

pub(super) const KINDS: [Kind; 5] = [Kind::ConfigMap, Kind::Deployment, Kind::Service, Kind::Pod, Kind::Gear];

impl Kind {
    /// Returns the path of the collection in a namespace.
    pub(super) fn path(self, namespace: &str) -> String {
        let (root, plural) = match self {
            Self::ConfigMap => ("/api/v1", "configmaps"),
            Self::Deployment => ("/apis/apps/v1", "deployments"),
            Self::Service => ("/api/v1", "services"),
            Self::Pod => ("/api/v1", "pods"),
            Self::Gear => ("/apis/differ.example.com/v1", "gears"),
        };
        format!("{root}/namespaces/{namespace}/{plural}")
    }

    pub(super) fn has_status(self) -> bool {
        self != Self::ConfigMap
    }

    fn named(self) -> (&'static str, &'static str) {
        match self {
            Self::ConfigMap => ("v1", "ConfigMap"),
            Self::Deployment => ("apps/v1", "Deployment"),
            Self::Service => ("v1", "Service"),
            Self::Pod => ("v1", "Pod"),
            Self::Gear => ("differ.example.com/v1", "Gear"),
        }
    }

    /// Returns a whole object with this name.
    pub(super) fn object(self, name: &str, chance: &mut StdRng) -> Value {
        let (api_version, kind) = self.named();
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
        if chance.random_bool(0.5) {
            object["metadata"]["labels"] = words(chance);
        }
        if chance.random_bool(0.4) {
            object["metadata"]["annotations"] = words(chance);
        }
        if chance.random_bool(0.1) {
            object["metadata"]["finalizers"] = json!(["example.com/hold"]);
        }
        match self {
            Self::ConfigMap => {
                object["data"] = words(chance);
                if chance.random_bool(0.2) {
                    object["binaryData"] = json!({"b": "AAEC"});
                }
            }
            Self::Deployment => object["spec"] = deployment_spec(name, chance),
            Self::Service => object["spec"] = service_spec(chance),
            Self::Pod => object["spec"] = pod_spec(chance),
            Self::Gear => object["spec"] = gear_spec(chance),
        }
        object
    }

    /// Returns a valid status.
    pub(super) fn status(self, chance: &mut StdRng) -> Value {
        let number = chance.random_range(0..5);
        let condition = json!({"type": pick(chance, &["Ready", "Good"]), "status": pick(chance, &["True", "False"])});
        match self {
            Self::Deployment => json!({"replicas": number, "updatedReplicas": 0, "conditions": [condition]}),
            Self::Service => json!({"loadBalancer": {}}),
            Self::Pod => {
                json!({"phase": pick(chance, &["Pending", "Running"]), "conditions": [condition]})
            }
            Self::Gear => json!({"ready": number, "conditions": [condition]}),
            Self::ConfigMap => json!({}),
        }
    }
}

pub(super) fn pick<'a>(chance: &mut StdRng, from: &[&'a str]) -> &'a str {
    from[chance.random_range(0..from.len())]
}

/// Returns a few entries with short names.
pub(super) fn words(chance: &mut StdRng) -> Value {
    let mut words = json!({});
    for _ in 0..chance.random_range(1..4) {
        words[pick(chance, &["a", "b", "c", "d"])] = pick(chance, &["1", "2", ""]).into();
    }
    words
}

fn quantity(chance: &mut StdRng) -> &'static str {
    pick(chance, &["1", "1000m", "0.5", "250m", "1.5"])
}

pub(super) fn container(name: &str, chance: &mut StdRng) -> Value {
    let mut container =
        json!({"name": name, "image": pick(chance, &["web", "web:1", "web:latest", "host:5000/web@sha256:0123"])});
    if chance.random_bool(0.4) {
        let port = |chance: &mut StdRng| {
            // Two containers with the same port would cause a warning.
            let mut port = json!({"containerPort": 80 + 10 * name.len() + chance.random_range(0..3)});
            if chance.random_bool(0.3) {
                port["protocol"] = pick(chance, &["TCP", "UDP"]).into();
            }
            port
        };
        let mut ports = vec![port(chance)];
        if chance.random_bool(0.4) && name == "one" {
            ports.push(json!({"containerPort": 99, "name": "other"}));
        }
        container["ports"] = ports.into();
    }
    if chance.random_bool(0.5) {
        let mut env = vec![json!({"name": "A", "value": pick(chance, &["1", "2"])})];
        if chance.random_bool(0.5) {
            env.push(json!({"name": pick(chance, &["B", "C"]), "value": "x"}));
        }
        container["env"] = env.into();
    }
    if chance.random_bool(0.3) {
        container["resources"] =
            json!({"limits": {"cpu": quantity(chance), "memory": pick(chance, &["1Gi", "1024Mi", "512M"])}});
    }
    if chance.random_bool(0.2) {
        container["args"] = json!(["-x", pick(chance, &["1", "2"])]);
    }
    if chance.random_bool(0.2) {
        container["livenessProbe"] = json!({"httpGet": {"port": pick(chance, &["http", "web"]), "path": "/"}});
    }
    container
}

fn pod_spec(chance: &mut StdRng) -> Value {
    let names = ["one", "second", "three"];
    let count = chance.random_range(1..=names.len());
    let containers: Vec<Value> = names[..count].iter().map(|name| container(name, chance)).collect();
    let mut spec = json!({"containers": containers});
    if chance.random_bool(0.3) {
        spec["volumes"] = json!([{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "a"}}]);
    }
    if chance.random_bool(0.2) {
        spec["tolerations"] = json!([{"key": "k", "operator": "Exists", "effect": "NoSchedule"}]);
    }
    spec
}

fn deployment_spec(name: &str, chance: &mut StdRng) -> Value {
    let mut template = json!({"metadata": {"labels": {"app": name}}, "spec": pod_spec(chance)});
    if chance.random_bool(0.3) {
        template["metadata"]["annotations"] = words(chance);
    }
    let mut spec = json!({"selector": {"matchLabels": {"app": name}}, "template": template});
    if chance.random_bool(0.6) {
        spec["replicas"] = chance.random_range(0..4).into();
    }
    match chance.random_range(0..4) {
        0 => spec["strategy"] = json!({"type": "Recreate"}),
        1 => spec["strategy"] = json!({"rollingUpdate": {"maxSurge": 1}}),
        _ => {}
    }
    spec
}

fn service_spec(chance: &mut StdRng) -> Value {
    let mut ports = vec![json!({"name": "http", "port": 80 + chance.random_range(0..2)})];
    if chance.random_bool(0.4) {
        ports
            .push(json!({"name": "other", "port": 90, "protocol": pick(chance, &["TCP", "UDP"]), "targetPort": "web"}));
    }
    let mut spec = json!({"ports": ports, "selector": {"app": pick(chance, &["a", "b"])}});
    match chance.random_range(0..6) {
        0 => spec["type"] = "NodePort".into(),
        1 => spec["clusterIP"] = "None".into(),
        2 => spec["publishNotReadyAddresses"] = true.into(),
        _ => {}
    }
    spec
}

fn gear_spec(chance: &mut StdRng) -> Value {
    let mut spec = json!({"size": chance.random_range(0..50)});
    if chance.random_bool(0.5) {
        let mut set = vec![json!("a")];
        if chance.random_bool(0.5) {
            set.push(pick(chance, &["b", "c"]).into());
        }
        spec["set"] = set.into();
    }
    if chance.random_bool(0.6) {
        let mut parts = vec![json!({"name": "p", "value": chance.random_range(0..3)})];
        if chance.random_bool(0.5) {
            parts.push(json!({"name": pick(chance, &["q", "r"]), "kind": "other"}));
        }
        spec["parts"] = parts.into();
    }
    if chance.random_bool(0.4) {
        spec["list"] = json!([1, chance.random_range(0..3)]);
    }
    if chance.random_bool(0.4) {
        spec["whole"] = words(chance);
    }
    if chance.random_bool(0.4) {
        spec["map"] = words(chance);
    }
    if chance.random_bool(0.3) {
        spec["free"] = json!({"x": {"y": chance.random_range(0..3)}, "z": [1, 2]});
    }
    if chance.random_bool(0.3) {
        spec["either"] = if chance.random_bool(0.5) { json!("50%") } else { json!(5) };
    }
    spec
}

/// Returns a CRD with every list type, defaults, and rules.
pub(super) fn gears() -> Value {
    let text = json!({"type": "string"});
    let part = json!({"type": "object", "required": ["name"], "properties": {
        "name": text, "kind": {"type": "string", "default": "plain"}, "value": {"type": "integer"}}});
    let spec = json!({
        "type": "object", "required": ["size"],
        "x-kubernetes-validations": [
            {"rule": "self.size <= 100", "message": "no gear is that large"},
            {"rule": "!has(self.list) || self.list.all(number, number >= 0)"},
            {"rule": "self.size >= oldSelf.size - 60", "message": "gears do not shrink like that"},
        ],
        "properties": {
            "size": {"type": "integer", "minimum": 0},
            "colour": {"type": "string", "default": "grey", "enum": ["grey", "red", "blue"]},
            "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
            "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "kind"], "items": part},
            "list": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "integer"}},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": text},
            "map": {"type": "object", "additionalProperties": text},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "either": {"x-kubernetes-int-or-string": true},
            "replicas": {"type": "integer", "default": 1},
        },
    });
    let condition = json!({"type": "object", "required": ["type"], "properties": {"type": text, "status": text}});
    let status = json!({"type": "object", "properties": {"ready": {"type": "integer"}, "replicas": {"type": "integer"},
        "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"], "items": condition}}});
    json!({
        "kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "gears.differ.example.com"},
        "spec": {
            "group": "differ.example.com", "scope": "Namespaced", "names": {"plural": "gears", "kind": "Gear"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
            }],
        },
    })
}
