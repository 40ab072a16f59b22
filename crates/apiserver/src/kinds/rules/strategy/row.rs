//! One row for each kind: which fields a write resets, keeps and counts.

use serde_json::Value;

use super::{RuleContext, certificate, claim, pod, service, special};

/// How a main write treats the status.
pub(super) enum StatusRule {
    /// There is no status, or it is written like any other member.
    None,
    /// A create sets this JSON value, and updates keep the status.
    Dropped(&'static str),
    /// A create may set the status, and updates keep it.
    Kept,
}

/// Which changes increment `metadata.generation`. Paths are separated by blanks.
pub(super) enum Generation {
    /// The generation is the one in the create request.
    Free,
    /// The generation is always one.
    Fixed,
    /// The generation starts at one. A change at one of these paths increments it.
    Counted(&'static str),
    /// Like `Counted`, but an empty list differs from an absent one.
    CountedExactly(&'static str),
    /// Like `Counted`, for any change of the object or of its labels.
    CountedWhole,
    /// The generation starts at the requested value. A change at one of these paths increments it.
    Raised(&'static str),
}

/// The write strategy of one kind.
pub(super) struct KindRow {
    pub(super) id: &'static str,
    pub(super) status: StatusRule,
    pub(super) generation: Generation,
    /// The paths that a status write keeps, separated by blanks.
    pub(super) kept_by_status: &'static str,
    /// The paths that a write of the status does not own.
    pub(super) reset_by_status: &'static [&'static str],
    /// Normalization on every write.
    pub(super) settle: fn(&mut Value),
    /// Further rules for main writes.
    pub(super) prepare: fn(&mut Value, &RuleContext<'_>),
    /// Further rules for status writes.
    pub(super) prepare_status: fn(&mut Value, &RuleContext<'_>),
}

fn as_it_is(_: &mut Value) {}

fn nothing_else(_: &mut Value, _: &RuleContext<'_>) {}

/// Returns the row of a kind without a status subresource.
const fn plain(id: &'static str, generation: Generation) -> KindRow {
    KindRow {
        id,
        status: StatusRule::None,
        generation,
        kept_by_status: "",
        reset_by_status: &[],
        settle: as_it_is,
        prepare: nothing_else,
        prepare_status: nothing_else,
    }
}

/// Returns the row of a kind with a status subresource.
const fn split(id: &'static str, empty: &'static str, generation: Generation) -> KindRow {
    let row = plain(id, generation);
    KindRow { status: StatusRule::Dropped(empty), kept_by_status: "spec", reset_by_status: &["spec"], ..row }
}

/// Returns the row of a kind with a status subresource whose writes change no metadata.
const fn apart(id: &'static str, empty: &'static str) -> KindRow {
    let row = split(id, empty, Generation::Free);
    KindRow { kept_by_status: "spec metadata", reset_by_status: &["metadata", "spec"], ..row }
}

impl KindRow {
    const fn prepared(self, prepare: fn(&mut Value, &RuleContext<'_>)) -> Self {
        Self { prepare, ..self }
    }

    const fn counting(self, generation: Generation) -> Self {
        Self { generation, ..self }
    }

    const fn settled(self, settle: fn(&mut Value)) -> Self {
        Self { settle, ..self }
    }

    const fn with_status(self, prepare_status: fn(&mut Value, &RuleContext<'_>)) -> Self {
        Self { prepare_status, ..self }
    }

    /// Sets the paths that status writes keep.
    const fn keeping(self, kept_by_status: &'static str, reset_by_status: &'static [&'static str]) -> Self {
        Self { kept_by_status, reset_by_status, ..self }
    }

    /// Lets a create set the status.
    const fn bringing_status(self) -> Self {
        Self { status: StatusRule::Kept, ..self }
    }
}

use Generation::{Counted, CountedExactly, CountedWhole, Fixed, Free, Raised};

const BUDGET: &str = r#"{"disruptionsAllowed":0,"currentHealthy":0,"desiredHealthy":0,"expectedPods":0}"#;
const DAEMONS: &str =
    r#"{"currentNumberScheduled":0,"numberMisscheduled":0,"desiredNumberScheduled":0,"numberReady":0}"#;
const DEFINITION: &str = r#"{"acceptedNames":{"plural":"","kind":""}}"#;
const SPEC: Generation = Counted("spec");

const POD_META: &str = "spec metadata.deletionTimestamp metadata.ownerReferences";
const POD_META_FIELDS: &[&str] = &["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"];

const SERVICE_META: &str = "spec metadata.labels metadata.annotations metadata.finalizers metadata.ownerReferences";
/// All metadata but the field managers.
const FLOW_META: &str = "spec metadata.name metadata.generateName metadata.namespace metadata.selfLink metadata.uid \
    metadata.resourceVersion metadata.creationTimestamp metadata.deletionTimestamp metadata.deletionGracePeriodSeconds \
    metadata.labels metadata.annotations metadata.finalizers metadata.ownerReferences";

#[rustfmt::skip]
pub(super) const ROWS: &[KindRow] = &[
    split("namespaces", r#"{"phase":"Active"}"#, Free).settled(special::namespace_label).prepared(special::namespace),
    split("nodes", "", Free).bringing_status().settled(special::node_addresses),
    split("pods", r#"{"phase":"Pending"}"#, SPEC).keeping(POD_META, POD_META_FIELDS)
        .prepared(pod::prepare).with_status(pod::prepare_status),
    plain("configmaps", Free),
    plain("secrets", Free).settled(special::string_data).prepared(special::secret),
    split("services", r#"{"loadBalancer":{}}"#, Free).settled(service::settle).prepared(service::prepare),
    plain("serviceaccounts", Free).prepared(special::service_account),
    plain("endpoints", Free),
    plain("events", Free),
    plain("events.events.k8s.io", Free),
    plain("limitranges", Free).prepared(special::limit_range),
    split("resourcequotas", "{}", Free),
    split("persistentvolumes", r#"{"phase":"Pending"}"#, Free)
        .prepared(claim::volume).with_status(claim::volume_status),
    split("persistentvolumeclaims", r#"{"phase":"Pending"}"#, Free)
        .prepared(claim::claim),
    plain("podtemplates", Counted("template")),
    split("replicationcontrollers", r#"{"replicas":0}"#, SPEC),
    split("deployments.apps", "{}", Counted("spec metadata.annotations"))
        .keeping("spec metadata.labels", &["spec", "metadata.labels"])
        .settled(special::deployment_update),
    split("replicasets.apps", r#"{"replicas":0}"#, SPEC),
    split("statefulsets.apps", r#"{"replicas":0,"availableReplicas":0}"#, SPEC)
        .settled(special::claim_templates),
    split("daemonsets.apps", DAEMONS, SPEC).settled(special::daemon_update)
        .prepared(special::daemon_set).with_status(special::daemon_set_status),
    plain("controllerrevisions.apps", Free),
    split("jobs.batch", "{}", SPEC).prepared(special::job),
    split("cronjobs.batch", "{}", SPEC),
    plain("leases.coordination.k8s.io", Free),
    plain("endpointslices.discovery.k8s.io", CountedWhole).prepared(special::endpoint_slice),
    split("ingresses.networking.k8s.io", r#"{"loadBalancer":{}}"#, SPEC),
    plain("ingressclasses.networking.k8s.io", SPEC),
    plain("networkpolicies.networking.k8s.io", CountedExactly("spec")),
    plain("ipaddresses.networking.k8s.io", Free),
    apart("servicecidrs.networking.k8s.io", "{}"),
    plain("roles.rbac.authorization.k8s.io", Free),
    plain("rolebindings.rbac.authorization.k8s.io", Free),
    plain("clusterroles.rbac.authorization.k8s.io", Free),
    plain("clusterrolebindings.rbac.authorization.k8s.io", Free),
    plain("storageclasses.storage.k8s.io", Free),
    apart("volumeattachments.storage.k8s.io", r#"{"attached":false}"#),
    plain("csidrivers.storage.k8s.io", Raised("spec")),
    apart("csinodes.storage.k8s.io", "{}"),
    plain("csistoragecapacities.storage.k8s.io", Free),
    plain("volumeattributesclasses.storage.k8s.io", Free),
    split("poddisruptionbudgets.policy", BUDGET, SPEC).prepared(special::disruption_budget),
    split("horizontalpodautoscalers.autoscaling", r#"{"desiredReplicas":0}"#, SPEC),
    plain("priorityclasses.scheduling.k8s.io", Fixed),
    plain("mutatingwebhookconfigurations.admissionregistration.k8s.io", CountedExactly("webhooks")),
    plain("validatingwebhookconfigurations.admissionregistration.k8s.io", CountedExactly("webhooks")),
    apart("validatingadmissionpolicies.admissionregistration.k8s.io", "{}").counting(SPEC),
    plain("validatingadmissionpolicybindings.admissionregistration.k8s.io", SPEC),
    apart("apiservices.apiregistration.k8s.io", "{}").keeping(SERVICE_META, &["metadata", "spec"]).prepared(special::api_service),
    split(certificate::ID, "{}", Free)
        .keeping("spec", &["spec", "status.conditions"])
        .prepared(certificate::prepare).with_status(certificate::prepare_status),
    apart("flowschemas.flowcontrol.apiserver.k8s.io", "{}").counting(SPEC).keeping(FLOW_META, &["metadata", "spec"]),
    apart("prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", "{}").counting(SPEC)
        .keeping(FLOW_META, &["metadata", "spec"]),
    plain("runtimeclasses.node.k8s.io", Free),
    plain("deviceclasses.resource.k8s.io", SPEC),
    apart("resourceclaims.resource.k8s.io", "{}"),
    plain("resourceclaimtemplates.resource.k8s.io", Free),
    plain("resourceslices.resource.k8s.io", SPEC),
    split("customresourcedefinitions.apiextensions.k8s.io", DEFINITION, SPEC)
        .settled(special::conversion).prepared(special::definition),
];
