//! Defaults that depend on other fields.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::kinds::quantity::rounded_up_to_milli;
use crate::kinds::rules::json::{
    JsonObject, child, child_mut, fill, fill_zero, is_there, is_zero, items, items_mut, length, number, open, text,
};

/// The default timeout of session affinity.
const AFFINITY_SECONDS: i64 = 10800;

/// Returns the function that sets the defaults of a type.
pub(super) fn computed(type_name: &str) -> Option<fn(&mut JsonObject)> {
    Some(match type_name {
        "core/v1.Pod" => pod,
        "core/v1.PodSpec" => pod_spec,
        "core/v1.PodStatus" => pod_status,
        "core/v1.Container" | "core/v1.EphemeralContainer" | "core/v1.EphemeralContainerCommon" => container,
        "core/v1.Volume" => volume,
        "core/v1.Service" => service,
        "core/v1.ServicePort" => service_port,
        "core/v1.Namespace" => namespace,
        "core/v1.NodeStatus" => node_status,
        "networking/v1.NetworkPolicy" => network_policy,
        "apps/v1.Deployment" => deployment,
        "apps/v1.DaemonSet" => daemon_set,
        "apps/v1.StatefulSet" => stateful_set,
        "batch/v1.Job" => job,
        "autoscaling/v2.HorizontalPodAutoscaler" => autoscaler,
        "rbac/v1.Subject" => subject,
        "apiextensions/v1.CustomResourceDefinition" => custom_resource_definition,
        _ => return None,
    })
}

/// Rounds the quantities of a resource list up to a thousandth.
pub(super) fn resource_list(list: &mut JsonObject) {
    for amount in list.values_mut() {
        if let Some(rounded) = amount.as_str().and_then(rounded_up_to_milli) {
            *amount = Value::String(rounded);
        }
    }
}

/// Sets the defaults of pods that do not apply to pod templates: missing requests equal the limits, and host ports the
/// container ports.
fn pod(pod: &mut JsonObject) {
    let spec = open(pod, "spec");
    let on_host = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for list in ["containers", "initContainers"] {
        for container in items_mut(spec, list) {
            if let Some(resources) = child_mut(container, "resources")
                && let Some(limits) = child(resources, "limits").filter(|limits| !limits.is_empty()).cloned()
            {
                let requests = open(resources, "requests");
                for (name, amount) in limits {
                    requests.entry(name).or_insert(amount);
                }
            }
            for port in items_mut(container, "ports").filter(|port| on_host && number(port, "containerPort") != 0) {
                let number = number(port, "containerPort");
                fill_zero(port, "hostPort", number);
            }
        }
    }
}

/// Keeps `serviceAccount`, a deprecated alias, equal to `serviceAccountName`, which has precedence.
fn pod_spec(spec: &mut JsonObject) {
    let current = text(spec, "serviceAccountName");
    let account = if current.is_empty() { text(spec, "serviceAccount") } else { current }.to_owned();
    for key in ["serviceAccountName", "serviceAccount"] {
        match account.as_str() {
            "" => spec.remove(key),
            account => spec.insert(key.into(), account.into()),
        };
    }
}

/// Keeps `podIP` and `podIPs` equal; `podIP` has precedence.
fn pod_status(status: &mut JsonObject) {
    let one = text(status, "podIP").to_owned();
    let first = items(status, "podIPs").next().map(|first| text(first, "ip").to_owned());
    match first {
        Some(first) if one.is_empty() && !first.is_empty() => drop(status.insert("podIP".into(), first.into())),
        first if one.is_empty() || first.as_ref() == Some(&one) => {}
        _ => drop(status.insert("podIPs".into(), json!([{"ip": one}]))),
    }
}

fn container(container: &mut JsonObject) {
    let policy = pull_policy(text(container, "image"));
    fill_zero(container, "imagePullPolicy", policy);
}

/// Returns the pull policy of an image: `Always` for the tag `latest`, which is also the default tag.
fn pull_policy(image: &str) -> &'static str {
    let name = image.rsplit('/').next().unwrap_or_default();
    let (tagged, is_pinned) = name.split_once('@').map_or((name, false), |(tagged, _)| (tagged, true));
    match tagged.split_once(':') {
        Some((_, "latest")) => "Always",
        None if !is_pinned && !image.is_empty() => "Always",
        _ => "IfNotPresent",
    }
}

fn volume(volume: &mut JsonObject) {
    if volume.iter().all(|(key, value)| key == "name" || value.is_null()) {
        volume.insert("emptyDir".into(), json!({}));
    }
}

fn service(service: &mut JsonObject) {
    let spec = open(service, "spec");
    match text(spec, "sessionAffinity") {
        "None" => drop(spec.remove("sessionAffinityConfig")),
        "ClientIP" => {
            let client = open(open(spec, "sessionAffinityConfig"), "clientIP");
            fill(client, "timeoutSeconds", AFFINITY_SECONDS);
        }
        _ => {}
    }
    let kind = text(spec, "type").to_owned();
    let is_reached_from_outside = match kind.as_str() {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => length(spec, "externalIPs") > 0,
        _ => false,
    };
    if is_reached_from_outside {
        fill_zero(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind != "ExternalName" {
        fill(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
        let status = child_mut(service, "status").and_then(|status| child_mut(status, "loadBalancer"));
        for ingress in status.into_iter().flat_map(|balancer| items_mut(balancer, "ingress")) {
            if !text(ingress, "ip").is_empty() {
                fill(ingress, "ipMode", "VIP");
            }
        }
    }
}

fn service_port(port: &mut JsonObject) {
    if is_zero(port.get("targetPort")) {
        let number = port.get("port").cloned().unwrap_or_else(|| json!(0));
        port.insert("targetPort".into(), number);
    }
}

/// Adds the label by which a namespace can be selected by its name.
fn namespace(namespace: &mut JsonObject) {
    let name = child(namespace, "metadata").map(|metadata| text(metadata, "name").to_owned()).unwrap_or_default();
    if !name.is_empty() {
        open(open(namespace, "metadata"), "labels").insert("kubernetes.io/metadata.name".into(), name.into());
    }
}

fn node_status(status: &mut JsonObject) {
    if !is_there(status, "allocatable")
        && let Some(capacity) = status.get("capacity").cloned()
    {
        status.insert("allocatable".into(), capacity);
    }
}

fn network_policy(policy: &mut JsonObject) {
    let spec = open(policy, "spec");
    let types = if length(spec, "egress") > 0 { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    fill_zero(spec, "policyTypes", types);
}

/// Sets members of the rolling update, if it is the strategy.
fn fill_rolling_update(strategy: &mut JsonObject, members: [(&str, Value); 2]) {
    if text(strategy, "type") == "RollingUpdate" {
        let update = open(strategy, "rollingUpdate");
        members.into_iter().for_each(|(member, value)| fill(update, member, value));
    }
}

fn deployment(deployment: &mut JsonObject) {
    let strategy = open(open(deployment, "spec"), "strategy");
    fill_rolling_update(strategy, [("maxUnavailable", json!("25%")), ("maxSurge", json!("25%"))]);
}

fn daemon_set(set: &mut JsonObject) {
    let strategy = open(open(set, "spec"), "updateStrategy");
    fill_rolling_update(strategy, [("maxUnavailable", json!(1)), ("maxSurge", json!(0))]);
}

fn stateful_set(set: &mut JsonObject) {
    let spec = open(set, "spec");
    let strategy = open(spec, "updateStrategy");
    let is_chosen = !text(strategy, "type").is_empty();
    fill_zero(strategy, "type", "RollingUpdate");
    if !is_chosen || is_there(strategy, "rollingUpdate") {
        fill_rolling_update(strategy, [("partition", json!(0)), ("maxUnavailable", json!(1))]);
    }
    let retention = open(spec, "persistentVolumeClaimRetentionPolicy");
    fill_zero(retention, "whenDeleted", "Retain");
    fill_zero(retention, "whenScaled", "Retain");
}

fn job(job: &mut JsonObject) {
    let spec = open(job, "spec");
    if !is_there(spec, "parallelism") {
        fill(spec, "completions", 1);
    }
    fill(spec, "parallelism", 1);
    // With a limit for each index the total number of failures is practically unlimited.
    let backoff = if is_there(spec, "backoffLimitPerIndex") { i32::MAX } else { 6 };
    fill(spec, "backoffLimit", backoff);
    let replacement = if is_there(spec, "podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    fill(spec, "podReplacementPolicy", replacement);
    let labels = child(spec, "template").and_then(|template| child(template, "metadata")?.get("labels"));
    if let Some(labels) = labels.filter(|labels| !labels.is_null()).cloned()
        && child(job, "metadata").is_none_or(|metadata| length(metadata, "labels") == 0)
    {
        open(job, "metadata").insert("labels".into(), labels);
    }
}

fn autoscaler(autoscaler: &mut JsonObject) {
    let Some(behavior) = child_mut(open(autoscaler, "spec"), "behavior") else { return };
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    fill(open(behavior, "scaleUp"), "stabilizationWindowSeconds", 0);
    for (direction, policies) in [("scaleUp", json!([pods, percent])), ("scaleDown", json!([percent]))] {
        let rules = open(behavior, direction);
        fill(rules, "selectPolicy", "Max");
        fill(rules, "policies", policies);
    }
}

fn subject(subject: &mut JsonObject) {
    if matches!(text(subject, "kind"), "User" | "Group") {
        fill_zero(subject, "apiGroup", "rbac.authorization.k8s.io");
    }
}

fn custom_resource_definition(definition: &mut JsonObject) {
    let spec = open(definition, "spec");
    if let Some(names) = child_mut(spec, "names") {
        let kind = text(names, "kind").to_owned();
        if !kind.is_empty() {
            fill_zero(names, "singular", kind.to_lowercase());
            fill_zero(names, "listKind", format!("{kind}List"));
        }
    }
    let stored = items(spec, "versions").find(|version| version.get("storage") == Some(&Value::Bool(true)));
    let name = stored.map(|version| text(version, "name").to_owned());
    let status = open(definition, "status");
    if let Some(name) = name {
        fill_zero(status, "storedVersions", json!([name]));
    }
}

/// Moves `stringData` of a secret to `data`. It replaces existing keys.
pub(crate) fn merge_string_data(secret: &mut JsonObject) {
    let Some(Value::Object(plain)) = secret.remove("stringData") else { return };
    if plain.is_empty() {
        return;
    }
    let data = open(secret, "data");
    for (key, value) in plain {
        data.insert(key, BASE64_STANDARD.encode(value.as_str().unwrap_or_default()).into());
    }
}

#[test]
fn only_the_tag_latest_is_always_pulled() {
    for (image, policy) in [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("registry.example.com:5000/web/nginx", "Always"),
        ("registry.example.com:5000/web/nginx:1.2", "IfNotPresent"),
        ("nginx@sha256:0123", "IfNotPresent"),
        ("nginx:latest@sha256:0123", "Always"),
        ("", "IfNotPresent"),
    ] {
        assert_eq!(pull_policy(image), policy, "{image}");
    }
}
