//! The defaults of built-in types.
//!
//! Each function sets the defaults of one type. The caller walks an object along its types, a parent before its
//! members: a parent may create a member that has its own defaults. A member that Go embeds by value is visited even if
//! it is absent from the JSON, and is kept if it gets a value.

mod claim;
mod kind;
mod pod;
mod service;
mod volume;
mod workload;

pub(crate) use kind::merge_string_data;

use super::json::Object;

/// Sets the defaults of an object of one type.
pub(crate) type Default = fn(&mut Object);

/// Returns the defaults of a type, such as `core/v1.PodSpec`: the package after `k8s.io/api/`, and the name.
///
/// Types of the API machinery are `meta/v1.…`, those of CRDs `apiextensions/v1.…`. If Go embeds a type, the outer type
/// has the defaults of both: `core/v1.Volume`, `core/v1.EphemeralContainer` and
/// `admissionregistration/v1.RuleWithOperations`.
#[rustfmt::skip]
pub(crate) fn default_of(type_name: &str) -> Option<Default> {
    Some(match type_name {
        "core/v1.ResourceList" => pod::resource_list,
        "core/v1.Pod" => pod::pod,
        "core/v1.PodSpec" => pod::pod_spec,
        "core/v1.PodStatus" => pod::pod_status,
        "core/v1.Container" | "core/v1.EphemeralContainer" | "core/v1.EphemeralContainerCommon" => pod::container,
        "core/v1.ContainerPort" => pod::container_port,
        "core/v1.Probe" => pod::probe,
        "core/v1.HTTPGetAction" => pod::http_get_action,
        "core/v1.GRPCAction" => pod::grpc_action,
        "core/v1.ObjectFieldSelector" => pod::object_field_selector,
        "core/v1.FileKeySelector" => pod::file_key_selector,
        "core/v1.Volume" => volume::volume,
        "core/v1.HostPathVolumeSource" => volume::host_path,
        "core/v1.SecretVolumeSource" | "core/v1.ConfigMapVolumeSource" | "core/v1.DownwardAPIVolumeSource"
        | "core/v1.ProjectedVolumeSource" => volume::files,
        "core/v1.ServiceAccountTokenProjection" => volume::service_account_token,
        "core/v1.ISCSIVolumeSource" | "core/v1.ISCSIPersistentVolumeSource" => volume::iscsi,
        "core/v1.RBDVolumeSource" | "core/v1.RBDPersistentVolumeSource" => volume::rbd,
        "core/v1.AzureDiskVolumeSource" => volume::azure_disk,
        "core/v1.ScaleIOVolumeSource" | "core/v1.ScaleIOPersistentVolumeSource" => volume::scale_io,
        "core/v1.PersistentVolume" => claim::persistent_volume,
        "core/v1.PersistentVolumeClaim" => claim::persistent_volume_claim,
        "core/v1.PersistentVolumeClaimSpec" => claim::persistent_volume_claim_spec,
        "core/v1.Service" => service::service,
        "core/v1.Endpoints" => service::endpoints,
        "discovery/v1.EndpointPort" => service::endpoint_port,
        "networking/v1.NetworkPolicy" => service::network_policy,
        "networking/v1.NetworkPolicyPort" => service::network_policy_port,
        "networking/v1.IngressClass" => service::ingress_class,
        "core/v1.ReplicationController" => workload::replication_controller,
        "core/v1.ReplicationControllerSpec" => workload::one_replica,
        "apps/v1.ReplicaSet" => workload::replica_set,
        "apps/v1.Deployment" => workload::deployment,
        "apps/v1.DaemonSet" => workload::daemon_set,
        "apps/v1.StatefulSet" => workload::stateful_set,
        "batch/v1.Job" => workload::job,
        "batch/v1.CronJob" => workload::cron_job,
        "batch/v1.PodFailurePolicyOnPodConditionsPattern" => workload::pod_condition_pattern,
        "autoscaling/v1.HorizontalPodAutoscaler" => workload::autoscaler_v1,
        "autoscaling/v2.HorizontalPodAutoscaler" => workload::autoscaler_v2,
        "core/v1.Namespace" => kind::namespace,
        "core/v1.NamespaceStatus" => kind::namespace_status,
        "core/v1.NodeStatus" => kind::node_status,
        "core/v1.Secret" => kind::secret,
        "core/v1.LimitRangeItem" => kind::limit_range_item,
        "storage/v1.StorageClass" => kind::storage_class,
        "storage/v1.CSIDriver" => kind::csi_driver,
        "rbac/v1.RoleBinding" | "rbac/v1.ClusterRoleBinding" => kind::binding,
        "rbac/v1.Subject" => kind::subject,
        "scheduling/v1.PriorityClass" => kind::priority_class,
        "admissionregistration/v1.ValidatingWebhook" => kind::validating_webhook,
        "admissionregistration/v1.MutatingWebhook" => kind::mutating_webhook,
        "admissionregistration/v1.Rule" | "admissionregistration/v1.RuleWithOperations" => kind::rule,
        "admissionregistration/v1.NamedRuleWithOperations" => kind::rule,
        "admissionregistration/v1.ValidatingAdmissionPolicySpec" => kind::admission_policy,
        "admissionregistration/v1.MatchResources" => kind::match_resources,
        "apiregistration/v1.ServiceReference" => kind::service_reference,
        "flowcontrol/v1.FlowSchemaSpec" => kind::flow_schema,
        "flowcontrol/v1.ExemptPriorityLevelConfiguration" => kind::exempt_priority_level,
        "flowcontrol/v1.LimitedPriorityLevelConfiguration" => kind::limited_priority_level,
        "flowcontrol/v1.QueuingConfiguration" => kind::queuing,
        "resource/v1.DeviceToleration" => kind::device_toleration,
        "resource/v1.ExactDeviceRequest" | "resource/v1.DeviceSubRequest" => kind::device_request,
        "admissionregistration/v1.ServiceReference" | "apiextensions/v1.ServiceReference" => kind::service_reference,
        "apiextensions/v1.CustomResourceDefinition" => kind::custom_resource_definition,
        _ => return None,
    })
}
