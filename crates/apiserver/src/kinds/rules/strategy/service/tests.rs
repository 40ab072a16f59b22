use serde_json::json;

use super::*;

/// Allocates addresses and ports one after the other.
#[derive(Default)]
struct Counter {
    addresses: Vec<String>,
    ports: Vec<i64>,
}

impl Pool for Counter {
    fn next_address(&mut self) -> Option<String> {
        let address = format!("10.0.0.{}", self.addresses.len() + 1);
        self.addresses.push(address.clone());
        Some(address)
    }

    fn take_address(&mut self, address: &str) -> Result<(), String> {
        if self.addresses.iter().any(|taken| taken == address) {
            return Err("provided IP is already allocated".to_owned());
        }
        self.addresses.push(address.to_owned());
        Ok(())
    }

    fn next_port(&mut self) -> Option<u16> {
        let port = 30000 + u16::try_from(self.ports.len()).ok()?;
        self.ports.push(port.into());
        Some(port)
    }

    fn take_port(&mut self, port: i64) -> Result<(), String> {
        if self.ports.contains(&port) {
            return Err("provided port is already allocated".to_owned());
        }
        self.ports.push(port);
        Ok(())
    }
}

fn created(spec: Value) -> Value {
    let mut service = json!({"spec": spec});
    allocate_create(&mut service, &mut Counter::default()).expect("a service that is given everything");
    service["spec"].take()
}

fn updated(old: &Value, spec: Value) -> Value {
    let mut service = json!({"spec": spec});
    let mut pool = Counter { addresses: vec!["10.0.0.1".into()], ports: vec![30000, 30001] };
    allocate_update(&json!({"spec": old}), &mut service, &mut pool).expect("a service that is given everything");
    service["spec"].take()
}

#[test]
fn service_gets_an_address_of_the_only_family() {
    let spec = created(json!({"type": "ClusterIP", "ports": [{"port": 80}]}));
    assert_eq!(spec["clusterIP"], "10.0.0.1");
    assert_eq!(spec["clusterIPs"], json!(["10.0.0.1"]));
    assert_eq!(spec["ipFamilies"], json!(["IPv4"]));
    assert_eq!(spec["ipFamilyPolicy"], "SingleStack");
    assert!(spec["ports"][0].get("nodePort").is_none());
}

#[test]
fn service_without_address_still_has_families() {
    let open = created(json!({"type": "ClusterIP", "clusterIP": "None"}));
    assert_eq!((&open["ipFamilyPolicy"], &open["ipFamilies"]), (&json!("RequireDualStack"), &json!(["IPv4", "IPv6"])));
    assert_eq!(open["clusterIPs"], json!(["None"]));
    let selecting = created(json!({"type": "ClusterIP", "clusterIP": "None", "selector": {"a": "b"}}));
    assert_eq!((&selecting["ipFamilyPolicy"], &selecting["ipFamilies"]), (&json!("SingleStack"), &json!(["IPv4"])));
    let external = json!({"type": "ExternalName", "externalName": "a.b"});
    assert_eq!(created(external.clone()), external);
}

#[test]
fn protocols_of_one_port_share_a_node_port() {
    let ports =
        json!([{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}, {"port": 80, "nodePort": 31000}]);
    let spec = created(json!({"type": "NodePort", "ports": ports}));
    let numbers: Vec<_> =
        spec["ports"].as_array().into_iter().flatten().map(|port| port["nodePort"].as_i64()).collect();
    assert_eq!(numbers, [Some(30000), Some(30000), Some(31000)]);
}

#[test]
fn update_keeps_omitted_addresses_and_ports() {
    let old = created(json!({"type": "NodePort", "ports": [{"port": 80, "name": "a"}]}));
    let new =
        updated(&old, json!({"type": "NodePort", "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]}));
    assert_eq!(new["clusterIP"], old["clusterIP"]);
    assert_eq!(new["ports"][0]["nodePort"], 30000);
    assert_eq!(new["ports"][1]["nodePort"], 30002);
}

#[test]
fn external_name_service_frees_addresses_and_ports() {
    let old = json!({"spec": created(json!({"type": "NodePort", "ports": [{"port": 80, "name": "a"}]}))});
    let mut new = old.clone();
    new["spec"]["type"] = json!("ExternalName");
    let mut pool = Counter::default();
    allocate_update(&old, &mut new, &mut pool).expect("nothing is asked for");
    crate::kinds::rules::strategy::prepare_update("services", &old, &mut new, "");
    assert_eq!(held(&new), Held::default());
    assert_eq!(held(&old), Held { addresses: vec!["10.0.0.1".into()], ports: vec![30000] });
    assert!(new["spec"].get("ipFamilies").is_none());
}

#[test]
fn unavailable_addresses_and_ports_are_refused() {
    let mut pool = Counter { addresses: vec!["10.0.0.9".into()], ports: Vec::new() };
    let mut refused = |spec: Value| match allocate_create(&mut json!({"spec": spec}), &mut pool) {
        Err(Refusal::Invalid(causes)) => {
            causes.into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
        }
        other => panic!("{other:?}"),
    };
    let found: Vec<String> = refused(json!({"type": "ClusterIP", "clusterIP": "10.0.0.9"}));
    let taken = "failed to allocate IP 10.0.0.9: provided IP is already allocated";
    assert_eq!(found, [format!("spec.clusterIPs: Invalid value: [\"10.0.0.9\"]: {taken}")]);
    let found = refused(json!({"type": "ClusterIP", "ipFamilyPolicy": "RequireDualStack"}));
    let both = "this cluster is not configured for dual-stack services";
    assert_eq!(found, [format!("spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": {both}")]);
}
