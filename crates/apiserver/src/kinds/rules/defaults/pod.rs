//! Defaults of pods and their parts.

use serde_json::{Value, json};

use crate::kinds::quantity::rounded_up_to_milli;
use crate::kinds::rules::image::pull_policy;
use crate::kinds::rules::json::{Object, child, child_mut, fill, fill_zero, is_there, items_mut, number, open, text};

/// Rounds the quantities of a resource list up to a thousandth.
pub(super) fn resource_list(list: &mut Object) {
    for amount in list.values_mut() {
        if let Some(rounded) = amount.as_str().and_then(rounded_up_to_milli) {
            *amount = Value::String(rounded);
        }
    }
}

/// Sets the defaults of pods that do not apply to pod templates.
pub(super) fn pod(pod: &mut Object) {
    let spec = open(pod, "spec");
    if number(spec, "terminationGracePeriodSeconds") < 0 {
        spec.insert("terminationGracePeriodSeconds".into(), json!(1));
    }
    fill(spec, "enableServiceLinks", true);
    let on_host = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for list in ["containers", "initContainers"] {
        for container in items_mut(spec, list) {
            request_limits(container);
            if on_host {
                items_mut(container, "ports").for_each(host_port);
            }
        }
    }
}

/// Sets missing requests to the limits.
fn request_limits(container: &mut Object) {
    let Some(resources) = child_mut(container, "resources") else { return };
    let Some(limits) = child(resources, "limits").filter(|limits| !limits.is_empty()).cloned() else { return };
    let requests = open(resources, "requests");
    for (name, amount) in limits {
        requests.entry(name).or_insert(amount);
    }
}

fn host_port(port: &mut Object) {
    let number = number(port, "containerPort");
    if number != 0 {
        fill_zero(port, "hostPort", number);
    }
}

pub(super) fn pod_spec(spec: &mut Object) {
    // `serviceAccount` is a deprecated alias of `serviceAccountName`, which has precedence.
    let current = text(spec, "serviceAccountName");
    let account = if current.is_empty() { text(spec, "serviceAccount") } else { current }.to_owned();
    for key in ["serviceAccountName", "serviceAccount"] {
        match account.as_str() {
            "" => spec.remove(key),
            account => spec.insert(key.into(), account.into()),
        };
    }
    fill_zero(spec, "dnsPolicy", "ClusterFirst");
    fill_zero(spec, "restartPolicy", "Always");
    fill(spec, "securityContext", json!({}));
    fill(spec, "terminationGracePeriodSeconds", 30);
    fill_zero(spec, "schedulerName", "default-scheduler");
}

/// Keeps `podIP` and `podIPs` equal; `podIP` has precedence.
pub(super) fn pod_status(status: &mut Object) {
    let one = text(status, "podIP").to_owned();
    let first = status.get("podIPs").and_then(|list| list.get(0));
    match first.map(|first| first.get("ip").and_then(Value::as_str).unwrap_or_default().to_owned()) {
        Some(first) if one.is_empty() => drop(status.insert("podIP".into(), first.into())),
        Some(first) if first == one => {}
        _ if one.is_empty() => {}
        _ => drop(status.insert("podIPs".into(), json!([{"ip": one}]))),
    }
    if text(status, "podIP").is_empty() {
        status.remove("podIP");
    }
}

pub(super) fn container(container: &mut Object) {
    let policy = pull_policy(text(container, "image"));
    fill_zero(container, "imagePullPolicy", policy);
    fill_zero(container, "terminationMessagePath", "/dev/termination-log");
    fill_zero(container, "terminationMessagePolicy", "File");
}

pub(super) fn container_port(port: &mut Object) {
    fill_zero(port, "protocol", "TCP");
}

pub(super) fn probe(probe: &mut Object) {
    fill_zero(probe, "timeoutSeconds", 1);
    fill_zero(probe, "periodSeconds", 10);
    fill_zero(probe, "successThreshold", 1);
    fill_zero(probe, "failureThreshold", 3);
}

pub(super) fn http_get_action(action: &mut Object) {
    fill_zero(action, "path", "/");
    fill_zero(action, "scheme", "HTTP");
}

pub(super) fn grpc_action(action: &mut Object) {
    fill(action, "service", "");
}

pub(super) fn object_field_selector(selector: &mut Object) {
    fill_zero(selector, "apiVersion", "v1");
}

pub(super) fn file_key_selector(selector: &mut Object) {
    if !is_there(selector, "optional") {
        selector.insert("optional".into(), Value::Bool(false));
    }
}
