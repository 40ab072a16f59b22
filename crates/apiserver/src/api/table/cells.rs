//! Cells that are computed from several fields.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::age::{human, since, time};
use super::label::{labels, requirements};
use super::quantity::quantity;
use super::read::{ReadMember, or, shortened};

/// How many addresses, ports or hosts a cell lists before it only counts them.
const SHOWN: usize = 3;

/// Returns a member of each container in the template.
pub(super) fn containers(object: &Value, member: &str) -> Value {
    let template = if object.at("spec.jobTemplate").is_some() { "spec.jobTemplate.spec" } else { "spec" };
    let containers = object.list(&format!("{template}.template.spec.containers"));
    let texts: Vec<&str> = containers.iter().map(|container| container.text(member)).collect();
    texts.join(",").into()
}

pub(super) fn label_list(object: &Value, path: &str) -> Value {
    labels(object.map(path)).into()
}

/// Returns a label selector as most kinds show it: `<none>` if it is empty.
pub(super) fn selector(object: &Value, path: &str) -> Value {
    or(&requirements(object.at(path).unwrap_or(&Value::Null)), "<none>").into()
}

/// Returns a label selector as deployments show it: an empty string if it is empty.
pub(super) fn deployment_selector(deployment: &Value) -> Value {
    requirements(deployment.at("spec.selector").unwrap_or(&Value::Null)).into()
}

/// Returns the desired number of pods; the default is one.
pub(super) fn desired(object: &Value) -> Value {
    object.number("spec.replicas").unwrap_or(1).into()
}

pub(super) fn ready_of_desired(object: &Value) -> Value {
    format!("{}/{}", object.count("status.readyReplicas"), desired(object)).into()
}

pub(super) fn config_map_data(map: &Value) -> Value {
    (map.members("data") + map.members("binaryData")).into()
}

pub(super) fn role(binding: &Value) -> Value {
    format!("{}/{}", binding.text("roleRef.kind"), binding.text("roleRef.name")).into()
}

/// Returns the subjects of this kind in a role binding.
pub(super) fn subjects(binding: &Value, kind: &str) -> Value {
    let all = binding.list("subjects").iter().filter(|subject| subject.text("kind") == kind);
    let named = all.map(|subject| match kind {
        "ServiceAccount" => format!("{}/{}", subject.text("namespace"), subject.text("name")),
        _ => subject.text("name").into(),
    });
    named.collect::<Vec<_>>().join(", ").into()
}

pub(super) fn node_status(node: &Value) -> Value {
    // The last condition of a type counts here.
    let ready = node.list("status.conditions").iter().rfind(|condition| condition.text("type") == "Ready");
    let status = match ready.map(|condition| condition.text("status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let disabled = if node.flag("spec.unschedulable") == Some(true) { ",SchedulingDisabled" } else { "" };
    format!("{status}{disabled}").into()
}

/// Returns the roles in the node's labels, sorted and without duplicates.
pub(super) fn node_roles(node: &Value) -> Value {
    let roles: BTreeSet<&str> = node
        .map("metadata.labels")
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            None if key == "kubernetes.io/role" => value.as_str(),
            role => role,
        })
        .filter(|role| !role.is_empty())
        .collect();
    or(&roles.into_iter().collect::<Vec<_>>().join(","), "<none>").into()
}

pub(super) fn node_address(node: &Value, kind: &str) -> Value {
    let address = node.list("status.addresses").iter().find(|address| address.text("type") == kind);
    address.map_or("<none>", |address| address.text("address")).into()
}

pub(super) fn node_kernel(node: &Value) -> Value {
    let kernel = or(node.text("status.nodeInfo.kernelVersion"), "<unknown>");
    match node.text("status.nodeInfo.architecture") {
        "" => kernel.into(),
        architecture => format!("{kernel} ({architecture})").into(),
    }
}

/// Returns the used and hard amounts of a quota: those of limits, or the others.
pub(super) fn quota(quota: &Value, limits: bool) -> Value {
    let used = quota.map("status.used");
    let hard = quota.map("status.hard").into_iter().flatten();
    let texts = hard.filter(|(resource, _)| resource.starts_with("limits.") == limits).map(|(resource, hard)| {
        let used = quantity(used.and_then(|used| used.get(resource)));
        format!("{resource}: {used}/{}", quantity(Some(hard)))
    });
    texts.collect::<Vec<_>>().join(", ").into()
}

pub(super) fn cluster_address(service: &Value) -> Value {
    let address = service.list("spec.clusterIPs").first().and_then(Value::as_str);
    address.or_else(|| service.filled("spec.clusterIP")).unwrap_or("<none>").into()
}

pub(super) fn external_address(service: &Value) -> Value {
    let given = service.joined("spec.externalIPs", ",");
    let has_given = !service.list("spec.externalIPs").is_empty();
    match or(service.text("spec.type"), "ClusterIP") {
        "ClusterIP" | "NodePort" if has_given => given.into(),
        "ClusterIP" | "NodePort" => "<none>".into(),
        "LoadBalancer" => match (load_balancer(service), has_given) {
            (balancer, true) if balancer.is_empty() => given.into(),
            (balancer, true) => format!("{balancer},{given}").into(),
            (balancer, false) => or(&balancer, "<pending>").into(),
        },
        "ExternalName" => service.text("spec.externalName").into(),
        _ => "<unknown>".into(),
    }
}

/// Returns the addresses of the load balancer, sorted and without duplicates.
pub(super) fn load_balancer(object: &Value) -> String {
    let addresses: BTreeSet<&str> = object
        .list("status.loadBalancer.ingress")
        .iter()
        .map(|ingress| or(ingress.text("ip"), ingress.text("hostname")))
        .filter(|address| !address.is_empty())
        .collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}

pub(super) fn service_ports(service: &Value) -> Value {
    let ports = service.list("spec.ports").iter().map(|port| {
        let (number, protocol) = (port.count("port"), or(port.text("protocol"), "TCP"));
        match port.count("nodePort") {
            node_port if node_port > 0 => format!("{number}:{node_port}/{protocol}"),
            _ => format!("{number}/{protocol}"),
        }
    });
    or(&ports.collect::<Vec<_>>().join(","), "<none>").into()
}

pub(super) fn endpoint_addresses(endpoints: &Value) -> Value {
    let mut all = Vec::new();
    for subset in endpoints.list("subsets") {
        let hosts = || subset.list("addresses").iter().map(|address| address.text("ip"));
        let ports = subset.list("ports");
        // A service without ports still has addresses.
        if ports.is_empty() {
            all.extend(hosts().map(str::to_owned));
        }
        for port in ports {
            all.extend(hosts().map(|host| with_port(host, port.count("port"))));
        }
    }
    if endpoints.list("subsets").is_empty() { "<none>".into() } else { first_of(all, "") }
}

fn with_port(host: &str, port: i64) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

pub(super) fn slice_ports(slice: &Value) -> Value {
    let ports = slice.list("ports").iter().map(|port| match port.number("port") {
        Some(number) => number.to_string(),
        None => port.text("name").into(),
    });
    first_of(ports.collect(), "<unset>")
}

pub(super) fn slice_addresses(slice: &Value) -> Value {
    let endpoints = slice.list("endpoints").iter().flat_map(|endpoint| endpoint.list("addresses"));
    first_of(endpoints.map(|address| address.as_str().unwrap_or("").to_owned()).collect(), "<unset>")
}

/// Returns the first entries and the number of the others, or `none` for an empty string.
fn first_of(mut all: Vec<String>, none: &str) -> Value {
    let hidden = all.len().saturating_sub(SHOWN);
    all.truncate(SHOWN);
    or(&shortened(&all, ",", hidden), none).into()
}

/// Returns the hosts of the rules. Rules after the third host are counted, even without a host.
pub(super) fn hosts(ingress: &Value) -> Value {
    let (mut shown, mut more) = (Vec::new(), false);
    let rules = ingress.list("spec.rules");
    for rule in rules {
        more |= shown.len() == SHOWN;
        if let (false, Some(host)) = (more, rule.filled("host")) {
            shown.push(host.to_owned());
        }
    }
    or(&shortened(&shown, ",", if more { rules.len() - SHOWN } else { 0 }), "*").into()
}

pub(super) fn ingress_ports(ingress: &Value) -> Value {
    if ingress.list("spec.tls").is_empty() { "80" } else { "80, 443" }.into()
}

pub(super) fn job_status(job: &Value) -> Value {
    let holds = |kind: &str| job.condition(kind) == Some("True");
    match () {
        () if holds("Complete") => "Complete",
        () if holds("Failed") => "Failed",
        () if job.is_terminating() => "Terminating",
        () if holds("Suspended") => "Suspended",
        () if holds("FailureTarget") => "FailureTarget",
        () if holds("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
    .into()
}

/// Returns how many pods have succeeded, and the total. A job with neither number wants one pod.
pub(super) fn completions(job: &Value) -> Value {
    let succeeded = job.count("status.succeeded");
    match (job.number("spec.completions"), job.number("spec.parallelism")) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, Some(parallelism)) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
    .into()
}

/// Returns how long the job has run.
pub(super) fn job_duration(job: &Value, now: Timestamp) -> String {
    // A start or end with the zero time still counts as set.
    let at = |path: &str| job.at(path).map(|_| time(job, path).unwrap_or(Timestamp::MIN));
    let Some(start) = at("status.startTime") else { return String::new() };
    human(at("status.completionTime").unwrap_or(now).duration_since(start))
}

pub(super) fn suspended(job: &Value) -> Value {
    if job.flag("spec.suspend") == Some(true) { "True" } else { "False" }.into()
}

pub(super) fn last_schedule(job: &Value, now: Timestamp) -> String {
    match job.at("status.lastScheduleTime") {
        Some(_) => since(job, "status.lastScheduleTime", now),
        None => "<none>".into(),
    }
}

/// Returns a number or percentage of a disruption budget.
pub(super) fn bound(budget: &Value, path: &str) -> Value {
    match budget.at(path) {
        None => "N/A".into(),
        Some(Value::String(text)) => text.as_str().into(),
        Some(other) => other.to_string().into(),
    }
}

pub(super) fn scale_target(autoscaler: &Value) -> Value {
    format!("{}/{}", autoscaler.text("spec.scaleTargetRef.kind"), autoscaler.text("spec.scaleTargetRef.name")).into()
}

pub(super) fn least_pods(autoscaler: &Value) -> Value {
    autoscaler.number("spec.minReplicas").unwrap_or(1).to_string().into()
}

pub(super) fn quantity_at(object: &Value, path: &str) -> Value {
    quantity(object.at(path)).into()
}

/// Returns a cell of a claim that is empty until the claim has a volume.
pub(super) fn if_bound(claim: &Value, cell: fn(&Value, &str) -> Value, path: &str) -> Value {
    if claim.text("spec.volumeName").is_empty() { "".into() } else { cell(claim, path) }
}

/// Returns the access modes by their initials, in a fixed order.
pub(super) fn access_modes(object: &Value, path: &str) -> Value {
    let all = object.list(path);
    let known =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let found = known.into_iter().filter(|(mode, _)| all.iter().any(|one| one == mode)).map(|(_, initials)| initials);
    found.collect::<Vec<_>>().join(",").into()
}

/// Returns the phase of a volume or a claim.
pub(super) fn volume_phase(object: &Value) -> Value {
    if object.is_terminating() { "Terminating" } else { or(object.text("status.phase"), "Pending") }.into()
}

pub(super) fn claim_of_volume(volume: &Value) -> Value {
    let claim = volume.at("spec.claimRef");
    claim.map_or_else(String::new, |claim| format!("{}/{}", claim.text("namespace"), claim.text("name"))).into()
}

/// Returns the storage class. A deprecated annotation has precedence.
pub(super) fn storage_class(object: &Value) -> Value {
    let annotation = object.entry("metadata.annotations", "volume.beta.kubernetes.io/storage-class");
    annotation.unwrap_or_else(|| object.text("spec.storageClassName")).into()
}

/// Returns the served versions of a CRD.
pub(super) fn versions(definition: &Value) -> Value {
    let served = definition.list("spec.versions").iter().filter(|version| version.flag("served") == Some(true));
    let named = served.map(|version| {
        let stored = if version.flag("storage") == Some(true) { "(storage)" } else { "" };
        format!("{}{stored}", version.text("name"))
    });
    let mut named: Vec<String> = named.collect();
    named.sort_unstable();
    named.join(",").into()
}

pub(super) fn established(definition: &Value) -> Value {
    let holds = |condition: &Value| condition.text("type") == "Established" && condition.text("status") == "True";
    definition.list("status.conditions").iter().any(holds).into()
}
