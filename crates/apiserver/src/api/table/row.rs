//! One row of a table, and the printer that writes it.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::read::Read;
use super::{
    access, age, autoscaling, cluster, control, controlled, device, event, network, pod, policy, routes, storage,
};

/// One row: its cells, in the order of the columns, and its object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row<'a> {
    /// A cell for each column, including those of `-o wide`.
    pub(crate) cells: Vec<Value>,
    /// The condition of the row; usually none.
    pub(crate) condition: Option<Condition>,
    /// The object the row shows.
    pub(crate) object: &'a Value,
}

/// The condition of a row whose pod has finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// The pod has succeeded.
    Succeeded,
    /// The pod has failed.
    Failed,
}

impl Condition {
    /// Returns the condition as a row lists it.
    pub(super) fn entry(self) -> Value {
        let (reason, message) = match self {
            Self::Succeeded => ("Succeeded", "The pod has completed successfully."),
            Self::Failed => ("Failed", "The pod failed."),
        };
        json!({ "type": "Completed", "status": "True", "reason": reason, "message": message })
    }
}

/// Returns the rows of one object of the resource with that id, as in a get or a watch.
#[must_use]
pub(crate) fn rows<'a>(id: &str, object: &'a Value, now: Timestamp) -> Vec<Row<'a>> {
    let condition = if id == "pods" { pod::condition(object) } else { None };
    vec![Row { cells: cells(id, object, now), condition, object }]
}

/// Returns the rows of a list. Unlike the rows of a single object they can depend on other objects: only a list marks
/// the default storage class.
#[must_use]
pub(crate) fn rows_of_list<'a>(id: &str, objects: impl IntoIterator<Item = &'a Value>, now: Timestamp) -> Vec<Row<'a>> {
    let mut found: Vec<Row<'a>> = objects.into_iter().flat_map(|object| rows(id, object, now)).collect();
    if id == "storageclasses.storage.k8s.io" {
        storage::mark_default(&mut found);
    }
    found
}

/// Returns the cells of one object, by the printer of its kind.
fn cells(id: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    let print: fn(&Value, Timestamp) -> Vec<Value> = match id {
        "pods" => pod::pod,
        "podtemplates" => controlled::pod_template,
        "replicationcontrollers" => control::replication_controller,
        "deployments.apps" => control::deployment,
        "replicasets.apps" => control::replica_set,
        "statefulsets.apps" => control::stateful_set,
        "daemonsets.apps" => control::daemon_set,
        "controllerrevisions.apps" => controlled::controller_revision,
        "jobs.batch" => controlled::job,
        "cronjobs.batch" => controlled::cron_job,
        "poddisruptionbudgets.policy" => controlled::pod_disruption_budget,
        "horizontalpodautoscalers.autoscaling" => autoscaling::horizontal_pod_autoscaler,
        "scales.autoscaling" => control::scale,
        "services" => network::service,
        "endpoints" => network::endpoints,
        "endpointslices.discovery.k8s.io" => network::endpoint_slice,
        "ingresses.networking.k8s.io" => routes::ingress,
        "ingressclasses.networking.k8s.io" => routes::ingress_class,
        "networkpolicies.networking.k8s.io" => routes::network_policy,
        "ipaddresses.networking.k8s.io" => routes::ip_address,
        "servicecidrs.networking.k8s.io" => routes::service_cidr,
        "events" | "events.events.k8s.io" => event::event,
        _ => return other_cells(id, object, now),
    };
    print(object, now)
}

/// Returns the cells of kinds that are not workloads.
fn other_cells(id: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    let print: fn(&Value, Timestamp) -> Vec<Value> = match id {
        "namespaces" => cluster::namespace,
        "nodes" => cluster::node,
        "resourcequotas" => cluster::resource_quota,
        "leases.coordination.k8s.io" => cluster::lease,
        "priorityclasses.scheduling.k8s.io" => cluster::priority_class,
        "customresourcedefinitions.apiextensions.k8s.io" => cluster::custom_resource_definition,
        "configmaps" => access::config_map,
        "secrets" => access::secret,
        "serviceaccounts" => access::service_account,
        "rolebindings.rbac.authorization.k8s.io" | "clusterrolebindings.rbac.authorization.k8s.io" => {
            access::role_binding
        }
        "mutatingwebhookconfigurations.admissionregistration.k8s.io"
        | "validatingwebhookconfigurations.admissionregistration.k8s.io" => access::webhooks,
        "persistentvolumes" => storage::persistent_volume,
        "persistentvolumeclaims" => storage::persistent_volume_claim,
        "storageclasses.storage.k8s.io" => storage::storage_class,
        "volumeattachments.storage.k8s.io" => storage::volume_attachment,
        "volumeattributesclasses.storage.k8s.io" => storage::volume_attributes_class,
        "csidrivers.storage.k8s.io" => storage::csi_driver,
        "csinodes.storage.k8s.io" => storage::csi_node,
        "certificatesigningrequests.certificates.k8s.io" => policy::certificate_signing_request,
        "validatingadmissionpolicies.admissionregistration.k8s.io" => policy::admission_policy,
        "validatingadmissionpolicybindings.admissionregistration.k8s.io" => policy::admission_policy_binding,
        "apiservices.apiregistration.k8s.io" => policy::api_service,
        "flowschemas.flowcontrol.apiserver.k8s.io" => policy::flow_schema,
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io" => policy::priority_level,
        "runtimeclasses.node.k8s.io" => device::runtime_class,
        "deviceclasses.resource.k8s.io" | "resourceclaimtemplates.resource.k8s.io" => access::service_account,
        "resourceclaims.resource.k8s.io" => device::resource_claim,
        "resourceslices.resource.k8s.io" => device::resource_slice,
        _ => name_and_creation,
    };
    print(object, now)
}

/// Returns name and creation time, for kinds without their own printer.
fn name_and_creation(object: &Value, _: Timestamp) -> Vec<Value> {
    vec![object.name().into(), age::created_at(object).into()]
}
