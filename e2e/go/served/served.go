// Package served lists the kinds that the embedded server serves, with their Go types.
package served

import (
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	authentication "k8s.io/api/authentication/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// Kind is a kind that is read or written.
type Kind struct {
	schema.GroupVersionKind
	Of reflect.Type
}

// Kinds with their own path, by group and version.
var own = map[string]string{
	"/v1": "Namespace Node Pod ConfigMap Secret Service ServiceAccount Endpoints Event LimitRange ResourceQuota PersistentVolume " +
		"PersistentVolumeClaim PodTemplate ReplicationController",
	"apps/v1":                      "Deployment ReplicaSet StatefulSet DaemonSet ControllerRevision",
	"batch/v1":                     "Job CronJob",
	"coordination.k8s.io/v1":       "Lease",
	"discovery.k8s.io/v1":          "EndpointSlice",
	"networking.k8s.io/v1":         "Ingress IngressClass NetworkPolicy IPAddress ServiceCIDR",
	"rbac.authorization.k8s.io/v1": "Role RoleBinding ClusterRole ClusterRoleBinding",
	"storage.k8s.io/v1":            "StorageClass VolumeAttachment CSIDriver CSINode CSIStorageCapacity VolumeAttributesClass",
	"policy/v1":                    "PodDisruptionBudget",
	"autoscaling/v2":               "HorizontalPodAutoscaler",
	"autoscaling/v1":               "HorizontalPodAutoscaler",
	"events.k8s.io/v1":             "Event",
	"scheduling.k8s.io/v1":         "PriorityClass",
	"admissionregistration.k8s.io/v1": "MutatingWebhookConfiguration ValidatingWebhookConfiguration ValidatingAdmissionPolicy " +
		"ValidatingAdmissionPolicyBinding",
	"certificates.k8s.io/v1":          "CertificateSigningRequest",
	"flowcontrol.apiserver.k8s.io/v1": "FlowSchema PriorityLevelConfiguration",
	"node.k8s.io/v1":                  "RuntimeClass",
	"resource.k8s.io/v1":              "ResourceClaim ResourceClaimTemplate DeviceClass ResourceSlice",
	"authorization.k8s.io/v1":         "SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview LocalSubjectAccessReview",
	"authentication.k8s.io/v1":        "TokenReview SelfSubjectReview",
}

// Other kinds that are read or written, by group and version.
var others = map[string][]any{
	"apiextensions.k8s.io/v1":   {apiextensions.CustomResourceDefinition{}},
	"apiregistration.k8s.io/v1": {apiregistration.APIService{}},
	"autoscaling/v1":            {autoscaling.Scale{}},
	"authentication.k8s.io/v1":  {authentication.TokenRequest{}},
	"meta.k8s.io/v1":            {meta.DeleteOptions{}, meta.PartialObjectMetadata{}},
	"policy/v1":                 {policy.Eviction{}},
	"v1":                        {core.Binding{}, meta.ListMeta{}, meta.Status{}},
}

// Kinds returns all kinds, those with their own path first.
func Kinds() iter.Seq[Kind] {
	return func(yield func(Kind) bool) {
		for _, in := range slices.Sorted(maps.Keys(own)) {
			group, version, _ := strings.Cut(in, "/")
			for name := range strings.FieldsSeq(own[in]) {
				kind := schema.GroupVersionKind{Group: group, Version: version, Kind: name}
				if !yield(Kind{kind, scheme.Scheme.AllKnownTypes()[kind]}) {
					return
				}
			}
		}
		for _, in := range slices.Sorted(maps.Keys(others)) {
			for _, other := range others[in] {
				of := reflect.TypeOf(other)
				if !yield(Kind{schema.FromAPIVersionAndKind(in, of.Name()), of}) {
					return
				}
			}
		}
	}
}
