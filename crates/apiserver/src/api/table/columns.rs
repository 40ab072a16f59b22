//! The columns of built-in kinds, and the content of their cells.

use jiff::Timestamp;
use serde_json::Value;

use super::age::{UNKNOWN, age, created_at};
use super::read::{ReadMember, or};
use super::{cells, event, metric, pod};

/// One column of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct CellColumn {
    /// The heading as in kube-apiserver; kubectl shows it in capitals.
    pub(super) name: &'static str,
    /// The type of the cells: `string`, `integer`, `boolean` or `date`.
    pub(super) kind: &'static str,
    /// `name` for the column that names the object.
    pub(super) format: &'static str,
    /// 0 for a column that is always shown, 1 for one that is only shown with `-o wide`.
    pub(super) priority: i64,
    cell: Cell,
}

/// The content of a cell.
#[derive(Debug, Clone, Copy)]
enum Cell {
    /// The string at a path, and the cell of a missing one.
    Text(&'static str, &'static str),
    /// The string at a path, and the cell of a missing or empty one.
    Filled(&'static str, &'static str),
    /// The number at a path, or zero.
    Number(&'static str),
    /// The boolean at a path, or false.
    Flag(&'static str),
    /// The number of elements or members at a path.
    Length(&'static str),
    Printed(fn(&Value) -> Value),
    /// A cell that changes with time.
    Timed(fn(&Value, Timestamp) -> String),
}

impl CellColumn {
    const fn new(name: &'static str, kind: &'static str, cell: Cell) -> Self {
        Self { name, kind, format: "", priority: 0, cell }
    }

    const fn wide(self) -> Self {
        Self { priority: 1, ..self }
    }

    const fn of_names(self) -> Self {
        Self { format: "name", ..self }
    }

    /// Shows this text for a missing string.
    const fn or(self, missing: &'static str) -> Self {
        let Cell::Text(path, _) = self.cell else { return self };
        Self { cell: Cell::Text(path, missing), ..self }
    }

    /// Shows this text for a missing or empty string.
    const fn or_if_empty(self, missing: &'static str) -> Self {
        let Cell::Text(path, _) = self.cell else { return self };
        Self { cell: Cell::Filled(path, missing), ..self }
    }

    /// Returns a column of strings for a cell of another type.
    const fn as_text(self) -> Self {
        Self { kind: "string", ..self }
    }

    /// Returns the cell of an object.
    pub(super) fn cell(&self, object: &Value, now: Timestamp) -> Value {
        match self.cell {
            Cell::Text(path, missing) => object.optional_text(path).unwrap_or(missing).into(),
            Cell::Filled(path, missing) => or(object.text(path), missing).into(),
            Cell::Number(path) => object.count(path).into(),
            Cell::Flag(path) => object.flag(path).unwrap_or(false).into(),
            Cell::Length(path) => (object.list(path).len() + object.members(path)).into(),
            Cell::Printed(print) => print(object),
            Cell::Timed(print) => print(object, now).into(),
        }
    }
}

const fn text(name: &'static str, path: &'static str) -> CellColumn {
    CellColumn::new(name, "string", Cell::Text(path, ""))
}

const fn integer(name: &'static str, path: &'static str) -> CellColumn {
    CellColumn::new(name, "integer", Cell::Number(path))
}

const fn length(name: &'static str, path: &'static str) -> CellColumn {
    CellColumn::new(name, "integer", Cell::Length(path))
}

const fn boolean(name: &'static str, path: &'static str) -> CellColumn {
    CellColumn::new(name, "boolean", Cell::Flag(path))
}

const fn printed(name: &'static str, print: fn(&Value) -> Value) -> CellColumn {
    CellColumn::new(name, "string", Cell::Printed(print))
}

const fn timed(name: &'static str, print: fn(&Value, Timestamp) -> String) -> CellColumn {
    CellColumn::new(name, "string", Cell::Timed(print))
}

const NAME: CellColumn = text("Name", "metadata.name").of_names();
const AGE: CellColumn = timed("Age", age);
const CREATED_AT: CellColumn = CellColumn { kind: "date", ..printed("Created At", |object| created_at(object).into()) };
const CONTAINERS: CellColumn = printed("Containers", |object| cells::containers(object, "name")).wide();
const IMAGES: CellColumn = printed("Images", |object| cells::containers(object, "image")).wide();
const SELECTOR: CellColumn = printed("Selector", |object| cells::selector(object, "spec.selector")).wide();
const DESIRED: CellColumn = CellColumn { kind: "integer", ..printed("Desired", cells::desired) };

/// Returns the name of an object as a column, for kinds whose other columns come from elsewhere.
pub(super) fn name_column() -> &'static CellColumn {
    const { &NAME }
}

/// Returns the columns of the resource with that id (`pods`, `deployments.apps`), including those of `-o wide`, or
/// `None` if it has no columns of its own.
pub(super) fn own_columns(id: &str) -> Option<&'static [CellColumn]> {
    KINDS.iter().find(|(known, _)| *known == id).map(|(_, columns)| *columns)
}

/// Returns the columns of the resource with that id.
pub(super) fn columns(id: &str) -> &'static [CellColumn] {
    own_columns(id).unwrap_or(const { &[NAME, CREATED_AT] })
}

const EVENT: &[CellColumn] = &[
    timed("Last Seen", event::last_seen),
    text("Type", "type"),
    text("Reason", "reason"),
    printed("Object", event::target),
    printed("Subobject", |event| event::about(event).text("fieldPath").into()).wide(),
    printed("Source", event::reporter).wide(),
    printed("Message", event::message),
    timed("First Seen", event::first_seen).wide(),
    printed("Count", event::count).wide(),
    NAME.wide(),
];
const REPLICA_SET: &[CellColumn] = &[
    NAME,
    DESIRED,
    integer("Current", "status.replicas"),
    integer("Ready", "status.readyReplicas"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
const ROLE_BINDING: &[CellColumn] = &[
    NAME,
    printed("Role", cells::role),
    AGE,
    printed("Users", |binding| cells::subjects(binding, "User")).wide(),
    printed("Groups", |binding| cells::subjects(binding, "Group")).wide(),
    printed("ServiceAccounts", |binding| cells::subjects(binding, "ServiceAccount")).wide(),
];
const WEBHOOKS: &[CellColumn] = &[NAME, length("Webhooks", "webhooks"), AGE];
const STORAGE_CLASS: CellColumn = printed("StorageClass", cells::storage_class);
const ATTRIBUTES_CLASS: CellColumn = text("VolumeAttributesClass", "spec.volumeAttributesClassName").or("<unset>");
const VOLUME_MODE: CellColumn = text("VolumeMode", "spec.volumeMode").or("Filesystem").wide();

const KINDS: &[(&str, &[CellColumn])] = &[
    ("namespaces", &[NAME, text("Status", "status.phase").or_if_empty("Active"), AGE]),
    (
        "nodes",
        &[
            NAME,
            printed("Status", cells::node_status),
            printed("Roles", cells::node_roles),
            AGE,
            text("Version", "status.nodeInfo.kubeletVersion"),
            printed("Internal-IP", |node| cells::node_address(node, "InternalIP")).wide(),
            printed("External-IP", |node| cells::node_address(node, "ExternalIP")).wide(),
            text("OS-Image", "status.nodeInfo.osImage").or_if_empty(UNKNOWN).wide(),
            printed("Kernel-Version", cells::node_kernel).wide(),
            text("Container-Runtime", "status.nodeInfo.containerRuntimeVersion").or_if_empty(UNKNOWN).wide(),
        ],
    ),
    (
        "pods",
        &[
            NAME,
            printed("Ready", pod::ready),
            printed("Status", pod::status),
            timed("Restarts", pod::restarts),
            AGE,
            printed("IP", pod::address).wide(),
            text("Node", "spec.nodeName").or_if_empty("<none>").wide(),
            text("Nominated Node", "status.nominatedNodeName").or_if_empty("<none>").wide(),
            printed("Readiness Gates", pod::readiness_gates).wide(),
        ],
    ),
    ("configmaps", &[NAME, printed("Data", cells::config_map_data), AGE]),
    ("secrets", &[NAME, text("Type", "type").or_if_empty("Opaque"), length("Data", "data").as_text(), AGE]),
    (
        "services",
        &[
            NAME,
            text("Type", "spec.type").or_if_empty("ClusterIP"),
            printed("Cluster-IP", cells::cluster_address),
            printed("External-IP", cells::external_address),
            printed("Port(s)", cells::service_ports),
            AGE,
            printed("Selector", |service| cells::label_list(service, "spec.selector")).wide(),
        ],
    ),
    ("serviceaccounts", &[NAME, AGE]),
    ("endpoints", &[NAME, printed("Endpoints", cells::endpoint_addresses), AGE]),
    ("events", EVENT),
    ("events.events.k8s.io", EVENT),
    (
        "resourcequotas",
        &[
            NAME,
            printed("Request", |quota| cells::quota(quota, false)),
            printed("Limit", |quota| cells::quota(quota, true)),
            AGE,
        ],
    ),
    (
        "persistentvolumes",
        &[
            NAME,
            printed("Capacity", |volume| cells::quantity_at(volume, "spec.capacity.storage")),
            printed("Access Modes", |volume| cells::access_modes(volume, "spec.accessModes")),
            text("Reclaim Policy", "spec.persistentVolumeReclaimPolicy").or_if_empty("Retain"),
            printed("Status", cells::volume_phase),
            printed("Claim", cells::claim_of_volume),
            STORAGE_CLASS,
            ATTRIBUTES_CLASS,
            text("Reason", "status.reason"),
            AGE,
            VOLUME_MODE,
        ],
    ),
    (
        "persistentvolumeclaims",
        &[
            NAME,
            printed("Status", cells::volume_phase),
            text("Volume", "spec.volumeName"),
            printed("Capacity", |claim| cells::if_bound(claim, cells::quantity_at, "status.capacity.storage")),
            printed("Access Modes", |claim| cells::if_bound(claim, cells::access_modes, "status.accessModes")),
            STORAGE_CLASS,
            ATTRIBUTES_CLASS,
            AGE,
            VOLUME_MODE,
        ],
    ),
    ("replicasets.apps", REPLICA_SET),
    (
        "deployments.apps",
        &[
            NAME,
            printed("Ready", cells::ready_of_desired),
            integer("Up-to-date", "status.updatedReplicas").as_text(),
            integer("Available", "status.availableReplicas").as_text(),
            AGE,
            CONTAINERS,
            IMAGES,
            printed("Selector", cells::deployment_selector).wide(),
        ],
    ),
    ("statefulsets.apps", &[NAME, printed("Ready", cells::ready_of_desired), AGE, CONTAINERS, IMAGES]),
    (
        "daemonsets.apps",
        &[
            NAME,
            integer("Desired", "status.desiredNumberScheduled"),
            integer("Current", "status.currentNumberScheduled"),
            integer("Ready", "status.numberReady"),
            integer("Up-to-date", "status.updatedNumberScheduled"),
            integer("Available", "status.numberAvailable"),
            printed("Node Selector", |set| cells::label_list(set, "spec.template.spec.nodeSelector")),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
    ),
    (
        "jobs.batch",
        &[
            NAME,
            printed("Status", cells::job_status),
            printed("Completions", cells::completions),
            timed("Duration", cells::job_duration),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
    ),
    (
        "cronjobs.batch",
        &[
            NAME,
            text("Schedule", "spec.schedule"),
            text("Timezone", "spec.timeZone").or("<none>"),
            CellColumn { kind: "boolean", ..printed("Suspend", cells::suspended) },
            length("Active", "status.active"),
            timed("Last Schedule", cells::last_schedule),
            AGE,
            CONTAINERS,
            IMAGES,
            printed("Selector", |job| cells::selector(job, "spec.jobTemplate.spec.selector")).wide(),
        ],
    ),
    ("leases.coordination.k8s.io", &[NAME, text("Holder", "spec.holderIdentity"), AGE]),
    (
        "endpointslices.discovery.k8s.io",
        &[
            NAME,
            text("AddressType", "addressType"),
            printed("Ports", cells::slice_ports),
            printed("Endpoints", cells::slice_addresses),
            AGE,
        ],
    ),
    (
        "ingresses.networking.k8s.io",
        &[
            NAME,
            text("Class", "spec.ingressClassName").or("<none>"),
            printed("Hosts", cells::hosts),
            printed("Address", |ingress| cells::load_balancer(ingress).into()),
            printed("Ports", cells::ingress_ports),
            AGE,
        ],
    ),
    (
        "networkpolicies.networking.k8s.io",
        &[NAME, printed("Pod-Selector", |policy| cells::selector(policy, "spec.podSelector")), AGE],
    ),
    ("rolebindings.rbac.authorization.k8s.io", ROLE_BINDING),
    ("clusterrolebindings.rbac.authorization.k8s.io", ROLE_BINDING),
    (
        "poddisruptionbudgets.policy",
        &[
            NAME,
            printed("Min Available", |budget| cells::bound(budget, "spec.minAvailable")),
            printed("Max Unavailable", |budget| cells::bound(budget, "spec.maxUnavailable")),
            integer("Allowed Disruptions", "status.disruptionsAllowed"),
            AGE,
        ],
    ),
    (
        "horizontalpodautoscalers.autoscaling",
        &[
            NAME,
            printed("Reference", cells::scale_target),
            printed("Targets", metric::metrics),
            printed("MinPods", cells::least_pods),
            integer("MaxPods", "spec.maxReplicas").as_text(),
            integer("Replicas", "status.currentReplicas").as_text(),
            AGE,
        ],
    ),
    (
        "scales.autoscaling",
        &[
            text("Name", "metadata.name"),
            integer("Desired", "spec.replicas"),
            integer("Available", "status.replicas"),
            AGE,
        ],
    ),
    (
        "priorityclasses.scheduling.k8s.io",
        &[
            NAME,
            integer("Value", "value"),
            boolean("Global-Default", "globalDefault"),
            AGE,
            text("PreemptionPolicy", "preemptionPolicy").or("PreemptLowerPriority"),
        ],
    ),
    ("mutatingwebhookconfigurations.admissionregistration.k8s.io", WEBHOOKS),
    ("validatingwebhookconfigurations.admissionregistration.k8s.io", WEBHOOKS),
    (
        "customresourcedefinitions.apiextensions.k8s.io",
        &[
            NAME,
            text("Scope", "spec.scope"),
            printed("Versions", cells::versions),
            CREATED_AT,
            text("Group", "spec.group").wide(),
            text("Kind", "spec.names.kind").wide(),
            printed("ShortNames", |definition| definition.joined("spec.names.shortNames", ",").into()).wide(),
            CellColumn { kind: "boolean", ..printed("Established", cells::established) }.wide(),
        ],
    ),
];
