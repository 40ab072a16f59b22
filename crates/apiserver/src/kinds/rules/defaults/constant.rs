//! Defaults that depend on no other field.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::kinds::rules::json::JsonObject;

/// The members of a type that get a default, in JSON, for each type. The name of a type is its package after
/// `k8s.io/api/`, and its name.
const TABLE: &[(&str, &str)] = &[
    ("core/v1.Pod", r#"{"spec":{"enableServiceLinks":true}}"#),
    (
        "core/v1.PodSpec",
        r#"{"dnsPolicy":"ClusterFirst","restartPolicy":"Always","securityContext":{},"terminationGracePeriodSeconds":30,
            "schedulerName":"default-scheduler"}"#,
    ),
    ("core/v1.Container", CONTAINER),
    ("core/v1.EphemeralContainer", CONTAINER),
    ("core/v1.EphemeralContainerCommon", CONTAINER),
    ("core/v1.ContainerPort", r#"{"protocol":"TCP"}"#),
    ("core/v1.Probe", r#"{"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3}"#),
    ("core/v1.HTTPGetAction", r#"{"path":"/","scheme":"HTTP"}"#),
    ("core/v1.GRPCAction", r#"{"service":""}"#),
    ("core/v1.ObjectFieldSelector", r#"{"apiVersion":"v1"}"#),
    ("core/v1.FileKeySelector", r#"{"optional":false}"#),
    ("core/v1.HostPathVolumeSource", r#"{"type":""}"#),
    ("core/v1.SecretVolumeSource", FILES),
    ("core/v1.ConfigMapVolumeSource", FILES),
    ("core/v1.DownwardAPIVolumeSource", FILES),
    ("core/v1.ProjectedVolumeSource", FILES),
    ("core/v1.ServiceAccountTokenProjection", r#"{"expirationSeconds":3600}"#),
    ("core/v1.ISCSIVolumeSource", r#"{"iscsiInterface":"default"}"#),
    ("core/v1.ISCSIPersistentVolumeSource", r#"{"iscsiInterface":"default"}"#),
    ("core/v1.RBDVolumeSource", RBD),
    ("core/v1.RBDPersistentVolumeSource", RBD),
    (
        "core/v1.AzureDiskVolumeSource",
        r#"{"cachingMode":"ReadWrite","fsType":"ext4","readOnly":false,"kind":"Shared"}"#,
    ),
    ("core/v1.ScaleIOVolumeSource", r#"{"storageMode":"ThinProvisioned","fsType":"xfs"}"#),
    ("core/v1.ScaleIOPersistentVolumeSource", r#"{"storageMode":"ThinProvisioned","fsType":"xfs"}"#),
    (
        "core/v1.PersistentVolume",
        r#"{"status":{"phase":"Pending"},"spec":{"persistentVolumeReclaimPolicy":"Retain","volumeMode":"Filesystem"}}"#,
    ),
    ("core/v1.PersistentVolumeClaim", r#"{"status":{"phase":"Pending"}}"#),
    ("core/v1.PersistentVolumeClaimSpec", r#"{"volumeMode":"Filesystem"}"#),
    ("core/v1.Service", r#"{"spec":{"sessionAffinity":"None","type":"ClusterIP"}}"#),
    ("core/v1.ServicePort", r#"{"protocol":"TCP"}"#),
    ("core/v1.EndpointPort", r#"{"protocol":"TCP"}"#),
    ("core/v1.NamespaceStatus", r#"{"phase":"Active"}"#),
    ("core/v1.Secret", r#"{"type":"Opaque"}"#),
    ("discovery/v1.EndpointPort", r#"{"name":"","protocol":"TCP"}"#),
    ("networking/v1.NetworkPolicyPort", r#"{"protocol":"TCP"}"#),
    ("networking/v1.IngressClassParametersReference", r#"{"scope":"Cluster"}"#),
    ("apps/v1.ReplicaSet", r#"{"spec":{"replicas":1}}"#),
    (
        "apps/v1.Deployment",
        r#"{"spec":{"replicas":1,"strategy":{"type":"RollingUpdate"},"revisionHistoryLimit":10,
            "progressDeadlineSeconds":600}}"#,
    ),
    ("apps/v1.DaemonSet", r#"{"spec":{"updateStrategy":{"type":"RollingUpdate"},"revisionHistoryLimit":10}}"#),
    (
        "apps/v1.StatefulSet",
        r#"{"spec":{"podManagementPolicy":"OrderedReady","replicas":1,"revisionHistoryLimit":10}}"#,
    ),
    ("batch/v1.Job", r#"{"spec":{"completionMode":"NonIndexed","suspend":false,"manualSelector":false}}"#),
    (
        "batch/v1.CronJob",
        r#"{"spec":{"concurrencyPolicy":"Allow","suspend":false,"successfulJobsHistoryLimit":3,
            "failedJobsHistoryLimit":1}}"#,
    ),
    ("batch/v1.PodFailurePolicyOnPodConditionsPattern", r#"{"status":"True"}"#),
    (
        "autoscaling/v2.HorizontalPodAutoscaler",
        r#"{"spec":{"minReplicas":1,"metrics":[{"type":"Resource","resource":{"name":"cpu",
            "target":{"type":"Utilization","averageUtilization":80}}}]}}"#,
    ),
    ("storage/v1.StorageClass", r#"{"reclaimPolicy":"Delete","volumeBindingMode":"Immediate"}"#),
    (
        "storage/v1.CSIDriver",
        r#"{"spec":{"attachRequired":true,"podInfoOnMount":false,"storageCapacity":false,
            "fsGroupPolicy":"ReadWriteOnceWithFSType","volumeLifecycleModes":["Persistent"],"requiresRepublish":false,
            "seLinuxMount":false,"preventPodSchedulingIfMissing":false}}"#,
    ),
    ("rbac/v1.RoleBinding", BINDING),
    ("rbac/v1.ClusterRoleBinding", BINDING),
    ("scheduling/v1.PriorityClass", r#"{"preemptionPolicy":"PreemptLowerPriority"}"#),
    (
        "admissionregistration/v1.ValidatingWebhook",
        r#"{"failurePolicy":"Fail","matchPolicy":"Equivalent","namespaceSelector":{},"objectSelector":{},
            "timeoutSeconds":10}"#,
    ),
    (
        "admissionregistration/v1.MutatingWebhook",
        r#"{"failurePolicy":"Fail","matchPolicy":"Equivalent","namespaceSelector":{},"objectSelector":{},
            "timeoutSeconds":10,"reinvocationPolicy":"Never"}"#,
    ),
    ("admissionregistration/v1.RuleWithOperations", r#"{"scope":"*"}"#),
    ("admissionregistration/v1.NamedRuleWithOperations", r#"{"scope":"*"}"#),
    ("admissionregistration/v1.ValidatingAdmissionPolicySpec", r#"{"failurePolicy":"Fail"}"#),
    (
        "admissionregistration/v1.MatchResources",
        r#"{"matchPolicy":"Equivalent","namespaceSelector":{},"objectSelector":{}}"#,
    ),
    ("admissionregistration/v1.ServiceReference", r#"{"port":443}"#),
    ("apiextensions/v1.ServiceReference", r#"{"port":443}"#),
    ("apiregistration/v1.ServiceReference", r#"{"port":443}"#),
    ("apiextensions/v1.CustomResourceDefinitionSpec", r#"{"conversion":{"strategy":"None"}}"#),
];

const CONTAINER: &str = r#"{"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}"#;
/// Mode 0644.
const FILES: &str = r#"{"defaultMode":420}"#;
const RBD: &str = r#"{"pool":"rbd","user":"admin","keyring":"/etc/ceph/keyring"}"#;
const BINDING: &str = r#"{"roleRef":{"apiGroup":"rbac.authorization.k8s.io"}}"#;

static PARSED: LazyLock<HashMap<&'static str, JsonObject>> = LazyLock::new(|| {
    // A test finds a row that cannot be read.
    TABLE.iter().filter_map(|(name, json)| Some((*name, serde_json::from_str(json).ok()?))).collect()
});

/// Returns the defaults of a type.
pub(super) fn constant(type_name: &str) -> Option<&'static JsonObject> {
    PARSED.get(type_name)
}

#[test]
fn every_row_names_a_type_and_is_json() {
    for (name, json) in TABLE {
        assert!(crate::kinds::types::named(name).is_some(), "{name} is not a type");
        assert!(constant(name).is_some(), "{json}");
    }
}
