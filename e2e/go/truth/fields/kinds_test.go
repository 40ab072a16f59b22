// Package fields writes the results of Kubernetes' field manager and strategic merge patches for random objects.
//
// `types` describes the invented types, for the tests to read; `writes` are sequences of updates and applies to objects without Go
// types; `structs` are the same for built-in kinds with their Go types; `patches` are strategic merge patches.
package fields

import (
	"cmp"
	_ "embed"
	"errors"
	"slices"
	"strings"
	"testing"

	"kube-informer-e2e/truth"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

//go:embed made.yaml
var made typed.YAMLObject

// object is an object as decoded JSON.
type object = map[string]any

// kind is one of the written kinds.
type kind struct {
	name     string
	versions []schema.GroupVersionKind
	typed    managedfields.TypeConverter
	root     string
	types    types
}

// kinds returns an invented kind in two versions, one of them without a schema, and built-in kinds.
func kinds() []*kind {
	builtIn := applyconfigurations.NewTypeConverter(scheme.Scheme)
	ours := func(version, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "x.io", Version: version, Kind: kind}
	}
	all := []*kind{
		{name: "made", versions: []schema.GroupVersionKind{ours("v1", "Thing"), ours("v2", "Thing")},
			typed: madeTypes{truth.Must(typed.NewParser(made)).Type("thing")}},
		{name: "deduced", versions: []schema.GroupVersionKind{ours("v1", "Free")}, typed: managedfields.NewDeducedTypeConverter()},
		{name: "deployments.apps", versions: []schema.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "Deployment"}}, typed: builtIn},
		{name: "services", versions: []schema.GroupVersionKind{{Version: "v1", Kind: "Service"}}, typed: builtIn},
		{name: "pods", versions: []schema.GroupVersionKind{{Version: "v1", Kind: "Pod"}}, typed: builtIn},
		{name: "configmaps", versions: []schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}}, typed: builtIn},
	}
	for _, kind := range all {
		value := truth.Must(kind.typed.ObjectToTyped(empty(kind.versions[0])))
		kind.types = types{}
		kind.root = kind.types.addParsed(value.Schema(), value.TypeRef())
	}
	return all
}

// TestTypes writes the invented types.
func TestTypes(t *testing.T) {
	file := truth.Create(t, "fields/types.jsonl")
	for _, kind := range kinds()[:2] {
		file.Put(map[string]any{"kind": kind.name, "root": kind.root, "types": kind.types})
	}
}

// write is an update or apply, and its result.
type write struct {
	Kind        string             `json:"kind"`
	Seed        int64              `json:"seed"`
	Step        int                `json:"step"`
	Op          string             `json:"op"`
	Version     string             `json:"version"`
	ObjectKind  string             `json:"objectKind"`
	Subresource string             `json:"subresource"`
	Manager     string             `json:"manager"`
	Force       bool               `json:"force"`
	Filter      string             `json:"filter"`
	Now         string             `json:"now"`
	Live        any                `json:"live"`
	Object      any                `json:"object"`
	Result      any                `json:"result,omitempty"`
	Code        int                `json:"code,omitempty"`
	Error       string             `json:"error,omitempty"`
	Causes      []meta.StatusCause `json:"causes,omitempty"`
}

// refused records why a write was refused. The library reports errors in the order of a map, and not always all of them: the first in
// sorted order of several attempts is recorded, so that it is the same each time.
func (w *write) refused(err error, again func() error) {
	w.note(err)
	for range 30 {
		other := *w
		other.note(again())
		if other.Error < w.Error {
			*w = other
		}
	}
}

func (w *write) note(err error) {
	head, lines, _ := strings.Cut(err.Error(), "\n  ")
	w.Error, w.Code, w.Causes = head, 500, nil
	if lines != "" {
		w.Error += "\n  " + strings.Join(slices.Sorted(slices.Values(strings.Split(lines, "\n  "))), "\n  ")
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return
	}
	w.Code = int(status.ErrStatus.Code)
	if details := status.ErrStatus.Details; details != nil {
		w.Causes = slices.SortedFunc(slices.Values(details.Causes), func(a, b meta.StatusCause) int {
			return cmp.Compare(a.Field+a.Message, b.Field+b.Message)
		})
	}
}

// filters returns the fields that a write owns; the Rust tests have the same filters under the same names.
func filters(name string, kind *kind) map[fieldpath.APIVersion]fieldpath.Filter {
	var filter fieldpath.Filter
	switch name {
	case "":
		return nil
	case "status":
		filter = fieldpath.NewExcludeSetFilter(paths("status"))
	case "spec":
		filter = fieldpath.NewExcludeSetFilter(paths("spec", "metadata"))
	case "pattern":
		filter = fieldpath.NewIncludeMatcherFilter(
			fieldpath.MakePrefixMatcherOrDie("spec", "containers", fieldpath.MatchAnyPathElement(), "resources"),
			fieldpath.MakePrefixMatcherOrDie("spec", "entries", fieldpath.MatchAnyPathElement(), "value"),
			fieldpath.MakePrefixMatcherOrDie("metadata", "labels"),
		)
	}
	all := map[fieldpath.APIVersion]fieldpath.Filter{}
	for _, version := range kind.versions {
		all[fieldpath.APIVersion(version.GroupVersion().String())] = filter
	}
	return all
}

func paths(names ...string) *fieldpath.Set {
	set := fieldpath.NewSet()
	for _, name := range names {
		set.Insert(fieldpath.MakePathOrDie(name))
	}
	return set
}

// madeTypes converts objects to the invented types.
type madeTypes struct{ of typed.ParseableType }

func (m madeTypes) ObjectToTyped(o runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	return m.of.FromUnstructured(o.(*unstructured.Unstructured).UnstructuredContent(), options...)
}

func (m madeTypes) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	members, ok := value.AsValue().Unstructured().(object)
	if !ok {
		return nil, errors.New("not a map")
	}
	return &unstructured.Unstructured{Object: members}, nil
}

// untyped is the object converter of a field manager for objects without Go types: their versions differ only by name.
type untyped struct{}

func (untyped) Convert(in, out, context any) error { return errors.New("not asked for") }

func (untyped) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	version := to.(schema.GroupVersion).String()
	from := in.(*unstructured.Unstructured)
	if from.GetAPIVersion() == version {
		return in, nil
	}
	from = from.DeepCopy()
	from.SetAPIVersion(version)
	return from, nil
}

func (untyped) ConvertFieldLabel(schema.GroupVersionKind, string, string) (string, string, error) {
	return "", "", errors.New("not asked for")
}

func (untyped) Default(runtime.Object) {}

func (untyped) New(of schema.GroupVersionKind) (runtime.Object, error) { return empty(of), nil }

func empty(of schema.GroupVersionKind) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: object{}}
	made.SetGroupVersionKind(of)
	return made
}

func clone(of any) object { return runtime.DeepCopyJSONValue(of).(object) }
