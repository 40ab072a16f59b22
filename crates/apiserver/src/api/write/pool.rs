//! The addresses and node ports that services use.

use std::collections::BTreeSet;

use crate::hub::Hub;
use crate::kinds::rules::service::node_ports;

/// Returns the addresses and node ports of all services.
pub(super) fn pool(hub: &Hub) -> (BTreeSet<String>, BTreeSet<i64>) {
    let services = {
        let mut state = hub.storage.lock();
        let services = state.catalog.named("services").cloned();
        services.map(|services| state.collection(&services).objects().clone()).unwrap_or_default()
    };
    let (mut addresses, mut ports) = (BTreeSet::new(), BTreeSet::new());
    for service in services.values() {
        // Address and type are indexed fields. Only some types have node ports.
        let [address, kind] = [0, 1].map(|field| service.fields.get(field).map_or("", |value| &**value));
        addresses.insert(address.to_owned());
        if matches!(kind, "NodePort" | "LoadBalancer") {
            ports.extend(node_ports(&service.value()));
        }
    }
    (addresses, ports)
}
