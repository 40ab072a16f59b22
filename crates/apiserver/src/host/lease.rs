//! The Lease that a server renews for itself, so that the revision of an idle server advances.

use serde_json::json;
use std::time::Duration;

use crate::api::write::{WriteFailure, WriteOptions, create, patch_with};
use crate::hub::Hub;
use crate::storage::key::StoreKey;

const LEASES: &str = "leases.coordination.k8s.io";
const NAMESPACE: &str = "kube-system";
const NAME: &str = "apiserver-embedded";

/// Renews the Lease in the background at this interval, if there is a runtime to wait in.
pub(super) fn keep(hub: &Hub, interval: Duration) {
    hub.repeat(interval, |hub| {
        if let Err(error) = renew(hub) {
            tracing::debug!(?error, "the server cannot renew its lease");
        }
    });
}

/// Renews the Lease, and creates it if it is missing.
fn renew(hub: &Hub) -> Result<(), WriteFailure> {
    let Some(leases) = hub.storage.lock().catalog.named(LEASES).cloned() else { return Ok(()) };
    let (options, now) = (WriteOptions::host(), hub.clock.now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string());
    let renewed = patch_with(hub, &leases, &StoreKey::new(Some(NAMESPACE), NAME), &options, |stored| {
        let mut lease = stored.clone();
        lease["spec"]["renewTime"] = now.as_str().into();
        Ok(lease)
    });
    match renewed {
        Err(WriteFailure::NotFound(_)) => {
            let labels = json!({"apiserver.kubernetes.io/identity": "kube-apiserver"});
            let lease = json!({"kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
                "metadata": {"name": NAME, "labels": labels},
                "spec": {"holderIdentity": NAME, "leaseDurationSeconds": 3600, "renewTime": now}});
            create(hub, &leases, Some(NAMESPACE), lease, &options).map(drop)
        }
        renewed => renewed.map(drop),
    }
}
