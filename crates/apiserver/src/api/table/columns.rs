//! The columns of every built-in kind.

use super::column::Column;

const NAME: Column = Column::NAME;
const AGE: Column = Column::AGE;

const fn text(name: &'static str) -> Column {
    Column::text(name)
}

const fn integer(name: &'static str) -> Column {
    Column::integer(name)
}

const fn boolean(name: &'static str) -> Column {
    Column::boolean(name)
}

const fn wide(name: &'static str) -> Column {
    Column::wide(name)
}

/// Returns the columns of the resource with that id (`pods`, `deployments.apps`), including those of `-o wide`.
///
/// A kind without its own printer shows name and creation time.
#[must_use]
pub(crate) fn columns(id: &str) -> &'static [Column] {
    core(id).or_else(|| grouped(id)).or_else(|| cluster(id)).unwrap_or(const { &[NAME, Column::CREATED_AT] })
}

/// Returns the columns of kinds in the core group.
fn core(id: &str) -> Option<&'static [Column]> {
    Some(match id {
        "namespaces" => const { &[NAME, text("Status"), AGE] },
        "nodes" => const { NODE },
        "pods" => const { POD },
        "configmaps" => const { &[NAME, text("Data"), AGE] },
        "secrets" => const { &[NAME, text("Type"), text("Data"), AGE] },
        "services" => const { SERVICE },
        "serviceaccounts" => const { &[NAME, AGE] },
        "endpoints" => const { &[NAME, text("Endpoints"), AGE] },
        "events" | "events.events.k8s.io" => const { EVENT },
        "resourcequotas" => const { &[NAME, text("Request"), text("Limit"), AGE] },
        "persistentvolumes" => const { PERSISTENT_VOLUME },
        "persistentvolumeclaims" => const { PERSISTENT_VOLUME_CLAIM },
        "podtemplates" => const { &[NAME, text("Containers"), text("Images"), text("Pod Labels")] },
        "replicationcontrollers" => const { REPLICA_SET },
        _ => return None,
    })
}

/// Returns the columns of namespaced kinds in other groups.
fn grouped(id: &str) -> Option<&'static [Column]> {
    Some(match id {
        "deployments.apps" => const { DEPLOYMENT },
        "replicasets.apps" => const { REPLICA_SET },
        "statefulsets.apps" => const { &[NAME, text("Ready"), AGE, wide("Containers"), wide("Images")] },
        "daemonsets.apps" => const { DAEMON_SET },
        "controllerrevisions.apps" => const { &[NAME, text("Controller"), text("Revision"), AGE] },
        "jobs.batch" => const { JOB },
        "cronjobs.batch" => const { CRON_JOB },
        "leases.coordination.k8s.io" => const { &[NAME, text("Holder"), AGE] },
        "endpointslices.discovery.k8s.io" => {
            const { &[NAME, text("AddressType"), text("Ports"), text("Endpoints"), AGE] }
        }
        "ingresses.networking.k8s.io" => const { INGRESS },
        "networkpolicies.networking.k8s.io" => const { &[NAME, text("Pod-Selector"), AGE] },
        "rolebindings.rbac.authorization.k8s.io" | "clusterrolebindings.rbac.authorization.k8s.io" => {
            const { &[NAME, text("Role"), AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts")] }
        }
        "poddisruptionbudgets.policy" => const { POD_DISRUPTION_BUDGET },
        "horizontalpodautoscalers.autoscaling" => const { HORIZONTAL_POD_AUTOSCALER },
        "scales.autoscaling" => const { &[text("Name"), integer("Desired"), integer("Available"), AGE] },
        _ => return None,
    })
}

/// Returns the columns of cluster-scoped kinds in other groups.
fn cluster(id: &str) -> Option<&'static [Column]> {
    Some(match id {
        "ingressclasses.networking.k8s.io" => const { &[NAME, text("Controller"), text("Parameters"), AGE] },
        // kube-apiserver prints an age in each row, but has no column for it.
        "ipaddresses.networking.k8s.io" => const { &[NAME, text("ParentRef")] },
        "servicecidrs.networking.k8s.io" => const { &[NAME, text("CIDRs"), AGE] },
        "storageclasses.storage.k8s.io" => const { STORAGE_CLASS },
        "volumeattachments.storage.k8s.io" => const { VOLUME_ATTACHMENT },
        "csidrivers.storage.k8s.io" => const { CSI_DRIVER },
        "csinodes.storage.k8s.io" => const { &[NAME, integer("Drivers"), AGE] },
        "volumeattributesclasses.storage.k8s.io" => const { &[NAME, text("DriverName"), AGE] },
        "certificatesigningrequests.certificates.k8s.io" => const { CERTIFICATE_SIGNING_REQUEST },
        "validatingadmissionpolicies.admissionregistration.k8s.io" => {
            const { &[NAME, integer("Validations"), text("ParamKind"), AGE] }
        }
        "validatingadmissionpolicybindings.admissionregistration.k8s.io" => {
            const { &[NAME, text("PolicyName"), text("ParamRef"), AGE] }
        }
        "apiservices.apiregistration.k8s.io" => const { &[NAME, text("Service"), text("Available"), AGE] },
        "runtimeclasses.node.k8s.io" => const { &[NAME, text("Handler"), AGE] },
        "flowschemas.flowcontrol.apiserver.k8s.io" => const { FLOW_SCHEMA },
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io" => const { PRIORITY_LEVEL },
        "deviceclasses.resource.k8s.io" | "resourceclaimtemplates.resource.k8s.io" => const { &[NAME, AGE] },
        "resourceclaims.resource.k8s.io" => const { &[NAME, text("State"), AGE] },
        "resourceslices.resource.k8s.io" => const { &[NAME, text("Node"), text("Driver"), text("Pool"), AGE] },
        "priorityclasses.scheduling.k8s.io" => const { PRIORITY_CLASS },
        "mutatingwebhookconfigurations.admissionregistration.k8s.io"
        | "validatingwebhookconfigurations.admissionregistration.k8s.io" => const { &[NAME, integer("Webhooks"), AGE] },
        "customresourcedefinitions.apiextensions.k8s.io" => const { CUSTOM_RESOURCE_DEFINITION },
        _ => return None,
    })
}

const CERTIFICATE_SIGNING_REQUEST: &[Column] =
    &[NAME, AGE, text("SignerName"), text("Requestor"), text("RequestedDuration"), text("Condition")];
const FLOW_SCHEMA: &[Column] =
    &[NAME, text("PriorityLevel"), text("MatchingPrecedence"), text("DistinguisherMethod"), AGE, text("MissingPL")];
const PRIORITY_LEVEL: &[Column] = &[
    NAME,
    text("Type"),
    text("NominalConcurrencyShares"),
    text("Queues"),
    text("HandSize"),
    text("QueueLengthLimit"),
    AGE,
];
const POD: &[Column] = &[
    NAME,
    text("Ready"),
    text("Status"),
    text("Restarts"),
    AGE,
    wide("IP"),
    wide("Node"),
    wide("Nominated Node"),
    wide("Readiness Gates"),
];

const NODE: &[Column] = &[
    NAME,
    text("Status"),
    text("Roles"),
    AGE,
    text("Version"),
    wide("Internal-IP"),
    wide("External-IP"),
    wide("OS-Image"),
    wide("Kernel-Version"),
    wide("Container-Runtime"),
];

const SERVICE: &[Column] =
    &[NAME, text("Type"), text("Cluster-IP"), text("External-IP"), text("Port(s)"), AGE, wide("Selector")];

const EVENT: &[Column] = &[
    text("Last Seen"),
    text("Type"),
    text("Reason"),
    text("Object"),
    wide("Subobject"),
    wide("Source"),
    text("Message"),
    wide("First Seen"),
    wide("Count"),
    NAME.widened(),
];

const PERSISTENT_VOLUME: &[Column] = &[
    NAME,
    text("Capacity"),
    text("Access Modes"),
    text("Reclaim Policy"),
    text("Status"),
    text("Claim"),
    text("StorageClass"),
    text("VolumeAttributesClass"),
    text("Reason"),
    AGE,
    wide("VolumeMode"),
];

const PERSISTENT_VOLUME_CLAIM: &[Column] = &[
    NAME,
    text("Status"),
    text("Volume"),
    text("Capacity"),
    text("Access Modes"),
    text("StorageClass"),
    text("VolumeAttributesClass"),
    AGE,
    wide("VolumeMode"),
];

const DEPLOYMENT: &[Column] = &[
    NAME,
    text("Ready"),
    text("Up-to-date"),
    text("Available"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];

const REPLICA_SET: &[Column] = &[
    NAME,
    integer("Desired"),
    integer("Current"),
    integer("Ready"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];

const DAEMON_SET: &[Column] = &[
    NAME,
    integer("Desired"),
    integer("Current"),
    integer("Ready"),
    integer("Up-to-date"),
    integer("Available"),
    text("Node Selector"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];

const JOB: &[Column] = &[
    NAME,
    text("Status"),
    text("Completions"),
    text("Duration"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];

const CRON_JOB: &[Column] = &[
    NAME,
    text("Schedule"),
    text("Timezone"),
    boolean("Suspend"),
    integer("Active"),
    text("Last Schedule"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];

const INGRESS: &[Column] = &[NAME, text("Class"), text("Hosts"), text("Address"), text("Ports"), AGE];

const POD_DISRUPTION_BUDGET: &[Column] =
    &[NAME, text("Min Available"), text("Max Unavailable"), integer("Allowed Disruptions"), AGE];

const HORIZONTAL_POD_AUTOSCALER: &[Column] =
    &[NAME, text("Reference"), text("Targets"), text("MinPods"), text("MaxPods"), text("Replicas"), AGE];

const STORAGE_CLASS: &[Column] =
    &[NAME, text("Provisioner"), text("ReclaimPolicy"), text("VolumeBindingMode"), text("AllowVolumeExpansion"), AGE];

const VOLUME_ATTACHMENT: &[Column] =
    &[NAME, text("Attacher").of_names(), text("PV"), text("Node"), boolean("Attached"), AGE];

const CSI_DRIVER: &[Column] = &[
    NAME,
    boolean("AttachRequired"),
    boolean("PodInfoOnMount"),
    boolean("StorageCapacity"),
    text("TokenRequests"),
    boolean("RequiresRepublish"),
    text("Modes"),
    AGE,
];

const PRIORITY_CLASS: &[Column] = &[NAME, integer("Value"), boolean("Global-Default"), AGE, text("PreemptionPolicy")];

const CUSTOM_RESOURCE_DEFINITION: &[Column] = &[
    NAME,
    text("Scope"),
    text("Versions"),
    Column::CREATED_AT,
    wide("Group"),
    wide("Kind"),
    wide("ShortNames"),
    boolean("Established").widened(),
];
