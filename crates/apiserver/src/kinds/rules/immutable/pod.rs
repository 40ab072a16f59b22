//! Validation of pods and pod templates.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Cause, name, pod_update};
use crate::kinds::rules::json::{Object, is_there, items, length, number, object_at, text};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

pub(super) fn check_object(pod: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    check_spec(object_at(pod, "spec"), "spec", causes);
    match old {
        Some(old) => pod_update::check(old, pod, causes),
        None if object_at(pod, "spec").is_some_and(|spec| length(spec, "ephemeralContainers") > 0) => {
            causes.push(Cause::forbidden("spec.ephemeralContainers", "cannot be set on create"));
        }
        None => {}
    }
}

/// Checks a template, and that it has no ephemeral containers.
pub(super) fn check_template(template: Option<&Value>, field: &str, causes: &mut Vec<Cause>) {
    let spec = template.and_then(|template| object_at(template, "spec"));
    check_spec(spec, &format!("{field}.spec"), causes);
    if spec.is_some_and(|spec| length(spec, "ephemeralContainers") > 0) {
        let field = format!("{field}.spec.ephemeralContainers");
        causes.push(Cause::forbidden(field, "ephemeral containers not allowed in pod template"));
    }
}

fn check_spec(spec: Option<&Object>, field: &str, causes: &mut Vec<Cause>) {
    let nothing = Object::new();
    let spec = spec.unwrap_or(&nothing);
    let volumes = check_volumes(spec, field, causes);
    check_containers(spec, &volumes, field, causes);
    check_first_containers(spec, &volumes, field, causes);
    let policies = ["Always", "OnFailure", "Never"];
    if !policies.contains(&text(spec, "restartPolicy")) {
        causes.push(Cause::unsupported(format!("{field}.restartPolicy"), spec.get("restartPolicy"), &policies));
    }
    if is_there(spec, "activeDeadlineSeconds") {
        let seconds = number(spec, "activeDeadlineSeconds");
        if !(1..=i64::from(i32::MAX)).contains(&seconds) {
            let field = format!("{field}.activeDeadlineSeconds");
            causes.push(Cause::invalid(field, Some(&json!(seconds)), "must be between 1 and 2147483647, inclusive"));
        }
    }
}

/// Checks the volumes, and returns the names of the valid ones.
fn check_volumes<'a>(spec: &'a Object, field: &str, causes: &mut Vec<Cause>) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for (index, volume) in items(spec, "volumes").enumerate() {
        let (field, volume) = (format!("{field}.volumes[{index}].name"), text(volume, "name"));
        let before = causes.len();
        if volume.is_empty() {
            causes.push(Cause::required(&field, ""));
        } else {
            name::check_label(volume, &field, causes);
        }
        if names.contains(volume) {
            causes.push(Cause::duplicate(&field, &json!(volume)));
        }
        if causes.len() == before {
            names.insert(volume);
        }
    }
    names
}

fn check_containers(spec: &Object, volumes: &BTreeSet<&str>, field: &str, causes: &mut Vec<Cause>) {
    if length(spec, "containers") == 0 {
        return causes.push(Cause::required(format!("{field}.containers"), ""));
    }
    let mut names = BTreeSet::new();
    for (index, container) in items(spec, "containers").enumerate() {
        let field = format!("{field}.containers[{index}]");
        check_container(container, volumes, &field, causes);
        if !names.insert(text(container, "name")) {
            causes.push(Cause::duplicate(format!("{field}.name"), &json!(text(container, "name"))));
        }
    }
}

/// Checks the init containers, including sidecars.
fn check_first_containers(spec: &Object, volumes: &BTreeSet<&str>, field: &str, causes: &mut Vec<Cause>) {
    let mut names: BTreeSet<_> = items(spec, "containers").map(|container| text(container, "name")).collect();
    for (index, container) in items(spec, "initContainers").enumerate() {
        let field = format!("{field}.initContainers[{index}]");
        check_container(container, volumes, &field, causes);
        let own = text(container, "name");
        if names.contains(own) {
            causes.push(Cause::duplicate(format!("{field}.name"), &json!(own)));
        } else if !own.is_empty() {
            names.insert(own);
        }
        if text(container, "restartPolicy") == "Always" {
            continue;
        }
        for key in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if is_there(container, key) {
                let detail = "may not be set for init containers without restartPolicy=Always";
                causes.push(Cause::forbidden(format!("{field}.{key}"), detail));
            }
        }
    }
}

fn check_container(container: &Object, volumes: &BTreeSet<&str>, field: &str, causes: &mut Vec<Cause>) {
    match text(container, "name") {
        "" => causes.push(Cause::required(format!("{field}.name"), "")),
        own => name::check_label(own, &format!("{field}.name"), causes),
    }
    if text(container, "image").is_empty() {
        causes.push(Cause::required(format!("{field}.image"), ""));
    }
    check_ports(container, field, causes);
    for (index, _) in items(container, "env").enumerate().filter(|(_, variable)| text(variable, "name").is_empty()) {
        causes.push(Cause::required(format!("{field}.env[{index}].name"), ""));
    }
    check_mounts(container, volumes, field, causes);
    let policies = ["Always", "IfNotPresent", "Never"];
    if !policies.contains(&text(container, "imagePullPolicy")) {
        let field = format!("{field}.imagePullPolicy");
        causes.push(Cause::unsupported(field, container.get("imagePullPolicy"), &policies));
    }
}

fn check_ports(container: &Object, field: &str, causes: &mut Vec<Cause>) {
    let mut names = BTreeSet::new();
    for (index, port) in items(container, "ports").enumerate() {
        let field = format!("{field}.ports[{index}]");
        let own = text(port, "name");
        if !own.is_empty() {
            let before = causes.len();
            name::check_port_name(own, &format!("{field}.name"), causes);
            if causes.len() == before && !names.insert(own) {
                causes.push(Cause::duplicate(format!("{field}.name"), &json!(own)));
            }
        }
        match number(port, "containerPort") {
            0 => causes.push(Cause::required(format!("{field}.containerPort"), "")),
            number => name::check_port(number, &format!("{field}.containerPort"), causes),
        }
        if number(port, "hostPort") != 0 {
            name::check_port(number(port, "hostPort"), &format!("{field}.hostPort"), causes);
        }
        if !PROTOCOLS.contains(&text(port, "protocol")) {
            causes.push(Cause::unsupported(format!("{field}.protocol"), port.get("protocol"), &PROTOCOLS));
        }
    }
}

fn check_mounts(container: &Object, volumes: &BTreeSet<&str>, field: &str, causes: &mut Vec<Cause>) {
    let mut paths = BTreeSet::new();
    for (index, mount) in items(container, "volumeMounts").enumerate() {
        let field = format!("{field}.volumeMounts[{index}]");
        let (volume, path) = (text(mount, "name"), text(mount, "mountPath"));
        if volume.is_empty() {
            causes.push(Cause::required(format!("{field}.name"), ""));
        }
        if !volumes.contains(volume) {
            causes.push(Cause::not_found(format!("{field}.name"), &json!(volume)));
        }
        if path.is_empty() {
            causes.push(Cause::required(format!("{field}.mountPath"), ""));
        }
        if !paths.insert(path) {
            causes.push(Cause::invalid(format!("{field}.mountPath"), Some(&json!(path)), "must be unique"));
        }
    }
}
