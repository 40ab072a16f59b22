package rules

import (
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"time"

	devices "k8s.io/api/resource/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Strings for values of a type.
var words = map[string][]string{
	"ServiceType":                   {"", "ClusterIP", "NodePort", "LoadBalancer", "ExternalName"},
	"ServiceAffinity":               {"", "None", "ClientIP"},
	"ServiceExternalTrafficPolicy":  {"", "Cluster", "Local"},
	"RestartPolicy":                 {"", "Always", "OnFailure", "Never"},
	"ContainerRestartPolicy":        {"Always", "Never"},
	"PullPolicy":                    {"", "Always", "Never"},
	"DeploymentStrategyType":        {"", "RollingUpdate", "Recreate"},
	"DaemonSetUpdateStrategyType":   {"", "RollingUpdate", "OnDelete"},
	"StatefulSetUpdateStrategyType": {"", "RollingUpdate", "OnDelete"},
	"LimitType":                     {"", "Container", "Pod"},
	"PersistentVolumePhase":         {"", "Bound", "Pending"},
	"PersistentVolumeClaimPhase":    {"", "Bound", "Pending"},
	"NamespacePhase":                {"", "Active", "Terminating"},
	"PodPhase":                      {"", "Running", "Pending"},
	"PodConditionType":              {"Ready", "PodScheduled"},
	"PodQOSClass":                   {"", "Burstable"},
	"CompletionMode":                {"Indexed", "NonIndexed"},
	"ResourceName":                  {"cpu", "memory", "hugepages-2Mi", "example.com/thing"},
	"PolicyType":                    {"Ingress", "Egress"},
	"FinalizerName":                 {"kubernetes", "other"},
	"OSName":                        {"linux", "windows"},
	"UID":                           {"u1", "u2"},
}

// Strings for values of a member; `Key` is for the keys of any map.
var wordsOf = map[string][]string{
	"Image": images, "Reference": images,
	"PodIP": addresses, "IP": addresses, "PodCIDR": addresses, "PodCIDRs": addresses, "ClusterIP": addresses, "ClusterIPs": addresses,
	"Kind":     {"User", "Group", "ServiceAccount", "PersistentVolumeClaim", "VolumeSnapshot", "Thing"},
	"APIGroup": {"", "snapshot.storage.k8s.io", "other"},
	"Key": {"a", "b", "kubernetes.io/hostname", "container.apparmor.security.beta.kubernetes.io/a", "pod.beta.kubernetes.io/init-containers",
		"pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"},
	"Annotations":    {"runtime/default", "unconfined", "localhost/x", "localhost/", "z"},
	"MatchLabelKeys": {"a", "b", "c"}, "MismatchLabelKeys": {"a", "b", "c"},
}

var (
	addresses = []string{"10.0.0.1", "10.0.0.2", ""}
	digest    = strings.Repeat("0123456789abcdef", 4)
	images    = []string{"", "nginx", "nginx:1.2", "nginx:latest", "quay.io/a/b", "localhost:5000/x/y:latest", "Nginx", "a//b",
		"docker.io/library/a_b", "a___b", "a__b", "a..b", "x@sha256:" + digest, "x:latest@sha256:" + digest, "x@sha256:zz",
		"x:latest@md5:00112233445566778899aabbccddeeff", "UPPER/x", "UPPER/x:latest", "a b", "[::1]:5000/x", "a-.b", digest, "a:b/c", "x:-t",
		"-a", "a/b/c/d:latest", "a.b/c", ":latest", "x:", "x@", "ex-ample.com/x", "-ample.com/x", "a--b", "a.b"}
	amounts = []string{"1", "500m", "1000m", "0", "100u", "1500n", "0.0001", "1Gi", "1.5Gi", "1024", "1Ki", "1e3", "12E", "0.5Ki", "100Mi",
		"2", "3k", "1234567", "-1", "-0.0005", "1e-4", "5e6", "1023Ki", "999Ei", "1000", "0.1"}
)

// random fills objects.
type random struct {
	*rand.Rand
	// The fraction of members that are set.
	density float64
}

func newRandom(seed int64) *random { return &random{Rand: rand.New(rand.NewSource(seed))} }

func one[T any](r *random, choices ...T) T { return choices[r.Intn(len(choices))] }

// object generates an object of a type.
func (r *random) object(sample runtime.Object) runtime.Object {
	r.density = one(r, 0.05, 0.15, 0.3, 0.5, 0.7)
	made := reflect.New(reflect.TypeOf(sample).Elem())
	r.fill(made.Elem(), "", 0)
	return made.Interface().(runtime.Object)
}

// sets returns whether a member is set: the deeper, the less often.
func (r *random) sets(depth int) bool {
	often := r.density
	for range depth - 5 {
		often *= 0.75
	}
	if depth < 3 {
		often = (often + 1) / 2
	}
	return r.Float64() < often
}

// fill fills a value that is the member with this name.
func (r *random) fill(value reflect.Value, name string, depth int) {
	if r.fillSpecial(value) {
		return
	}
	switch of := value.Type(); of.Kind() {
	case reflect.Pointer:
		if of.Elem() == reflect.TypeFor[apiextensions.JSONSchemaProps]() && depth > 6 {
			return
		}
		made := reflect.New(of.Elem())
		r.fill(made.Elem(), name, depth)
		value.Set(made)
	case reflect.Struct:
		r.fillMembers(value, depth)
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			value.SetBytes([]byte(one(r, "a", "bc", "def", "x<y")))
			return
		}
		count := r.Intn(3)
		if depth > 12 {
			count = 0
		}
		value.Set(reflect.MakeSlice(of, count, count))
		for i := range count {
			r.fill(value.Index(i), name, depth+1)
		}
	case reflect.Map:
		value.Set(reflect.MakeMap(of))
		for range r.Intn(3) {
			key, item := reflect.New(of.Key()).Elem(), reflect.New(of.Elem()).Elem()
			r.fill(key, "Key", depth+1)
			r.fill(item, name, depth+1)
			value.SetMapIndex(key, item)
		}
	case reflect.String:
		value.SetString(r.word(of, name))
	case reflect.Bool:
		value.SetBool(r.Intn(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		value.SetInt(int64(r.Intn(6) - 1))
	case reflect.Uint32, reflect.Uint8:
		value.SetUint(uint64(r.Intn(3)))
	case reflect.Float64:
		value.SetFloat(float64(r.Intn(3)))
	default:
		panic(fmt.Sprint(of, " is not known"))
	}
}

// fillSpecial fills types with a special form, and skips types that defaults and strategies ignore.
func (r *random) fillSpecial(value reflect.Value) bool {
	var made any
	switch value.Interface().(type) {
	case resource.Quantity:
		made = resource.MustParse(one(r, amounts...))
	case meta.Time:
		made = meta.NewTime(time.Unix(1_700_000_000+int64(r.Intn(3)), 0).UTC())
	case devices.DeviceTaint:
		// Its default is the current time.
		made = devices.DeviceTaint{Key: "a", Effect: "NoSchedule", TimeAdded: &meta.Time{Time: time.Unix(1_700_000_000, 0).UTC()}}
	case meta.MicroTime:
		made = meta.NewMicroTime(time.Unix(1_700_000_000, 5000).UTC())
	case intstr.IntOrString:
		made = one(r, intstr.FromInt32(0), intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromString(""), intstr.FromString("http"),
			intstr.FromString("25%"))
	case runtime.RawExtension:
		made = runtime.RawExtension{Raw: []byte(`{"a":1}`)}
	case apiextensions.JSON:
		made = apiextensions.JSON{Raw: []byte(`{"a":1}`)}
	case meta.TypeMeta, meta.FieldsV1, meta.Duration, apiextensions.JSONSchemaPropsOrBool, apiextensions.JSONSchemaPropsOrArray,
		apiextensions.JSONSchemaPropsOrStringArray:
		return true
	default:
		return false
	}
	value.Set(reflect.ValueOf(made))
	return true
}

func (r *random) fillMembers(value reflect.Value, depth int) {
	of := value.Type()
	if slices.Contains([]string{"VolumeSource", "VolumeProjection", "PersistentVolumeSource"}, of.Name()) {
		// One of them, or none.
		if r.Intn(6) > 0 {
			r.fill(value.Field(r.Intn(value.NumField())), "", depth+1)
		}
		return
	}
	for i := range of.NumField() {
		field, inner := of.Field(i), value.Field(i)
		switch {
		case !field.IsExported() || field.Name == "ManagedFields" || field.Name == "DeletionGracePeriodSeconds":
		case field.Anonymous:
			r.fill(inner, field.Name, depth)
		case inner.Kind() == reflect.Struct || r.sets(depth):
			r.fill(inner, field.Name, depth+1)
		}
	}
}

func (r *random) word(of reflect.Type, name string) string {
	if choices, ok := words[of.Name()]; ok {
		return one(r, choices...)
	}
	if choices, ok := wordsOf[name]; ok {
		return one(r, choices...)
	}
	return one(r, "", "a", "b", "c", "long-word")
}

// change replaces or removes one member at any depth.
func (r *random) change(value reflect.Value, depth int) {
	switch of := value.Type(); of.Kind() {
	case reflect.Pointer:
		if !value.IsNil() && r.Intn(5) > 0 {
			r.change(value.Elem(), depth)
			return
		}
	case reflect.Struct:
		if of == reflect.TypeFor[meta.TypeMeta]() || of == reflect.TypeFor[meta.Time]() {
			return
		}
		if !isWhole(of) {
			r.changeMember(value, depth)
			return
		}
	case reflect.Slice:
		if value.Len() > 0 && of.Elem().Kind() != reflect.Uint8 && r.Intn(3) > 0 {
			r.change(value.Index(r.Intn(value.Len())), depth+1)
			return
		}
	}
	if value.CanSet() {
		value.SetZero()
		if r.Intn(3) > 0 {
			r.fill(value, "", depth)
		}
	}
}

// isWhole reports whether a struct is a scalar in JSON.
func isWhole(of reflect.Type) bool {
	for _, part := range []string{"resource.", "intstr.", "runtime."} {
		if strings.Contains(of.String(), part) {
			return true
		}
	}
	return !strings.HasPrefix(of.PkgPath(), "k8s.io/api") || of.NumField() == 0
}

func (r *random) changeMember(value reflect.Value, depth int) {
	for range 5 {
		field := r.Intn(value.NumField())
		if of := value.Type().Field(field); of.IsExported() && of.Name != "ManagedFields" && of.Name != "TypeMeta" {
			r.change(value.Field(field), depth+1)
			return
		}
	}
}

// rewrite formats every quantity differently, with the same value.
func rewrite(value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			rewrite(value.Elem())
		}
	case reflect.Struct:
		if amount, ok := value.Interface().(resource.Quantity); ok {
			value.Set(reflect.ValueOf(rewritten(amount)))
			return
		}
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				rewrite(value.Field(i))
			}
		}
	case reflect.Slice:
		for i := range value.Len() {
			rewrite(value.Index(i))
		}
	case reflect.Map:
		if value.Type().Elem() == reflect.TypeFor[resource.Quantity]() {
			for _, key := range value.MapKeys() {
				value.SetMapIndex(key, reflect.ValueOf(rewritten(value.MapIndex(key).Interface().(resource.Quantity))))
			}
		}
	}
}

func rewritten(amount resource.Quantity) resource.Quantity {
	format := resource.DecimalExponent
	if amount.Format == resource.DecimalSI {
		format = resource.BinarySI
	}
	made := resource.Quantity{Format: format}
	made.Add(amount)
	made.Format = format
	return made
}
