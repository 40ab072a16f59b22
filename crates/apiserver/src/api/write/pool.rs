//! The pools of addresses and node ports for services.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use crate::hub::Hub;
use crate::kinds::rules::strategy::service::{Pool, held};

/// The address range of services. The first and the last address are not used.
const ADDRESSES: (Ipv4Addr, u32) = (Ipv4Addr::new(10, 96, 0, 0), 12);
const PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;

/// The addresses and ports in use.
#[derive(Debug)]
pub(super) struct Held<'a> {
    hub: &'a Hub,
    addresses: BTreeSet<String>,
    ports: BTreeSet<i64>,
    /// A dry run takes nothing from the pool, and always shows the same values.
    dry_run: bool,
}

impl<'a> Held<'a> {
    /// Collects the addresses and ports of all services.
    pub(super) fn now(hub: &'a Hub, dry_run: bool) -> Self {
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
                ports.extend(held(&service.value()).ports);
            }
        }
        Self { hub, addresses, ports, dry_run }
    }
}

impl Pool for Held<'_> {
    fn next_address(&mut self) -> Option<String> {
        let (first, bits) = (u32::from(ADDRESSES.0), 32 - ADDRESSES.1);
        let size = (1_u64 << bits) - 2;
        let start = if self.dry_run { 0 } else { self.hub.chance.within(0..size) };
        let free = (0..size).map(|step| {
            let offset = u32::try_from((start + step) % size).unwrap_or(0);
            Ipv4Addr::from(first + 1 + offset).to_string()
        });
        let address = free.into_iter().find(|address| !self.addresses.contains(address))?;
        self.addresses.insert(address.clone());
        Some(address)
    }

    fn take_address(&mut self, address: &str) -> Result<(), String> {
        if self.addresses.contains(address) {
            return Err("provided IP is already allocated".into());
        }
        self.addresses.insert(address.to_owned());
        Ok(())
    }

    fn next_port(&mut self) -> Option<u16> {
        let size = u64::from(PORTS.end() - PORTS.start()) + 1;
        let start = if self.dry_run { 0 } else { self.hub.chance.within(0..size) };
        let ports = (0..size).map(|step| PORTS.start() + u16::try_from((start + step) % size).unwrap_or(0));
        let port = ports.into_iter().find(|port| !self.ports.contains(&i64::from(*port)))?;
        self.ports.insert(i64::from(port));
        Some(port)
    }

    fn take_port(&mut self, port: i64) -> Result<(), String> {
        if !u16::try_from(port).is_ok_and(|port| PORTS.contains(&port)) {
            return Err(format!(
                "provided port is not in the valid range. The range of valid ports is {}-{}",
                PORTS.start(),
                PORTS.end()
            ));
        }
        if !self.ports.insert(port) {
            return Err("provided port is already allocated".into());
        }
        Ok(())
    }
}
