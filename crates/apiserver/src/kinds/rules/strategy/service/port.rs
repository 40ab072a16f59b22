//! The node ports of services.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Pool, Refusal, checks_health, has_node_ports};
use crate::kinds::rules::immutable::Cause;
use crate::kinds::rules::json::{Object, items, items_mut, number, text};

fn used(spec: &Object) -> BTreeSet<i64> {
    items(spec, "ports").map(|port| number(port, "nodePort")).filter(|port| *port != 0).collect()
}

/// Returns whether all node ports of one service are node ports of the other.
pub(super) fn are_all_of(spec: &Object, old: &Object) -> bool {
    used(spec).is_subset(&used(old))
}

/// Keeps the node ports that an update does not mention, by port name.
pub(super) fn keep(old: &Object, spec: &mut Object) {
    if has_node_ports(old) && has_node_ports(spec) {
        let taken: BTreeSet<_> = used(old).intersection(&used(spec)).copied().collect();
        let by_name: BTreeMap<_, _> =
            items(old, "ports").map(|port| (text(port, "name"), number(port, "nodePort"))).collect();
        for port in items_mut(spec, "ports").filter(|port| number(port, "nodePort") == 0) {
            match by_name.get(text(port, "name")) {
                Some(before) if *before != 0 && !taken.contains(before) => {
                    drop(port.insert("nodePort".into(), json!(before)))
                }
                _ => {}
            }
        }
    }
    if checks_health(old) && checks_health(spec) && number(spec, "healthCheckNodePort") == 0 {
        crate::kinds::rules::json::copy(old, spec, "healthCheckNodePort");
    }
}

/// Returns whether a node port is allocated without a request.
fn gives_any(spec: &Object) -> bool {
    text(spec, "type") == "NodePort" || spec.get("allocateLoadBalancerNodePorts") == Some(&Value::Bool(true))
}

fn next(pool: &mut dyn Pool) -> Result<i64, Refusal> {
    let port = pool.next_port().map(i64::from);
    port.ok_or_else(|| Refusal::Exhausted("failed to allocate a nodePort: range is full".to_owned()))
}

fn take(pool: &mut dyn Pool, index: usize, port: i64) -> Result<(), Refusal> {
    pool.take_port(port).map_err(|reason| {
        let field = format!("spec.ports[{index}].nodePort");
        Refusal::Invalid(vec![Cause::invalid(field, Some(&json!(port)), &reason)])
    })
}

/// Allocates the node ports of a new service. Ports with the same number and different protocols share a node port.
pub(super) fn allocate(spec: &mut Object, pool: &mut dyn Pool) -> Result<(), Refusal> {
    let gives_any = gives_any(spec);
    let mut asked = BTreeMap::new();
    for port in items(spec, "ports").filter(|port| number(port, "nodePort") != 0) {
        asked.entry(number(port, "port")).or_insert(number(port, "nodePort"));
    }
    let mut given: BTreeMap<i64, i64> = BTreeMap::new();
    for (index, port) in items_mut(spec, "ports").enumerate() {
        let (service, node) = (number(port, "port"), number(port, "nodePort"));
        if node == 0 && !gives_any {
            continue;
        }
        match (given.get(&service).copied(), asked.get(&service).copied()) {
            (Some(before), _) if node == 0 => drop(port.insert("nodePort".into(), json!(before))),
            (Some(before), _) if node == before => {}
            (Some(_), _) => take(pool, index, node)?,
            (None, asked) => {
                let chosen = match asked {
                    Some(asked) => take(pool, index, asked).map(|()| asked)?,
                    None => next(pool)?,
                };
                port.insert("nodePort".into(), json!(chosen));
                given.insert(service, chosen);
            }
        }
    }
    Ok(())
}

/// Takes the requested node ports that the service did not have before, and allocates the missing ones.
pub(super) fn update(old: &Object, spec: &mut Object, pool: &mut dyn Pool) -> Result<(), Refusal> {
    let (mut had, gives_any) = (if has_node_ports(old) { used(old) } else { BTreeSet::new() }, gives_any(spec));
    for (index, port) in items_mut(spec, "ports").enumerate() {
        match number(port, "nodePort") {
            0 if gives_any => drop(port.insert("nodePort".into(), json!(next(pool)?))),
            0 => {}
            node if had.insert(node) => take(pool, index, node)?,
            _ => {}
        }
    }
    Ok(())
}

pub(super) fn allocate_health_check(spec: &mut Object, pool: &mut dyn Pool) -> Result<(), Refusal> {
    match number(spec, "healthCheckNodePort") {
        0 => drop(spec.insert("healthCheckNodePort".into(), json!(next(pool)?))),
        port => pool.take_port(port).map_err(|reason| {
            Refusal::Exhausted(format!("failed to allocate requested HealthCheck NodePort {port}: {reason}"))
        })?,
    }
    Ok(())
}
