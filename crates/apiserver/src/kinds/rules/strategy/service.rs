//! Write strategy of services, and the allocation of their addresses and node ports.
//!
//! Addresses and ports are allocated before a service is prepared. The caller compares [`held`] before and after a
//! successful write, and frees the difference.

mod address;
mod port;

use serde_json::{Value, json};

use super::RuleContext;
use crate::kinds::rules::immutable::Cause;
use crate::kinds::rules::json::{Object, items, items_mut, length, number, object_at, object_at_mut, open, text};

/// Allocates addresses and ports for services.
pub(crate) trait Pool {
    /// Takes any free address.
    fn next_address(&mut self) -> Option<String>;
    /// Takes this address.
    ///
    /// # Errors
    ///
    /// The reason, such as `provided IP is already allocated`.
    fn take_address(&mut self, address: &str) -> Result<(), String>;
    /// Takes any free port.
    fn next_port(&mut self) -> Option<u16>;
    /// Takes this port.
    ///
    /// # Errors
    ///
    /// The reason, such as `provided port is already allocated`.
    fn take_port(&mut self, port: i64) -> Result<(), String>;
}

/// Why a service gets no address or port.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The requested values are not available or not valid.
    Invalid(Vec<Cause>),
    /// No free value is left.
    Exhausted(String),
}

/// The addresses and ports of a service.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Its cluster IPs.
    pub(crate) addresses: Vec<String>,
    /// Its node ports.
    pub(crate) ports: Vec<i64>,
}

/// Returns the addresses and ports of a service.
pub(crate) fn held(service: &Value) -> Held {
    let Some(spec) = object_at(service, "spec") else { return Held::default() };
    let addresses = addresses(spec).into_iter().filter(|address| address != "None").collect();
    let mut ports: Vec<_> = items(spec, "ports").map(|port| number(port, "nodePort")).collect();
    ports.push(number(spec, "healthCheckNodePort"));
    ports.retain(|port| *port != 0);
    ports.sort_unstable();
    ports.dedup();
    Held { addresses, ports }
}

/// Allocates the addresses and ports of a new service.
///
/// # Errors
///
/// A requested value is not available, or no free value is left.
pub(crate) fn allocate_create(service: &mut Value, pool: &mut dyn Pool) -> Result<(), Refusal> {
    let Some(spec) = spec_of(service) else { return Ok(()) };
    if !text(spec, "clusterIP").is_empty() && length(spec, "clusterIPs") == 0 {
        let address = text(spec, "clusterIP").to_owned();
        spec.insert("clusterIPs".into(), json!([address]));
    }
    address::families(spec, None)?;
    address::allocate(spec, pool)?;
    if has_node_ports(spec) {
        port::allocate(spec, pool)?;
    }
    if checks_health(spec) { port::allocate_health_check(spec, pool) } else { Ok(()) }
}

/// Allocates the missing addresses and ports of an updated service, and keeps those that the update does not mention.
///
/// # Errors
///
/// A requested value is not available, or no free value is left.
pub(crate) fn allocate_update(old: &Value, service: &mut Value, pool: &mut dyn Pool) -> Result<(), Refusal> {
    let nothing = Object::new();
    let old = object_at(old, "spec").unwrap_or(&nothing);
    let Some(spec) = spec_of(service) else { return Ok(()) };
    address::keep(old, spec);
    port::keep(old, spec);
    address::settle(old, spec);
    address::families(spec, Some(old))?;
    if !has_address(old) && has_address(spec) {
        address::allocate(spec, pool)?;
    }
    if has_node_ports(spec) {
        port::update(old, spec, pool)?;
    }
    if checks_health(spec) && !checks_health(old) {
        return port::allocate_health_check(spec, pool);
    }
    Ok(())
}

fn spec_of(service: &mut Value) -> Option<&mut Object> {
    service.as_object_mut().map(|service| open(service, "spec"))
}

fn addresses(spec: &Object) -> Vec<String> {
    let list = spec.get("clusterIPs").and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn has_address(spec: &Object) -> bool {
    text(spec, "type") != "ExternalName"
}

fn has_node_ports(spec: &Object) -> bool {
    matches!(text(spec, "type"), "NodePort" | "LoadBalancer")
}

fn is_balanced(spec: &Object) -> bool {
    text(spec, "type") == "LoadBalancer"
}

fn checks_health(spec: &Object) -> bool {
    is_balanced(spec) && text(spec, "externalTrafficPolicy") == "Local"
}

fn is_reached_from_outside(spec: &Object) -> bool {
    has_node_ports(spec) || (text(spec, "type") == "ClusterIP" && length(spec, "externalIPs") > 0)
}

/// Removes the fields that only the old type of a service has.
pub(super) fn prepare(service: &mut Value, write: &RuleContext<'_>) {
    let Some(old) = write.old.and_then(|old| object_at(old, "spec")) else { return };
    let Some(spec) = object_at_mut(service, "spec") else { return };
    drop_old_type(old, spec);
    let is_balanced = is_balanced(spec);
    if !is_balanced && let Some(status) = object_at_mut(service, "status") {
        status.insert("loadBalancer".into(), json!({}));
    }
}

fn drop_old_type(old: &Object, spec: &mut Object) {
    let is_same = |spec: &Object, key: &str| old.get(key) == spec.get(key);
    if has_address(old) && !has_address(spec) {
        if is_same(spec, "clusterIP") && is_same(spec, "clusterIPs") {
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
        for key in ["ipFamilies", "ipFamilyPolicy"] {
            drop_same(old, spec, key);
        }
    }
    if has_node_ports(old) && !has_node_ports(spec) && port::are_all_of(spec, old) {
        items_mut(spec, "ports").for_each(|port| drop(port.remove("nodePort")));
    }
    if checks_health(old) && !checks_health(spec) {
        drop_same(old, spec, "healthCheckNodePort");
    }
    if is_balanced(old) && !is_balanced(spec) {
        drop_same(old, spec, "allocateLoadBalancerNodePorts");
        drop_same(old, spec, "loadBalancerClass");
    }
    if is_reached_from_outside(old) && !is_reached_from_outside(spec) {
        drop_same(old, spec, "externalTrafficPolicy");
    }
}

fn drop_same(old: &Object, spec: &mut Object, key: &str) {
    if old.get(key) == spec.get(key) {
        spec.remove(key);
    }
}

/// Removes the internal traffic policy of a service without a cluster IP.
pub(super) fn settle(service: &mut Value) {
    if let Some(spec) = object_at_mut(service, "spec")
        && !has_address(spec)
    {
        spec.remove("internalTrafficPolicy");
    }
}

#[cfg(test)]
mod tests;
