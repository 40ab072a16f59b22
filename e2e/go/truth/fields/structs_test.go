package fields

import (
	"encoding/json"
	"math/rand"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kube-informer-e2e/truth"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/kubernetes/scheme"
)

// TestStructs writes sequences of updates and applies to objects with kube-apiserver's Go types.
func TestStructs(t *testing.T) {
	file := truth.Create(t, "fields/structs.jsonl")
	builtIn := kinds()[2:]
	synctest.Test(t, func(t *testing.T) {
		for n := range truth.Times(40) {
			kind, seed := builtIn[n%len(builtIn)], truth.Seed(100_000+n)
			s := &structs{random: &random{Rand: rand.New(rand.NewSource(seed)), types: kind.types}, kind: kind, of: kind.versions[0]}
			s.live, s.applied = truth.Must(typedObjects{s.of}.New(s.of)), map[string]object{}
			for step := range 5 + s.Intn(12) {
				s.write(&write{Kind: kind.name, Seed: seed, Step: step}, file)
			}
		}
	})
}

// structs is an object of a Go type, and its writes.
type structs struct {
	*random
	kind    *kind
	of      schema.GroupVersionKind
	live    runtime.Object
	applied map[string]object
}

func (s *structs) write(w *write, file *truth.File) {
	time.Sleep(one(s.random, 0, time.Second, 3*time.Second))
	w.Version, w.ObjectKind = s.of.GroupVersion().String(), s.of.Kind
	w.Filter = one(s.random, "", "status")
	if s.chance(0.25) {
		w.Subresource, w.Filter = "status", "spec"
	}
	w.Now, w.Live = time.Now().UTC().Format(time.RFC3339), members(s.live)
	objects := typedObjects{s.of}
	manager := truth.Must(managedfields.NewDefaultFieldManager(s.kind.typed, objects, objects, objects, s.of, s.of.GroupVersion(),
		w.Subresource, filters(w.Filter, s.kind)))
	var result runtime.Object
	if s.chance(0.5) {
		result = s.update(w, manager)
	} else {
		result = s.apply(w, manager)
	}
	if result != nil {
		w.Result = members(result)
	} else if w.Error == "" || strings.HasPrefix(w.Error, "failed to convert") {
		// kube-apiserver refuses an object that does not fit its type before the field manager.
		return
	}
	file.Put(w)
	if result == nil {
		return
	}
	s.live = truth.Must(typedObject(s.of, members(result)))
	truth.Must(meta.Accessor(s.live)).SetUID("u")
}

// wanted generates an object from the current one, or a new one.
func (s *structs) wanted(w *write) object {
	var made object
	if s.chance(0.2) || w.Step == 0 {
		made = s.object(s.kind.root, 6)
	} else {
		made = s.changed(s.kind.root, w.Live.(object), 0.1)
	}
	metadata, ok := made["metadata"].(object)
	if !ok {
		metadata = object{}
		made["metadata"] = metadata
	}
	metadata["name"] = "n"
	delete(metadata, "managedFields")
	made["apiVersion"], made["kind"] = w.Version, w.ObjectKind
	return made
}

func (s *structs) update(w *write, manager *managedfields.FieldManager) runtime.Object {
	w.Op, w.Manager = "update", one(s.random, "a", "b", "c")
	made, err := typedObject(s.of, s.wanted(w))
	if err != nil {
		return nil
	}
	w.Object = members(made)
	// Inside of atomic values, JSON does not distinguish an empty list from none; the structs do.
	made = truth.Must(typedObject(s.of, members(made)))
	return manager.UpdateNoErrors(s.live, made, w.Manager)
}

func (s *structs) apply(w *write, manager *managedfields.FieldManager) runtime.Object {
	w.Op, w.Manager, w.Force = "apply", one(s.random, "a", "b", "kubectl"), s.chance(0.5)
	patch := s.wanted(w)
	if last := s.applied[w.Manager]; last != nil && s.chance(0.6) {
		patch = s.changed(s.kind.root, last, 0.1)
		patch["apiVersion"], patch["kind"] = w.Version, w.ObjectKind
	}
	if metadata, ok := patch["metadata"].(object); ok {
		delete(metadata, "uid")
	}
	w.Object = clone(patch)
	apply := func() (runtime.Object, error) {
		return manager.Apply(s.live.DeepCopyObject(), &unstructured.Unstructured{Object: clone(patch)}, w.Manager, w.Force)
	}
	made, err := apply()
	if err != nil {
		w.refused(err, func() error { return second(apply()) })
		return nil
	}
	s.applied[w.Manager] = clone(w.Object)
	return made
}

// typedObjects is the object converter of a field manager for objects of a Go type.
type typedObjects struct{ of schema.GroupVersionKind }

func (t typedObjects) Convert(in, out, context any) error { return untyped{}.Convert(in, out, context) }

func (t typedObjects) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	from, ok := in.(*unstructured.Unstructured)
	if !ok {
		return in, nil
	}
	made := truth.Must(t.New(t.of))
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, made); err != nil {
		return nil, err
	}
	made.GetObjectKind().SetGroupVersionKind(t.of)
	return made, nil
}

func (t typedObjects) ConvertFieldLabel(of schema.GroupVersionKind, label, value string) (string, string, error) {
	return untyped{}.ConvertFieldLabel(of, label, value)
}

func (t typedObjects) Default(runtime.Object) {}

func (t typedObjects) New(of schema.GroupVersionKind) (runtime.Object, error) {
	made, err := scheme.Scheme.New(of)
	if err == nil {
		made.GetObjectKind().SetGroupVersionKind(of)
	}
	return made, err
}

func typedObject(of schema.GroupVersionKind, members object) (runtime.Object, error) {
	made := truth.Must(typedObjects{of}.New(of))
	if err := json.Unmarshal(truth.JSON(members), made); err != nil {
		return nil, err
	}
	made.GetObjectKind().SetGroupVersionKind(of)
	return made, nil
}

// members returns an object as decoded JSON, with numbers as apimachinery decodes them.
func members(of any) object {
	made := object{}
	truth.Check(utiljson.Unmarshal(truth.JSON(of), &made))
	return made
}
