//! The table of built-in kinds. A new kind needs only a new row.

use super::field::{SelectableField, UnknownField};
use super::resource::{KindRules, Resource, Scale, StoredView, group_version, storage_id};
use super::types;

/// Members with other names: the stored one, and the shown one.
type Renamed = &'static [(&'static str, &'static str)];

/// One built-in kind.
struct KindRow {
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    kind: &'static str,
    /// Short names, separated by blanks.
    short: &'static str,
    /// Marks, separated by blanks; see [`KindRow::resource`] for what each means.
    marks: &'static str,
    /// Selectable fields, separated by blanks, in the notation of [`SelectableField::parse`].
    fields: &'static str,
    /// The stored `apiVersion` and resource of a view, and how they differ.
    shows: Option<(&'static str, &'static str, Renamed)>,
}

const fn row(
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    kind: &'static str,
    short: &'static str,
    marks: &'static str,
) -> KindRow {
    KindRow { group, version, plural, kind, short, marks, fields: "", shows: None }
}

const fn selectable(row: KindRow, fields: &'static str) -> KindRow {
    KindRow { fields, ..row }
}

const fn showing(row: KindRow, api_version: &'static str, stored: &'static str, renamed: Renamed) -> KindRow {
    KindRow { shows: Some((api_version, stored, renamed)), ..row }
}

const POD_FIELDS: &str = "spec.nodeName spec.host=spec.nodeName spec.restartPolicy:Always spec.schedulerName \
    spec.serviceAccountName spec.hostNetwork:false status.phase status.podIP status.podIPs=none status.nominatedNodeName";
const CORE_EVENT_FIELDS: &str = "involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid \
    involvedObject.apiVersion involvedObject.resourceVersion involvedObject.fieldPath reason \
    reportingComponent type source=source.component|reportingComponent";
// The same fields under other labels. The last one has no label for selectors.
const EVENT_FIELDS: &str = "regarding.kind=involvedObject.kind regarding.namespace=involvedObject.namespace \
    regarding.name=involvedObject.name regarding.uid=involvedObject.uid regarding.apiVersion=involvedObject.apiVersion \
    regarding.resourceVersion=involvedObject.resourceVersion regarding.fieldPath=involvedObject.fieldPath reason \
    reportingController=reportingComponent type !=source.component|reportingComponent";
/// The names of core event members in the other group.
const EVENT_NAMES: Renamed = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

#[rustfmt::skip]
const ROWS: &[KindRow] = &[
    selectable(row("", "v1", "namespaces", "Namespace", "ns", "cluster status returned labels"), "status.phase"),
    selectable(row("", "v1", "nodes", "Node", "no", "cluster status labels"), "spec.unschedulable:false"),
    selectable(row("", "v1", "pods", "Pod", "po", "status generation returned labels all containers"), POD_FIELDS),
    row("", "v1", "configmaps", "ConfigMap", "cm", ""),
    selectable(row("", "v1", "secrets", "Secret", "", "labels"), "type"),
    selectable(row("", "v1", "services", "Service", "svc", "status returned putcreate labels all"), "spec.clusterIP spec.type"),
    row("", "v1", "serviceaccounts", "ServiceAccount", "sa", "returned"),
    row("", "v1", "endpoints", "Endpoints", "ep", "putcreate"),
    selectable(row("", "v1", "events", "Event", "ev", "putcreate labels uncached"), CORE_EVENT_FIELDS),
    row("", "v1", "limitranges", "LimitRange", "limits", "putcreate"),
    row("", "v1", "resourcequotas", "ResourceQuota", "quota", "status returned"),
    row("", "v1", "persistentvolumes", "PersistentVolume", "pv", "cluster status returned"),
    row("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", "pvc", "status returned"),
    row("apps", "v1", "deployments", "Deployment", "deploy", "status scale generation all"),
    row("apps", "v1", "replicasets", "ReplicaSet", "rs", "status scale generation all"),
    row("apps", "v1", "statefulsets", "StatefulSet", "sts", "status scale generation all"),
    row("apps", "v1", "daemonsets", "DaemonSet", "ds", "status generation all"),
    row("apps", "v1", "controllerrevisions", "ControllerRevision", "", ""),
    selectable(row("batch", "v1", "jobs", "Job", "", "status generation forkind all"), "status.successful=status.succeeded:0"),
    row("batch", "v1", "cronjobs", "CronJob", "cj", "status generation all"),
    row("coordination.k8s.io", "v1", "leases", "Lease", "", "putcreate versioned"),
    row("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", "", "generation"),
    row("networking.k8s.io", "v1", "ingresses", "Ingress", "ing", "status generation"),
    row("networking.k8s.io", "v1", "ingressclasses", "IngressClass", "", "cluster generation"),
    row("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", "netpol", "generation"),
    row("rbac.authorization.k8s.io", "v1", "roles", "Role", "", "putcreate"),
    row("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", "", "putcreate"),
    row("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", "", "cluster putcreate"),
    row("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", "", "cluster putcreate"),
    row("storage.k8s.io", "v1", "storageclasses", "StorageClass", "sc", "cluster returned"),
    row("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", "", "cluster status returned"),
    row("storage.k8s.io", "v1", "csidrivers", "CSIDriver", "", "cluster returned"),
    row("storage.k8s.io", "v1", "csinodes", "CSINode", "", "cluster returned"),
    row("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", "pdb", "status generation versioned"),
    row("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa", "status generation all"),
    showing(selectable(row("events.k8s.io", "v1", "events", "Event", "ev", "putcreate labels uncached"), EVENT_FIELDS), "v1", "events", EVENT_NAMES),
    row("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", "pc", "cluster generation"),
    row("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", "", "cluster generation versioned extensions"),
    row("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", "", "cluster generation versioned extensions"),
    row("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", "", "cluster status generation versioned extensions"),
    row("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", "", "cluster generation versioned extensions"),
    row("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", "", "cluster review"),
    row("authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", "", "cluster review"),
    row("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", "", "cluster review"),
    row("authorization.k8s.io", "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview", "", "review"),
    row("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", "", "cluster review"),
    row("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", "", "cluster review"),
    row("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", "crd crds", "cluster status generation versioned extensions"),
    row("apiregistration.k8s.io", "v1", "apiservices", "APIService", "", "cluster status versioned extensions"),
    selectable(row("certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", "csr", "cluster status"), "spec.signerName"),
    row("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", "", "cluster"),
];

impl KindRow {
    fn resource(&self) -> Resource {
        let marked = |mark: &str| self.marks.split_whitespace().any(|candidate| candidate == mark);
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        Resource {
            group: self.group.into(),
            version: self.version.into(),
            plural: self.plural.into(),
            singular: self.kind.to_lowercase(),
            kind: self.kind.into(),
            list_kind: format!("{}List", self.kind),
            namespaced: !marked("cluster"),
            served: true,
            short_names: words(self.short),
            categories: [("all", "all"), ("extensions", "api-extensions")]
                .into_iter()
                .filter(|(mark, _)| marked(mark))
                .map(|(_, category)| category.to_owned())
                .collect(),
            id: storage_id(self.group, self.plural),
            storage: self.shows.map_or_else(|| storage_id(self.group, self.plural), |(_, stored, _)| stored.into()),
            of: types::kind(&group_version(self.group, self.version), self.kind),
            schema: None,
            rules: KindRules {
                conversion: None,
                custom: false,
                status: marked("status"),
                review: marked("review"),
                scale: marked("scale").then(|| Scale {
                    spec_replicas: "/spec/replicas".into(),
                    status_replicas: "/status/replicas".into(),
                    selector: Some("/spec/selector".into()),
                }),
                generation: marked("generation"),
                version_required: marked("versioned"),
                create_on_update: marked("putcreate"),
                returns_deleted: marked("returned"),
                uncached: marked("uncached"),
                fields: self.fields.split_whitespace().map(SelectableField::parse).collect(),
                unknown_field: match () {
                    () if marked("forkind") => UnknownField::ForKind,
                    () if marked("labels") => UnknownField::Label,
                    () => UnknownField::Known,
                },
                view: self.shows.map(|(api_version, _, renamed)| StoredView {
                    api_version: api_version.into(),
                    renamed,
                    stored_schema: None,
                }),
                published: None,
                columns: None,
                definition: 0,
                empty: if marked("containers") { r#","spec":{"containers":null},"status":{}"# } else { "" },
            },
        }
    }
}

/// Returns every built-in kind, in the order of discovery.
pub(super) fn built_in() -> impl Iterator<Item = Resource> {
    ROWS.iter().map(KindRow::resource)
}
