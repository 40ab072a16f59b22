//! Turns events into lines.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube_informer::Event;

use super::event_log::EventLog;
use crate::view::Mark;

/// How many pods of the first list are printed.
const FROM_THE_START: usize = 8;

/// Prints an event of a pod. `listed` counts the printed pods of the first list.
pub(super) fn log_pod(event_log: &EventLog, event: &Event<Pod>, listed: &mut usize) {
    let key = event.key();
    let (mark, text) = match event {
        Event::Added { initial: true, .. } if *listed == FROM_THE_START => return,
        Event::Added { object, initial: true } => {
            *listed += 1;
            let more = if *listed == FROM_THE_START { "; others are not shown" } else { "" };
            (Mark::Added, format!("pod {key} is {} (first list{more})", state(object)))
        }
        Event::Added { object, initial: false } => (Mark::Added, format!("pod {key} is {}", state(object))),
        Event::Updated { old, new } if state(old) == state(new) && restarts(old) < restarts(new) => {
            (Mark::Updated, format!("pod {key} restarted"))
        }
        Event::Updated { old, new } if state(old) == state(new) => (Mark::Updated, format!("pod {key} changed")),
        Event::Updated { old, new } => (Mark::Updated, format!("pod {key} was {}, is {}", state(old), state(new))),
        Event::Deleted(gone) if gone.is_final() => (Mark::Deleted, format!("pod {key}")),
        Event::Deleted(_) => (Mark::Deleted, format!("pod {key} (the watch missed the delete; a relist found it)")),
        Event::Resynced(_) => return,
    };
    event_log.log(mark, text);
}

pub(super) fn log_deployment(event_log: &EventLog, event: &Event<Deployment>) {
    let key = event.key();
    let (mark, text) = match event {
        Event::Added { initial: true, .. } | Event::Resynced(_) => return,
        Event::Added { object, .. } => (Mark::Added, format!("deployment {key} wants {}", pods(replicas(object)))),
        Event::Updated { old, new } if replicas(old) == replicas(new) => {
            (Mark::Updated, format!("deployment {key} rolls"))
        }
        Event::Updated { old, new } => {
            (Mark::Updated, format!("deployment {key} wanted {}, wants {}", replicas(old), pods(replicas(new))))
        }
        Event::Deleted(_) => (Mark::Deleted, format!("deployment {key}")),
    };
    event_log.log(mark, text);
}

/// Prints added and deleted nodes. Updates are left out: nodes report their status every few seconds.
pub(super) fn log_node(event_log: &EventLog, event: &Event<Node>) {
    let key = event.key();
    match event {
        Event::Added { initial: false, .. } => event_log.log(Mark::Added, format!("node {key}")),
        Event::Deleted(_) => event_log.log(Mark::Deleted, format!("node {key}")),
        _ => {}
    }
}

/// Prints what the controller wrote, when the cache receives it.
pub(super) fn log_map(event_log: &EventLog, event: &Event<ConfigMap>) {
    let key = event.key();
    let (mark, text) = match event {
        Event::Added { object, .. } => (Mark::Written, format!("the controller wrote {key}: {}", counted(object))),
        Event::Updated { old, new } if old.data == new.data => return,
        Event::Updated { new, .. } => (Mark::Written, format!("the controller wrote {key}: {}", counted(new))),
        Event::Deleted(_) => (Mark::Deleted, format!("configmap {key}, because its deployment was deleted")),
        Event::Resynced(_) => return,
    };
    event_log.log(mark, text);
}

fn counted(map: &ConfigMap) -> String {
    let value = |name: &str| map.data.as_ref().and_then(|data| data.get(name)).map_or("?", String::as_str);
    format!("{} of {} pods are ready", value("ready"), value("wanted"))
}

fn state(pod: &Pod) -> &str {
    if pod.metadata.deletion_timestamp.is_some() {
        return "Terminating";
    }
    let scheduled = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    match pod.status.as_ref().and_then(|status| status.phase.as_deref()) {
        Some("Pending") if scheduled => "Scheduled",
        phase => phase.unwrap_or("Unknown"),
    }
}

fn restarts(pod: &Pod) -> i32 {
    let containers = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    containers.map_or(0, |all| all.iter().map(|container| container.restart_count).sum())
}

fn pods(number: i32) -> String {
    if number == 1 { "1 pod".to_owned() } else { format!("{number} pods") }
}

fn replicas(deployment: &Deployment) -> i32 {
    deployment.spec.replicas.unwrap_or_default()
}
