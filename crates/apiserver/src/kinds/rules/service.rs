//! The addresses and node ports of services. The cluster has IPv4 addresses alone.
//!
//! They are allocated before a service is prepared. Whatever a stored service has is in use.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::json::{JsonObject, copy, fill, items, items_mut, length, number, object_at, open, text};
use super::validation::Cause;

/// The address range of services. The first and the last address are not used.
const ADDRESSES: (Ipv4Addr, u32) = (Ipv4Addr::new(10, 96, 0, 0), 12);
const PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

/// The addresses and node ports of all services.
pub(crate) struct ServicePool<'a> {
    pub(crate) addresses: BTreeSet<String>,
    pub(crate) ports: BTreeSet<i64>,
    /// Draws a number below a limit: where the search for a free value begins.
    pub(crate) draw: &'a dyn Fn(u64) -> u64,
}

impl ServicePool<'_> {
    fn next_address(&mut self) -> Option<String> {
        let (first, size) = (u32::from(ADDRESSES.0), (1_u64 << (32 - ADDRESSES.1)) - 2);
        let start = (self.draw)(size);
        let all = (0..size).map(|step| u32::try_from((start + step) % size).unwrap_or(0));
        let mut free = all.map(|offset| Ipv4Addr::from(first + 1 + offset).to_string());
        let address = free.find(|address| !self.addresses.contains(address))?;
        self.addresses.insert(address.clone());
        Some(address)
    }

    fn next_port(&mut self) -> Result<i64, Vec<Cause>> {
        let size = PORTS.end() - PORTS.start() + 1;
        let start = i64::try_from((self.draw)(size.unsigned_abs())).unwrap_or(0);
        let free = (0..size).map(|step| PORTS.start() + (start + step) % size).find(|port| !self.ports.contains(port));
        let port = free.ok_or_else(|| vec![Cause::invalid("spec.ports[0].nodePort", None, "no node port is free")])?;
        self.ports.insert(port);
        Ok(port)
    }

    fn take_port(&mut self, port: i64, field: &str) -> Result<i64, Vec<Cause>> {
        let detail = match () {
            () if !PORTS.contains(&port) => "the valid range is 30000-32767",
            () if !self.ports.insert(port) => "provided port is already allocated",
            () => return Ok(port),
        };
        Err(vec![Cause::invalid(field, Some(&json!(port)), detail)])
    }
}

/// Returns the node ports of a service.
pub(crate) fn node_ports(service: &Value) -> BTreeSet<i64> {
    let Some(spec) = object_at(service, "spec") else { return BTreeSet::new() };
    let mut ports = used_ports(spec);
    ports.extend(Some(number(spec, "healthCheckNodePort")).filter(|port| *port != 0));
    ports
}

fn used_ports(spec: &JsonObject) -> BTreeSet<i64> {
    items(spec, "ports").map(|port| number(port, "nodePort")).filter(|port| *port != 0).collect()
}

pub(super) fn has_address(spec: &JsonObject) -> bool {
    text(spec, "type") != "ExternalName"
}

fn has_node_ports(spec: &JsonObject) -> bool {
    matches!(text(spec, "type"), "NodePort" | "LoadBalancer")
}

fn is_balanced(spec: &JsonObject) -> bool {
    text(spec, "type") == "LoadBalancer"
}

fn checks_health(spec: &JsonObject) -> bool {
    is_balanced(spec) && text(spec, "externalTrafficPolicy") == "Local"
}

fn is_reached_from_outside(spec: &JsonObject) -> bool {
    has_node_ports(spec) || (text(spec, "type") == "ClusterIP" && length(spec, "externalIPs") > 0)
}

/// Allocates the missing addresses and ports of a service, and keeps those that an update of `old` does not mention.
///
/// # Errors
///
/// A requested value is not available, or no free value is left.
pub(crate) fn allocate(old: Option<&Value>, service: &mut Value, pool: &mut ServicePool<'_>) -> Result<(), Vec<Cause>> {
    let nothing = JsonObject::new();
    let old = old.and_then(|old| object_at(old, "spec")).unwrap_or(&nothing);
    let Some(spec) = service.as_object_mut().map(|service| open(service, "spec")) else { return Ok(()) };
    if has_address(spec) {
        if !old.is_empty() && has_address(old) {
            keep_addresses(old, spec);
        }
        if length(spec, "clusterIPs") == 0 && !text(spec, "clusterIP").is_empty() {
            spec.insert("clusterIPs".into(), json!([text(spec, "clusterIP")]));
        }
        set_families(old, spec)?;
        if text(old, "clusterIP").is_empty() {
            give_address(spec, pool)?;
        }
    }
    if has_node_ports(spec) {
        give_ports(old, spec, pool)?;
    }
    if checks_health(spec) {
        if checks_health(old) && number(spec, "healthCheckNodePort") == 0 {
            copy(old, spec, "healthCheckNodePort");
        } else if !checks_health(old) {
            let port = match number(spec, "healthCheckNodePort") {
                0 => pool.next_port()?,
                port => pool.take_port(port, "spec.healthCheckNodePort")?,
            };
            spec.insert("healthCheckNodePort".into(), json!(port));
        }
    }
    Ok(())
}

fn keep_addresses(old: &JsonObject, spec: &mut JsonObject) {
    let has_changed = !text(spec, "clusterIP").is_empty() && text(spec, "clusterIP") != text(old, "clusterIP");
    if text(spec, "clusterIP").is_empty() {
        copy(old, spec, "clusterIP");
    }
    if length(spec, "clusterIPs") == 0 {
        copy(old, spec, "clusterIPs");
    }
    if has_changed && old.get("clusterIPs") == spec.get("clusterIPs") {
        spec.insert("clusterIPs".into(), json!([text(spec, "clusterIP")]));
    }
}

/// Sets the IP families of a service, and refuses families that the cluster does not have.
fn set_families(old: &JsonObject, spec: &mut JsonObject) -> Result<(), Vec<Cause>> {
    let is_open = text(spec, "clusterIP") == "None" && length(spec, "selector") == 0;
    let policy = if is_open { "RequireDualStack" } else { "SingleStack" };
    fill(spec, "ipFamilyPolicy", old.get("ipFamilyPolicy").cloned().unwrap_or_else(|| policy.into()));
    if is_open {
        fill(spec, "ipFamilies", json!(["IPv4", "IPv6"]));
        return Ok(());
    }
    let detail = "this cluster is not configured for dual-stack services";
    if text(spec, "ipFamilyPolicy") == "RequireDualStack" {
        return Err(vec![Cause::invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), detail)]);
    }
    for (key, other) in [("ipFamilies", "IPv6"), ("clusterIPs", ":")] {
        let list = spec.get(key).and_then(Value::as_array).into_iter().flatten();
        let wrong = list.enumerate().find(|(_, one)| one.as_str().is_some_and(|one| one.contains(other)));
        if let Some((index, value)) = wrong {
            return Err(vec![Cause::invalid(format!("spec.{key}[{index}]"), Some(value), detail)]);
        }
    }
    spec.insert("ipFamilies".into(), json!(["IPv4"]));
    Ok(())
}

/// Allocates the requested address, or any.
fn give_address(spec: &mut JsonObject, pool: &mut ServicePool<'_>) -> Result<(), Vec<Cause>> {
    let wanted = spec.get("clusterIPs").and_then(|list| list.get(0)).and_then(Value::as_str).unwrap_or_default();
    let address = match wanted {
        "None" => return Ok(()),
        "" => pool.next_address(),
        wanted => pool.addresses.insert(wanted.to_owned()).then(|| wanted.to_owned()),
    };
    let Some(address) = address else {
        let detail = "the address is already allocated, or none is free";
        return Err(vec![Cause::invalid("spec.clusterIPs", spec.get("clusterIPs"), detail)]);
    };
    spec.insert("clusterIPs".into(), json!([address]));
    spec.insert("clusterIP".into(), address.into());
    Ok(())
}

/// Allocates the missing node ports, and keeps those of an old service by port name. Ports with the same number and
/// different protocols share a node port.
fn give_ports(old: &JsonObject, spec: &mut JsonObject, pool: &mut ServicePool<'_>) -> Result<(), Vec<Cause>> {
    let mut had = if has_node_ports(old) { used_ports(old) } else { BTreeSet::new() };
    let by_name: BTreeMap<_, _> =
        items(old, "ports").map(|port| (text(port, "name"), number(port, "nodePort"))).collect();
    let gives_any = !is_balanced(spec) || spec.get("allocateLoadBalancerNodePorts") == Some(&Value::Bool(true));
    let asked = used_ports(spec);
    let mut given: BTreeMap<i64, i64> = BTreeMap::new();
    for (index, port) in items_mut(spec, "ports").enumerate() {
        let kept = by_name.get(text(port, "name")).copied().filter(|kept| had.contains(kept) && !asked.contains(kept));
        let shared = given.get(&number(port, "port")).copied();
        let node = match number(port, "nodePort") {
            0 => match kept.or(shared) {
                Some(node) => node,
                None if gives_any => pool.next_port()?,
                None => continue,
            },
            node if shared == Some(node) || !had.insert(node) => node,
            node => pool.take_port(node, &format!("spec.ports[{index}].nodePort"))?,
        };
        given.insert(number(port, "port"), node);
        port.insert("nodePort".into(), json!(node));
    }
    Ok(())
}

/// Removes the fields that only the old type of a service has, unless the update changes them.
pub(super) fn drop_old_type(old: &Value, service: &mut Value) {
    let nothing = JsonObject::new();
    let old = object_at(old, "spec").unwrap_or(&nothing);
    let Some(service) = service.as_object_mut() else { return };
    let spec = open(service, "spec");
    let ends = |has: fn(&JsonObject) -> bool, spec: &JsonObject| has(old) && !has(spec);
    let mut stale = Vec::new();
    if ends(has_address, spec) {
        stale.extend(["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"]);
    }
    if ends(has_node_ports, spec) && used_ports(spec).is_subset(&used_ports(old)) {
        items_mut(spec, "ports").for_each(|port| drop(port.remove("nodePort")));
    }
    if ends(checks_health, spec) {
        stale.push("healthCheckNodePort");
    }
    if ends(is_balanced, spec) {
        stale.extend(["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    if ends(is_reached_from_outside, spec) {
        stale.push("externalTrafficPolicy");
    }
    for key in stale.into_iter().filter(|key| old.get(*key) == spec.get(*key)).collect::<Vec<_>>() {
        spec.remove(key);
    }
    if !is_balanced(spec) {
        open(service, "status").insert("loadBalancer".into(), json!({}));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allocated(old: Option<&Value>, spec: Value) -> Result<Value, String> {
        let (addresses, ports) = (["10.96.0.9".to_owned()].into(), [30_000].into());
        let mut service = json!({"spec": spec});
        let mut pool = ServicePool { addresses, ports, draw: &|_| 0 };
        allocate(old, &mut service, &mut pool).map_err(|causes| causes[0].field.clone())?;
        Ok(service["spec"].take())
    }

    #[test]
    fn service_gets_an_address_of_the_only_family() {
        let spec = allocated(None, json!({"type": "ClusterIP", "ports": [{"port": 80}]})).unwrap();
        assert_eq!((&spec["clusterIP"], &spec["clusterIPs"]), (&json!("10.96.0.1"), &json!(["10.96.0.1"])));
        assert_eq!((&spec["ipFamilies"], &spec["ipFamilyPolicy"]), (&json!(["IPv4"]), &json!("SingleStack")));
        assert!(spec["ports"][0].get("nodePort").is_none());
    }

    #[test]
    fn service_without_address_still_has_families() {
        let headless = |selector: Value| {
            let spec =
                allocated(None, json!({"type": "ClusterIP", "clusterIP": "None", "selector": selector})).unwrap();
            assert_eq!(spec["clusterIPs"], json!(["None"]));
            (spec["ipFamilyPolicy"].clone(), spec["ipFamilies"].clone())
        };
        assert_eq!(headless(json!({})), (json!("RequireDualStack"), json!(["IPv4", "IPv6"])));
        assert_eq!(headless(json!({"a": "b"})), (json!("SingleStack"), json!(["IPv4"])));
        let external = json!({"type": "ExternalName", "externalName": "a.b"});
        assert_eq!(allocated(None, external.clone()).unwrap(), external);
    }

    #[test]
    fn protocols_of_one_port_share_a_node_port() {
        let ports =
            json!([{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}, {"port": 80, "nodePort": 31000}]);
        let spec = allocated(None, json!({"type": "NodePort", "ports": ports})).unwrap();
        let numbers: Vec<_> = spec["ports"].as_array().unwrap().iter().map(|port| port["nodePort"].clone()).collect();
        assert_eq!(numbers, [30001, 30001, 31000]);
    }

    #[test]
    fn update_keeps_omitted_addresses_and_ports() {
        let old = json!({"spec": allocated(None, json!({"type": "NodePort", "ports": [{"port": 80, "name": "a"}]})).unwrap()});
        let ports = json!([{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]);
        let new = allocated(Some(&old), json!({"type": "NodePort", "ports": ports})).unwrap();
        assert_eq!(new["clusterIP"], old["spec"]["clusterIP"]);
        assert_eq!(new["ports"][0]["nodePort"], old["spec"]["ports"][0]["nodePort"]);
        assert!(new["ports"][1]["nodePort"].is_number());
    }

    #[test]
    fn external_name_service_frees_addresses_and_ports() {
        let old = json!({"spec": allocated(None, json!({"type": "NodePort", "ports": [{"port": 80, "name": "a"}]})).unwrap()});
        let mut new = old.clone();
        new["spec"]["type"] = json!("ExternalName");
        drop_old_type(&old, &mut new);
        assert!(node_ports(&new).is_empty() && !node_ports(&old).is_empty());
        assert!(["clusterIP", "clusterIPs", "ipFamilies"].iter().all(|key| new["spec"].get(*key).is_none()));
    }

    #[test]
    fn unavailable_addresses_and_ports_are_refused() {
        let refused = |spec: Value| allocated(None, spec).unwrap_err();
        assert_eq!(refused(json!({"type": "ClusterIP", "clusterIP": "10.96.0.9"})), "spec.clusterIPs");
        assert_eq!(refused(json!({"type": "ClusterIP", "ipFamilyPolicy": "RequireDualStack"})), "spec.ipFamilyPolicy");
        assert_eq!(refused(json!({"type": "ClusterIP", "ipFamilies": ["IPv6"]})), "spec.ipFamilies[0]");
        let taken = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30000}]});
        assert_eq!(refused(taken), "spec.ports[0].nodePort");
    }
}
