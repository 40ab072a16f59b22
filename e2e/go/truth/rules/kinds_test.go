// Package rules writes the results of kube-apiserver's defaults, strategies and validation for objects of every kind.
//
// `defaults` are random objects before and after defaulting; `strategies` are random objects before and after they are prepared for a
// create, an update or a status update, with their validation errors; `checks` are objects with one mistake each, from checks.txt;
// `reset` has the fields that a write of an object or of its status does not own.
package rules

import (
	"context"
	"encoding/json"
	"reflect"

	admission "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	flowcontrol "k8s.io/api/flowcontrol/v1"
	networking "k8s.io/api/networking/v1"
	node1 "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	resource "k8s.io/api/resource/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	aggregator "k8s.io/kube-aggregator/pkg/apis/apiregistration/install"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/registry/apiservice"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/apps/controllerrevision"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	signing "k8s.io/kubernetes/pkg/registry/certificates/certificates"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/endpoint"
	"k8s.io/kubernetes/pkg/registry/core/event"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/core/resourcequota"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/discovery/endpointslice"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/flowschema"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/prioritylevelconfiguration"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/ingressclass"
	"k8s.io/kubernetes/pkg/registry/networking/ipaddress"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/networking/servicecidr"
	"k8s.io/kubernetes/pkg/registry/node/runtimeclass"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"k8s.io/kubernetes/pkg/registry/resource/deviceclass"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaim"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaimtemplate"
	"k8s.io/kubernetes/pkg/registry/resource/resourceslice"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/csistoragecapacity"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattachment"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattributesclass"

	"kube-informer-e2e/truth"
)

// kind is a kind of kube-apiserver, with its functions.
type kind struct {
	// The id in the embedded server.
	id string
	schema.GroupVersion
	sample   runtime.Object
	strategy rest.RESTCreateUpdateStrategy
	// The strategy for status updates; nil if the kind has no status subresource.
	status rest.RESTUpdateStrategy
}

var extensions, aggregated = runtime.NewScheme(), runtime.NewScheme()

func init() {
	install.Install(extensions)
	aggregator.Install(aggregated)
}

func kinds() []kind {
	in := func(group, version string) schema.GroupVersion {
		return schema.GroupVersion{Group: group, Version: version}
	}
	core1, apps1, batch1, rbac1 := in("", "v1"), in("apps", "v1"), in("batch", "v1"), in("rbac.authorization.k8s.io", "v1")
	networking1, storage1, admission1 := in("networking.k8s.io", "v1"), in("storage.k8s.io", "v1"), in("admissionregistration.k8s.io", "v1")
	crd, crdStatus := customresourcedefinition.NewStrategy(extensions), customresourcedefinition.NewStatusStrategy(extensions)
	policies := validatingadmissionpolicy.NewStrategy(nil, nil)
	claims := resourceclaim.NewStrategy(nil, nil)
	flow1, devices1 := in("flowcontrol.apiserver.k8s.io", "v1"), in("resource.k8s.io", "v1")
	return []kind{
		{"namespaces", core1, &core.Namespace{}, namespace.Strategy, namespace.StatusStrategy},
		{"nodes", core1, &core.Node{}, node.Strategy, node.StatusStrategy},
		{"pods", core1, &core.Pod{}, pod.Strategy, pod.StatusStrategy},
		{"configmaps", core1, &core.ConfigMap{}, configmap.Strategy, nil},
		{"secrets", core1, &core.Secret{}, secret.Strategy, nil},
		{"services", core1, &core.Service{}, service.Strategy, service.StatusStrategy},
		{"serviceaccounts", core1, &core.ServiceAccount{}, serviceaccount.Strategy, nil},
		{"endpoints", core1, &core.Endpoints{}, endpoint.Strategy, nil},
		{"events", core1, &core.Event{}, event.Strategy, nil},
		{"limitranges", core1, &core.LimitRange{}, limitrange.Strategy, nil},
		{"resourcequotas", core1, &core.ResourceQuota{}, resourcequota.Strategy, resourcequota.StatusStrategy},
		{"persistentvolumes", core1, &core.PersistentVolume{}, persistentvolume.Strategy, persistentvolume.StatusStrategy},
		{"persistentvolumeclaims", core1, &core.PersistentVolumeClaim{}, persistentvolumeclaim.Strategy, persistentvolumeclaim.StatusStrategy},
		{"podtemplates", core1, &core.PodTemplate{}, podtemplate.Strategy, nil},
		{"replicationcontrollers", core1, &core.ReplicationController{}, replicationcontroller.Strategy, replicationcontroller.StatusStrategy},
		{"deployments.apps", apps1, &apps.Deployment{}, deployment.Strategy, deployment.StatusStrategy},
		{"replicasets.apps", apps1, &apps.ReplicaSet{}, replicaset.Strategy, replicaset.StatusStrategy},
		{"statefulsets.apps", apps1, &apps.StatefulSet{}, statefulset.Strategy, statefulset.StatusStrategy},
		{"daemonsets.apps", apps1, &apps.DaemonSet{}, daemonset.Strategy, daemonset.StatusStrategy},
		{"controllerrevisions.apps", apps1, &apps.ControllerRevision{}, controllerrevision.Strategy, nil},
		{"jobs.batch", batch1, &batch.Job{}, job.Strategy, job.StatusStrategy},
		{"cronjobs.batch", batch1, &batch.CronJob{}, cronjob.Strategy, cronjob.StatusStrategy},
		{"leases.coordination.k8s.io", in("coordination.k8s.io", "v1"), &coordination.Lease{}, lease.Strategy, nil},
		{"endpointslices.discovery.k8s.io", in("discovery.k8s.io", "v1"), &discovery.EndpointSlice{}, endpointslice.Strategy, nil},
		{"ingresses.networking.k8s.io", networking1, &networking.Ingress{}, ingress.Strategy, ingress.StatusStrategy},
		{"ingressclasses.networking.k8s.io", networking1, &networking.IngressClass{}, ingressclass.Strategy, nil},
		{"networkpolicies.networking.k8s.io", networking1, &networking.NetworkPolicy{}, networkpolicy.Strategy, nil},
		{"ipaddresses.networking.k8s.io", networking1, &networking.IPAddress{}, ipaddress.Strategy, nil},
		{"servicecidrs.networking.k8s.io", networking1, &networking.ServiceCIDR{}, servicecidr.Strategy, servicecidr.StatusStrategy},
		{"roles.rbac.authorization.k8s.io", rbac1, &rbac.Role{}, role.Strategy, nil},
		{"rolebindings.rbac.authorization.k8s.io", rbac1, &rbac.RoleBinding{}, rolebinding.Strategy, nil},
		{"clusterroles.rbac.authorization.k8s.io", rbac1, &rbac.ClusterRole{}, clusterrole.Strategy, nil},
		{"clusterrolebindings.rbac.authorization.k8s.io", rbac1, &rbac.ClusterRoleBinding{}, clusterrolebinding.Strategy, nil},
		{"storageclasses.storage.k8s.io", storage1, &storage.StorageClass{}, storageclass.Strategy, nil},
		{"volumeattachments.storage.k8s.io", storage1, &storage.VolumeAttachment{}, volumeattachment.Strategy, volumeattachment.StatusStrategy},
		{"csidrivers.storage.k8s.io", storage1, &storage.CSIDriver{}, csidriver.Strategy, nil},
		{"csinodes.storage.k8s.io", storage1, &storage.CSINode{}, csinode.Strategy, csinode.StatusStrategy},
		{"csistoragecapacities.storage.k8s.io", storage1, &storage.CSIStorageCapacity{}, csistoragecapacity.Strategy, nil},
		{"volumeattributesclasses.storage.k8s.io", storage1, &storage.VolumeAttributesClass{}, volumeattributesclass.Strategy, nil},
		{"poddisruptionbudgets.policy", in("policy", "v1"), &policy.PodDisruptionBudget{}, poddisruptionbudget.Strategy,
			poddisruptionbudget.StatusStrategy},
		{"horizontalpodautoscalers.autoscaling", in("autoscaling", "v2"), &autoscaling.HorizontalPodAutoscaler{},
			horizontalpodautoscaler.Strategy, horizontalpodautoscaler.StatusStrategy},
		{"priorityclasses.scheduling.k8s.io", in("scheduling.k8s.io", "v1"), &scheduling.PriorityClass{}, priorityclass.Strategy, nil},
		{"mutatingwebhookconfigurations.admissionregistration.k8s.io", admission1, &admission.MutatingWebhookConfiguration{},
			mutatingwebhookconfiguration.Strategy, nil},
		{"validatingwebhookconfigurations.admissionregistration.k8s.io", admission1, &admission.ValidatingWebhookConfiguration{},
			validatingwebhookconfiguration.Strategy, nil},
		{"customresourcedefinitions.apiextensions.k8s.io", in("apiextensions.k8s.io", "v1"), &apiextensions.CustomResourceDefinition{}, crd,
			crdStatus},
		{"validatingadmissionpolicies.admissionregistration.k8s.io", admission1, &admission.ValidatingAdmissionPolicy{}, policies,
			validatingadmissionpolicy.NewStatusStrategy(policies)},
		{"validatingadmissionpolicybindings.admissionregistration.k8s.io", admission1, &admission.ValidatingAdmissionPolicyBinding{},
			validatingadmissionpolicybinding.NewStrategy(nil, nil, nil), nil},
		{"apiservices.apiregistration.k8s.io", in("apiregistration.k8s.io", "v1"), &apiregistration.APIService{},
			apiservice.NewStrategy(aggregated), apiservice.NewStatusStrategy(aggregated)},
		{"certificatesigningrequests.certificates.k8s.io", in("certificates.k8s.io", "v1"), &certificates.CertificateSigningRequest{},
			signing.Strategy, signing.StatusStrategy},
		{"flowschemas.flowcontrol.apiserver.k8s.io", flow1, &flowcontrol.FlowSchema{}, flowschema.Strategy, flowschema.StatusStrategy},
		{"prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", flow1, &flowcontrol.PriorityLevelConfiguration{},
			prioritylevelconfiguration.Strategy, prioritylevelconfiguration.StatusStrategy},
		{"runtimeclasses.node.k8s.io", in("node.k8s.io", "v1"), &node1.RuntimeClass{}, runtimeclass.Strategy, nil},
		{"deviceclasses.resource.k8s.io", devices1, &resource.DeviceClass{}, deviceclass.Strategy, nil},
		{"resourceclaims.resource.k8s.io", devices1, &resource.ResourceClaim{}, claims, resourceclaim.NewStatusStrategy(claims)},
		{"resourceclaimtemplates.resource.k8s.io", devices1, &resource.ResourceClaimTemplate{}, resourceclaimtemplate.NewStrategy(nil), nil},
		{"resourceslices.resource.k8s.io", devices1, &resource.ResourceSlice{}, resourceslice.Strategy, nil},
	}
}

// older returns a version of a kind with different defaults.
func older() kind {
	return kind{GroupVersion: schema.GroupVersion{Group: "autoscaling", Version: "v1"}, sample: &autoscalingv1.HorizontalPodAutoscaler{}}
}

// line starts a line for an object of a kind.
func (k kind) line() map[string]any {
	names, _, err := k.scheme().ObjectKinds(k.sample)
	truth.Check(err)
	return map[string]any{"id": k.id, "apiVersion": k.GroupVersion.String(), "kind": names[0].Kind}
}

func (k kind) scheme() *runtime.Scheme {
	switch k.Group {
	case apiextensions.GroupName:
		return extensions
	case apiregistration.GroupName:
		return aggregated
	}
	return legacyscheme.Scheme
}

func (k kind) context() context.Context {
	info := &request.RequestInfo{APIGroup: k.Group, APIVersion: k.Version}
	// The user of every client of the embedded server.
	admin := &user.DefaultInfo{Name: "kubernetes-admin", Groups: []string{"system:masters", "system:authenticated"}}
	return request.WithRequestInfo(request.WithUser(request.WithNamespace(context.Background(), "default"), admin), info)
}

// read decodes an object of a kind from JSON.
func (k kind) read(text []byte) runtime.Object {
	made := reflect.New(reflect.TypeOf(k.sample).Elem()).Interface().(runtime.Object)
	truth.Check(json.Unmarshal(text, made))
	return made
}

// internal returns an object in the internal version.
func (k kind) internal(of runtime.Object) (runtime.Object, error) {
	return k.scheme().ConvertToVersion(of, schema.GroupVersion{Group: k.Group, Version: runtime.APIVersionInternal})
}

// external returns an object as kube-apiserver responds with it: after it was stored and read.
func (k kind) external(of runtime.Object) []byte {
	made := truth.Must(k.scheme().ConvertToVersion(of, k.GroupVersion))
	made.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	made = k.filledIn(made)
	if service, ok := made.(*core.Service); ok && service.Spec.Type == core.ServiceTypeExternalName {
		// As the storage of services does on every read.
		service.Spec.InternalTrafficPolicy = nil
	}
	return truth.JSON(made)
}

// filledIn returns an object as a client sends it, with its defaults.
func (k kind) filledIn(of runtime.Object) runtime.Object {
	made := k.read(truth.JSON(of))
	k.scheme().Default(made)
	return made
}

// updates is the interface that all strategies of updates have.
type updates interface {
	PrepareForUpdate(ctx context.Context, new, old runtime.Object)
	ValidateUpdate(ctx context.Context, new, old runtime.Object) field.ErrorList
	Canonicalize(of runtime.Object)
}
