//! Valid objects of many kinds, as a base for variations.

use kube_embedded_apiserver::ApiServer;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// A kind, and an object of it with the name `a`.
#[derive(Debug)]
pub(crate) struct Sample {
    /// The id of the resource in the server.
    pub(crate) resource: &'static str,
    /// The path of the collection.
    pub(crate) collection: String,
    pub(crate) object: Value,
}

impl Sample {
    /// Returns the name of the object, which is `a` except for a CRD.
    pub(crate) fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Returns the path of the object.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.collection, self.name())
    }

    pub(crate) fn api_version(&self) -> &str {
        self.object["apiVersion"].as_str().unwrap_or_default()
    }

    pub(crate) fn kind(&self) -> &str {
        self.object["kind"].as_str().unwrap_or_default()
    }

    /// Creates the object in a server, unless it exists.
    pub(crate) fn put(&self, server: &ApiServer) {
        let namespace = self.collection.contains("/namespaces/").then_some("default");
        if let Err(status) = server.create(self.resource, namespace, self.object.clone()) {
            // Another request may have deleted the CRD of shapes.
            assert!(matches!(status.code, 403 | 404 | 409), "{status}");
        }
    }
}

/// Samples of many built-in kinds. Append new ones at the end: inputs choose them by number.
pub(crate) static SAMPLES: LazyLock<Vec<Sample>> = LazyLock::new(|| {
    let [definition, _] = definitions();
    let mut samples = workloads();
    samples.push(definition);
    samples.extend(others());
    samples
});

/// The CRD of `shapes`, with every type of list and map; and a shape.
pub(crate) static SHAPES: LazyLock<[Sample; 2]> = LazyLock::new(definitions);

const CLUSTER_WIDE: [&str; 3] = ["CustomResourceDefinition", "Node", "Namespace"];

fn sample(resource: &'static str, api_version: &str, kind: &str, rest: Value) -> Sample {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}});
    let (Value::Object(object_members), Value::Object(rest)) = (&mut object, rest) else {
        panic!("a sample is an object");
    };
    object_members.extend(rest);
    let base = if api_version.contains('/') { "/apis" } else { "/api" };
    let namespace = if CLUSTER_WIDE.contains(&kind) { "" } else { "/namespaces/default" };
    let plural = resource.split('.').next().unwrap_or_default();
    Sample { resource, collection: format!("{base}/{api_version}{namespace}/{plural}"), object }
}

fn pod_spec() -> Value {
    json!({
        "containers": [
            {"name": "c", "image": "shop:1", "args": ["x", ""], "env": [{"name": "A", "value": "1"}, {"name": "B",
                "valueFrom": {"configMapKeyRef": {"name": "a", "key": "k"}}}],
                "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80, "protocol": "UDP"}],
                "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "100m"}},
                "livenessProbe": {"httpGet": {"path": "/", "port": "web"}, "periodSeconds": 5}},
            {"name": "d", "image": "side"},
        ],
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 5, "effect": "NoExecute"}],
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "w", "configMap": {"name": "a"}}],
    })
}

fn metadata() -> Value {
    json!({"name": "a", "labels": {"app": "a", "tier": "web"}, "annotations": {"note": "x"},
        "finalizers": ["example.com/hold"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u", "controller": true}]})
}

fn workloads() -> Vec<Sample> {
    let labels = json!({"app": "a"});
    let template = json!({"metadata": {"labels": labels}, "spec": pod_spec()});
    let selector = json!({"matchLabels": labels});
    vec![
        sample("pods", "v1", "Pod", json!({"metadata": {"name": "a", "labels": labels}, "spec": pod_spec()})),
        sample(
            "deployments.apps",
            "apps/v1",
            "Deployment",
            json!({"metadata": metadata(), "spec": {"replicas": 2, "selector": selector, "template": template,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "10%", "maxUnavailable": 1}}}}),
        ),
        sample(
            "services",
            "v1",
            "Service",
            json!({"spec": {"selector": labels, "type": "NodePort", "ports": [
                {"name": "web", "port": 80, "targetPort": "web"}, {"name": "dns", "port": 53, "protocol": "UDP"}]}}),
        ),
        sample(
            "configmaps",
            "v1",
            "ConfigMap",
            json!({"metadata": metadata(), "data": {"a": "1", "b": ""}, "binaryData": {"c": "AAE="}}),
        ),
        sample("secrets", "v1", "Secret", json!({"type": "Opaque", "data": {"a": "AAE="}, "stringData": {"b": "x"}})),
    ]
}

fn definitions() -> [Sample; 2] {
    let version = json!({"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": shape_spec(), "status": shape_status()}}},
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.replicas"}],
        "selectableFields": [{"jsonPath": ".spec.text"}]});
    [
        sample(
            "customresourcedefinitions.apiextensions.k8s.io",
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            json!({"metadata": {"name": "shapes.fuzz.example.com"}, "spec": {"group": "fuzz.example.com",
                "names": {"plural": "shapes", "kind": "Shape", "shortNames": ["sh"]}, "scope": "Namespaced",
                "versions": [version]}}),
        ),
        sample(
            "shapes.fuzz.example.com",
            "fuzz.example.com/v1",
            "Shape",
            json!({"metadata": metadata(), "spec": shape(), "status": {"replicas": 1, "selector": "app=a",
                "conditions": [{"type": "Ready", "status": "True"}, {"type": "Done", "status": "False"}]}}),
        ),
    ]
}

fn shape_spec() -> Value {
    let text = json!({"type": "string"});
    let list = |kind: &str, items: Value| json!({"type": "array", "x-kubernetes-list-type": kind, "items": items});
    let mut named = list(
        "map",
        json!({"type": "object", "required": ["name"], "properties": {
        "name": text, "value": text, "inner": list("set", text.clone())}}),
    );
    named["x-kubernetes-list-map-keys"] = json!(["name"]);
    let mut ports = list(
        "map",
        json!({"type": "object", "required": ["port"], "properties": {
        "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": text}}),
    );
    ports["x-kubernetes-list-map-keys"] = json!(["port", "protocol"]);
    json!({"type": "object", "properties": {
        "replicas": {"type": "integer", "minimum": 0},
        "text": text,
        "nothing": {"type": "string", "nullable": true},
        "filled": {"type": "string", "default": "x"},
        "either": {"x-kubernetes-int-or-string": true},
        "atomic": list("atomic", text.clone()),
        "plain": {"type": "array", "items": {"type": "object", "properties": {"a": text}}},
        "set": list("set", text.clone()),
        "numbers": list("set", json!({"type": "integer"})),
        "named": named,
        "ports": ports,
        "lists": list("atomic", list("atomic", text.clone())),
        "granular": {"type": "object", "additionalProperties": text},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": text, "b": text}},
        "maps": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": text}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "inner": {"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true},
    }})
}

fn shape_status() -> Value {
    json!({"type": "object", "properties": {
        "replicas": {"type": "integer"},
        "selector": {"type": "string"},
        "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
            "items": {"type": "object", "required": ["type"], "properties": {
                "type": {"type": "string"}, "status": {"type": "string"}}}},
    }})
}

fn shape() -> Value {
    json!({
        "replicas": 2, "text": "t", "nothing": null, "either": "10%",
        "atomic": ["x", "y"], "plain": [{"a": "x"}], "set": ["x", "y"], "numbers": [1, 2],
        "named": [{"name": "x", "value": "1", "inner": ["p", "q"]}, {"name": "y"}],
        "ports": [{"port": 80}, {"port": 80, "protocol": "UDP", "name": "u"}],
        "lists": [["x"], []], "granular": {"a": "1", "b": ""}, "whole": {"a": "1", "b": "2"},
        "maps": {"a": {"a": "x"}, "b": {}}, "free": {"a": [1, {"b": null}], "c": {}},
        "inner": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "i"}, "data": {"a": "1"}},
    })
}

fn others() -> Vec<Sample> {
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"restartPolicy": "Never",
        "containers": [{"name": "c", "image": "shop:1"}]}});
    vec![
        sample(
            "events",
            "v1",
            "Event",
            json!({"involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"}, "reason": "Started",
                "message": "m", "type": "Normal", "count": 1, "source": {"component": "c"},
                "firstTimestamp": "2026-01-01T00:00:00Z", "eventTime": null}),
        ),
        sample(
            "jobs.batch",
            "batch/v1",
            "Job",
            json!({"spec": {"parallelism": 1, "backoffLimit": 2, "template": template}}),
        ),
        sample(
            "cronjobs.batch",
            "batch/v1",
            "CronJob",
            json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}}}),
        ),
        sample(
            "nodes",
            "v1",
            "Node",
            json!({"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"], "taints": [
                {"key": "k", "effect": "NoSchedule"}]}, "status": {"capacity": {"cpu": "4"}}}),
        ),
        sample(
            "leases.coordination.k8s.io",
            "coordination.k8s.io/v1",
            "Lease",
            json!({"spec": {"holderIdentity": "h", "leaseDurationSeconds": 15,
                "acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-01T00:00:00.123456Z"}}),
        ),
        sample(
            "horizontalpodautoscalers.autoscaling",
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            json!({"spec": {"maxReplicas": 5, "minReplicas": 1,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
                "metrics": [{"type": "Resource", "resource": {"name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 50}}}]}}),
        ),
        sample(
            "ingresses.networking.k8s.io",
            "networking.k8s.io/v1",
            "Ingress",
            json!({"spec": {"rules": [{"host": "a.example.com", "http": {"paths": [
                {"path": "/", "pathType": "Prefix",
                    "backend": {"service": {"name": "a", "port": {"number": 80}}}}]}}]}}),
        ),
        sample(
            "networkpolicies.networking.k8s.io",
            "networking.k8s.io/v1",
            "NetworkPolicy",
            json!({"spec": {"podSelector": {}, "policyTypes": ["Ingress"],
                "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"port": 80}]}]}}),
        ),
        sample(
            "persistentvolumeclaims",
            "v1",
            "PersistentVolumeClaim",
            json!({"spec": {"accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}}}}),
        ),
        sample(
            "poddisruptionbudgets.policy",
            "policy/v1",
            "PodDisruptionBudget",
            json!({"spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "a"}}},
                "status": {"disruptionsAllowed": 1}}),
        ),
        sample(
            "serviceaccounts",
            "v1",
            "ServiceAccount",
            json!({"secrets": [{"name": "s"}], "automountServiceAccountToken": false}),
        ),
        sample("namespaces", "v1", "Namespace", json!({})),
        sample(
            "statefulsets.apps",
            "apps/v1",
            "StatefulSet",
            json!({"spec": {"serviceName": "a", "selector": {"matchLabels": {"app": "a"}}, "template":
                {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "shop:1"}]}}}}),
        ),
        sample(
            "roles.rbac.authorization.k8s.io",
            "rbac.authorization.k8s.io/v1",
            "Role",
            json!({"rules": [
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "*"]}]}),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::{Ask, settled};

    #[test]
    fn the_server_accepts_every_sample() {
        let server = ApiServer::builder().seed(1).build();
        crate::run(async {
            for sample in SAMPLES.iter().chain(&SHAPES[1..]) {
                let answer = Ask::json("POST", &sample.collection, &sample.object).send(&server).await;
                assert_eq!(answer.code, 201, "{}: {answer:?}", sample.resource);
                settled().await;
            }
        });
    }
}
