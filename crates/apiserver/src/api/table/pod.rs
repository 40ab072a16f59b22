//! The cells of pods.

use jiff::Timestamp;
use serde_json::Value;

use super::age::{human, time};
use super::read::{ReadMember, or};

pub(super) fn ready(pod: &Value) -> Value {
    let summary = Summary::of(pod);
    format!("{}/{}", summary.ready, summary.total).into()
}

pub(super) fn status(pod: &Value) -> Value {
    Summary::of(pod).reason.into()
}

pub(super) fn restarts(pod: &Value, now: Timestamp) -> String {
    Summary::of(pod).restarts.text(now)
}

pub(super) fn address(pod: &Value) -> Value {
    let first = pod.list("status.podIPs").first().map_or("", |first| first.text("ip"));
    or(or(pod.text("status.podIP"), first), "<none>").into()
}

/// Returns how many readiness gates of the pod are met.
pub(super) fn readiness_gates(pod: &Value) -> Value {
    let gates = pod.list("spec.readinessGates");
    if gates.is_empty() {
        return "<none>".into();
    }
    let met = gates.iter().filter(|gate| pod.condition(gate.text("conditionType")) == Some("True")).count();
    format!("{met}/{}", gates.len()).into()
}

/// A summary of the container statuses of a pod.
struct Summary {
    ready: usize,
    total: usize,
    reason: String,
    restarts: Restarts,
}

/// How often containers were restarted, and when last.
#[derive(Default, Clone, Copy)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count = self.count.saturating_add(status.count("restartCount"));
        self.last = self.last.max(time(status, "lastState.terminated.finishedAt"));
    }

    fn text(self, now: Timestamp) -> String {
        match self.last {
            Some(last) if self.count != 0 => format!("{} ({} ago)", self.count, human(now.duration_since(last))),
            _ => self.count.to_string(),
        }
    }
}

impl Summary {
    fn of(pod: &Value) -> Self {
        let sidecars = pod.list("spec.initContainers").iter().filter(|container| is_sidecar(container)).count();
        let mut summary = Self {
            ready: 0,
            total: pod.list("spec.containers").len() + sidecars,
            reason: reason_of_pod(pod).into(),
            restarts: Restarts::default(),
        };
        let of_sidecars = summary.initialization(pod);
        // The main containers are only read once the init containers are done.
        if let Some(of_sidecars) = of_sidecars {
            summary.restarts = of_sidecars;
            summary.containers(pod);
        }
        if pod.is_terminating() {
            if pod.text("status.reason") == "NodeLost" {
                summary.reason = "Unknown".into();
            } else if !matches!(pod.text("status.phase"), "Succeeded" | "Failed") {
                summary.reason = "Terminating".into();
            }
        }
        summary
    }

    /// Reads the init containers. Returns the restarts of the sidecars once the other init containers are done, or
    /// `None` while they still run.
    fn initialization(&mut self, pod: &Value) -> Option<Restarts> {
        let mut of_sidecars = Restarts::default();
        let mut waits = false;
        for (index, status) in pod.list("status.initContainerStatuses").iter().enumerate() {
            self.restarts.add(status);
            let sidecar = container_is_sidecar(pod, status.text("name"));
            if sidecar {
                of_sidecars.add(status);
            }
            if status.at("state.terminated").is_some_and(|terminated| terminated.count("exitCode") == 0) {
                continue;
            }
            if sidecar && status.flag("started") == Some(true) {
                self.ready += usize::from(status.flag("ready") == Some(true));
                continue;
            }
            self.reason = held_up_by(status, index, pod.list("spec.initContainers").len());
            waits = true;
            break;
        }
        (!waits || pod.condition("Initialized") == Some("True")).then_some(of_sidecars)
    }

    /// Reads the main containers, from the last to the first. The reason of the first one is shown.
    fn containers(&mut self, pod: &Value) {
        let mut runs = false;
        let mut failure = None;
        for status in pod.list("status.containerStatuses").iter().rev() {
            self.restarts.add(status);
            if let Some(reason) = status.filled("state.waiting.reason") {
                self.reason = reason.into();
            } else if let Some(terminated) = status.at("state.terminated") {
                self.reason = end_of(terminated);
                if terminated.count("exitCode") != 0 {
                    failure = Some(self.reason.clone());
                }
            } else if status.flag("ready") == Some(true) && status.at("state.running").is_some() {
                runs = true;
                self.ready += 1;
            }
        }
        // A completed container does not end the pod while another one runs or has failed.
        if self.reason == "Completed" {
            match failure {
                _ if runs && is_ready(pod) => self.reason = "Running".into(),
                Some(failure) => self.reason = failure,
                None if runs => self.reason = "NotReady".into(),
                None => {}
            }
        }
    }
}

/// Returns the pod's own reason, before its containers are read.
fn reason_of_pod(pod: &Value) -> &str {
    let gated = pod
        .list("status.conditions")
        .iter()
        .any(|condition| condition.text("type") == "PodScheduled" && condition.text("reason") == "SchedulingGated");
    if gated { "SchedulingGated" } else { or(pod.text("status.reason"), pod.text("status.phase")) }
}

/// Returns why an init container delays the others.
fn held_up_by(status: &Value, index: usize, all: usize) -> String {
    if let Some(terminated) = status.at("state.terminated") {
        return format!("Init:{}", end_of(terminated));
    }
    match status.filled("state.waiting.reason") {
        Some(reason) if reason != "PodInitializing" => format!("Init:{reason}"),
        _ => format!("Init:{index}/{all}"),
    }
}

/// Returns why a container has ended.
fn end_of(terminated: &Value) -> String {
    match (terminated.filled("reason"), terminated.count("signal")) {
        (Some(reason), _) => reason.into(),
        (None, 0) => format!("ExitCode:{}", terminated.count("exitCode")),
        (None, signal) => format!("Signal:{signal}"),
    }
}

/// Returns whether a condition says that the pod is ready.
fn is_ready(pod: &Value) -> bool {
    pod.list("status.conditions")
        .iter()
        .any(|condition| condition.text("type") == "Ready" && condition.text("status") == "True")
}

/// Returns whether an init container is a sidecar.
fn is_sidecar(container: &Value) -> bool {
    container.text("restartPolicy") == "Always"
}

fn container_is_sidecar(pod: &Value, name: &str) -> bool {
    pod.list("spec.initContainers")
        .iter()
        .rev()
        .find(|container| container.text("name") == name)
        .is_some_and(is_sidecar)
}
