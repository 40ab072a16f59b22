//! Tables of services, endpoints and endpoint slices.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::age::age;
use super::label::labels;
use super::read::{Read, or, shortened};

/// How many addresses or ports a cell lists before it only counts them.
const SHOWN: usize = 3;

/// Returns the cells of a service.
pub(super) fn service(object: &Value, now: Timestamp) -> Vec<Value> {
    let address = object.list("spec.clusterIPs").first().and_then(Value::as_str);
    vec![
        object.name().into(),
        or(object.text("spec.type"), "ClusterIP").into(),
        address.or_else(|| object.filled("spec.clusterIP")).unwrap_or("<none>").into(),
        external_address(object).into(),
        or(&ports(object), "<none>").into(),
        age(object, now).into(),
        labels(object.map("spec.selector")).into(),
    ]
}

fn external_address(service: &Value) -> String {
    let given = service.joined("spec.externalIPs", ",");
    let has_given = !service.list("spec.externalIPs").is_empty();
    match or(service.text("spec.type"), "ClusterIP") {
        "ClusterIP" | "NodePort" if has_given => given,
        "ClusterIP" | "NodePort" => "<none>".into(),
        "LoadBalancer" => match (load_balancer(service), has_given) {
            (balancer, true) if balancer.is_empty() => given,
            (balancer, true) => format!("{balancer},{given}"),
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

fn ports(service: &Value) -> String {
    let ports: Vec<String> = service
        .list("spec.ports")
        .iter()
        .map(|port| {
            let (number, protocol) = (port.count("port"), or(port.text("protocol"), "TCP"));
            match port.count("nodePort") {
                node_port if node_port > 0 => format!("{number}:{node_port}/{protocol}"),
                _ => format!("{number}/{protocol}"),
            }
        })
        .collect();
    ports.join(",")
}

/// Returns the cells of endpoints.
pub(super) fn endpoints(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![object.name().into(), addresses(object.list("subsets")).into(), age(object, now).into()]
}

fn addresses(subsets: &[Value]) -> String {
    if subsets.is_empty() {
        return "<none>".into();
    }
    let mut all = Vec::new();
    for subset in subsets {
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
    let hidden = all.len().saturating_sub(SHOWN);
    all.truncate(SHOWN);
    shortened(&all, ",", hidden)
}

fn with_port(host: &str, port: i64) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Returns the cells of an endpoint slice.
pub(super) fn endpoint_slice(object: &Value, now: Timestamp) -> Vec<Value> {
    let ports = object.list("ports").iter().map(|port| match port.number("port") {
        Some(number) => number.to_string(),
        None => port.text("name").into(),
    });
    let endpoints = object.list("endpoints").iter().flat_map(|endpoint| endpoint.list("addresses"));
    vec![
        object.name().into(),
        object.text("addressType").into(),
        some_of(ports.collect()).into(),
        some_of(endpoints.map(|address| address.as_str().unwrap_or("").to_owned()).collect()).into(),
        age(object, now).into(),
    ]
}

/// Returns the first ports or addresses of a slice, and the number of the others.
fn some_of(mut all: Vec<String>) -> String {
    let hidden = all.len().saturating_sub(SHOWN);
    all.truncate(SHOWN);
    or(&shortened(&all, ",", hidden), "<unset>").into()
}
