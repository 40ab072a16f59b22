package tables

// kind is a kind whose objects are printed.
type kind struct {
	id string
	// Generates a random object.
	make func() object
	// The number of cases, relative to a simple kind.
	weight int
}

const (
	definitions = "customresourcedefinitions.apiextensions.k8s.io"
	apiServices = "apiservices.apiregistration.k8s.io"
)

var kinds = []kind{
	{"pods", pod, 6}, {"namespaces", namespace, 1}, {"nodes", node, 2}, {"configmaps", configMap, 1}, {"secrets", secret, 1},
	{"services", service, 3}, {"serviceaccounts", plain("v1", "ServiceAccount", true), 1}, {"endpoints", endpoints, 2},
	{"events", event, 2}, {"events.events.k8s.io", newEvent, 2}, {"limitranges", plain("v1", "LimitRange", true), 1},
	{"resourcequotas", resourceQuota, 2}, {"persistentvolumes", persistentVolume, 2}, {"persistentvolumeclaims", persistentVolumeClaim, 2},
	{"podtemplates", podTemplateObject, 1}, {"replicationcontrollers", replicationController, 1},
	{"deployments.apps", replicated("Deployment"), 2}, {"replicasets.apps", replicated("ReplicaSet"), 2},
	{"statefulsets.apps", replicated("StatefulSet"), 2}, {"daemonsets.apps", replicated("DaemonSet"), 2},
	{"controllerrevisions.apps", controllerRevision, 1}, {"jobs.batch", job, 3}, {"cronjobs.batch", cronJob, 2},
	{"leases.coordination.k8s.io", lease, 1}, {"endpointslices.discovery.k8s.io", endpointSlice, 2},
	{"ingresses.networking.k8s.io", ingress, 2}, {"ingressclasses.networking.k8s.io", ingressClass, 1},
	{"networkpolicies.networking.k8s.io", networkPolicy, 2}, {"ipaddresses.networking.k8s.io", ipAddress, 1},
	{"servicecidrs.networking.k8s.io", serviceCIDR, 1},
	{"roles.rbac.authorization.k8s.io", plain("rbac.authorization.k8s.io/v1", "Role", true), 1},
	{"rolebindings.rbac.authorization.k8s.io", bound("RoleBinding", true), 2},
	{"clusterroles.rbac.authorization.k8s.io", plain("rbac.authorization.k8s.io/v1", "ClusterRole", false), 1},
	{"clusterrolebindings.rbac.authorization.k8s.io", bound("ClusterRoleBinding", false), 2},
	{"storageclasses.storage.k8s.io", storageClass, 1}, {"volumeattachments.storage.k8s.io", volumeAttachment, 1},
	{"csidrivers.storage.k8s.io", csiDriver, 2}, {"csinodes.storage.k8s.io", csiNode, 1},
	{"csistoragecapacities.storage.k8s.io", storageCapacity, 1}, {"volumeattributesclasses.storage.k8s.io", volumeAttributesClass, 1},
	{"poddisruptionbudgets.policy", podDisruptionBudget, 1}, {"horizontalpodautoscalers.autoscaling", hpaV2, 4},
	{"horizontalpodautoscalers.autoscaling", hpaV1, 2}, {"scales.autoscaling", scale, 1},
	{"priorityclasses.scheduling.k8s.io", priorityClass, 1},
	{"mutatingwebhookconfigurations.admissionregistration.k8s.io", hooked("MutatingWebhookConfiguration"), 1},
	{"validatingwebhookconfigurations.admissionregistration.k8s.io", hooked("ValidatingWebhookConfiguration"), 1},
	{definitions, crd, 2},
	{"validatingadmissionpolicies.admissionregistration.k8s.io", admissionPolicy, 1},
	{"validatingadmissionpolicybindings.admissionregistration.k8s.io", admissionPolicyBinding, 1}, {apiServices, apiService, 2},
	{"certificatesigningrequests.certificates.k8s.io", signingRequest, 2},
	{"flowschemas.flowcontrol.apiserver.k8s.io", flowSchema, 1},
	{"prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", priorityLevel, 1}, {"runtimeclasses.node.k8s.io", runtimeClass, 1},
	{"deviceclasses.resource.k8s.io", plain("resource.k8s.io/v1", "DeviceClass", false), 1},
	{"resourceclaims.resource.k8s.io", resourceClaim, 1},
	{"resourceclaimtemplates.resource.k8s.io", plain("resource.k8s.io/v1", "ResourceClaimTemplate", true), 1},
	{"resourceslices.resource.k8s.io", resourceSlice, 1},
}

// Kinds without a special printer.
var unprinted = map[string]bool{
	"limitranges": true, "roles.rbac.authorization.k8s.io": true, "clusterroles.rbac.authorization.k8s.io": true,
	"csistoragecapacities.storage.k8s.io": true,
}

// Kinds with quantities that a default rounds up, which the JSON of the object does not show.
var rounded = map[string]bool{"resourcequotas": true, "persistentvolumes": true, "persistentvolumeclaims": true}

func plain(apiVersion, kind string, namespaced bool) func() object {
	return func() object { return base(apiVersion, kind, namespaced) }
}

func replicated(kind string) func() object { return func() object { return replicas(kind) } }

func bound(kind string, namespaced bool) func() object {
	return func() object { return binding(kind, namespaced) }
}

func hooked(kind string) func() object { return func() object { return webhooks(kind) } }

func storageCapacity() object {
	made := base("storage.k8s.io/v1", "CSIStorageCapacity", true)
	made["storageClassName"] = word()
	return made
}
