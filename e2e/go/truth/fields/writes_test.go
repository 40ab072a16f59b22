package fields

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"testing"
	"testing/synctest"
	"time"

	"kube-informer-e2e/truth"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// TestWrites writes sequences of updates and applies, each to the result of the previous one.
func TestWrites(t *testing.T) {
	file := truth.Create(t, "fields/writes.jsonl")
	all := kinds()
	synctest.Test(t, func(t *testing.T) {
		for n := range truth.Times(30) {
			kind := all[[]int{0, 0, 0, 1, 2, 2, 3, 4, 5, 0}[n%10]]
			newSequence(kind, truth.Seed(n)).run(file)
		}
	})
}

// sequence is an object, and its writes.
type sequence struct {
	*random
	kind *kind
	seed int64
	live *unstructured.Unstructured
	// The last applied object of each manager.
	applied map[string]object
	// Whether lists may have equal items, and whether so many managers write that entries are merged.
	untidy, crowd bool
}

func newSequence(kind *kind, seed int64) *sequence {
	s := &sequence{random: &random{Rand: rand.New(rand.NewSource(seed)), types: kind.types}, kind: kind, seed: seed}
	s.live, s.applied = empty(kind.versions[0]), map[string]object{}
	s.untidy, s.crowd = s.chance(0.25), s.chance(0.17)
	return s
}

func (s *sequence) run(file *truth.File) {
	steps := 6 + s.Intn(16)
	if s.crowd {
		steps = 40
	}
	for step := range steps {
		time.Sleep(one(s.random, 0, 0, time.Second, 700*time.Millisecond, 5*time.Second))
		done, result := s.write(step)
		file.Put(done)
		if result != nil {
			s.keep(done, result)
		}
	}
}

// write makes a write, and returns the resulting object; nothing if the write was refused.
func (s *sequence) write(step int) (*write, *unstructured.Unstructured) {
	version := one(s.random, s.kind.versions...)
	w := &write{Kind: s.kind.name, Seed: s.seed, Step: step, Version: version.GroupVersion().String(), ObjectKind: version.Kind}
	w.Filter = one(s.random, "", "", "status", "status", "pattern")
	if s.chance(0.25) {
		w.Subresource, w.Filter = "status", "spec"
	}
	if s.crowd {
		w.Filter = ""
	}
	manager := truth.Must(managedfields.NewDefaultFieldManager(s.kind.typed, untyped{}, untyped{}, untyped{}, version,
		version.GroupVersion(), w.Subresource, filters(w.Filter, s.kind)))
	converted := truth.Must(untyped{}.ConvertToVersion(s.live, version.GroupVersion()))
	before := converted.(*unstructured.Unstructured)
	w.Now, w.Live = time.Now().UTC().Format(time.RFC3339), clone(before.Object)
	var result *unstructured.Unstructured
	if s.chance(0.45) || s.crowd && s.chance(0.6) {
		after := s.update(w, version, before, step)
		w.Object = clone(after)
		result = manager.UpdateNoErrors(before, &unstructured.Unstructured{Object: after}, w.Manager).(*unstructured.Unstructured)
	} else {
		patch := s.apply(w, version, before)
		w.Object = clone(patch)
		apply := func() (runtime.Object, error) {
			live, patch := &unstructured.Unstructured{Object: clone(w.Live)}, &unstructured.Unstructured{Object: clone(patch)}
			return manager.Apply(live, patch, w.Manager, w.Force)
		}
		made, err := apply()
		if err != nil {
			w.refused(err, func() error { return second(apply()) })
			return w, nil
		}
		s.applied[w.Manager] = clone(w.Object)
		result = made.(*unstructured.Unstructured)
	}
	w.Result = clone(result.Object)
	return w, result
}

func second[A, B any](_ A, b B) B { return b }

// update generates the object of an update.
func (s *sequence) update(w *write, version schema.GroupVersionKind, before *unstructured.Unstructured, step int) object {
	w.Op = "update"
	w.Manager = one(s.random, "a", "b", "kubectl-client-side-apply", "", "", "")
	rate := 0.12
	if s.crowd {
		w.Manager, rate = fmt.Sprintf("m%d", s.Intn(16)), 0.01
		if s.chance(0.05) {
			w.Manager = "a<b"
		}
	}
	s.duplicates = s.untidy
	defer func() { s.duplicates = false }()
	var after object
	if s.chance(0.25) && !(s.crowd && step > 0) {
		after = s.object(s.kind.root, 6)
	} else {
		after = s.changed(s.kind.root, before.Object, rate)
	}
	s.name(after, version)
	if w.Manager == "kubectl-client-side-apply" && s.chance(0.7) {
		s.remember(after)
	}
	if s.chance(0.02) {
		after = s.broken(after).(object)
	}
	if s.crowd {
		s.label(after)
	} else {
		s.meddle(after, before)
	}
	return after
}

// apply generates the object of an apply: the manager's last one with a change, the current object with a change, or any object.
func (s *sequence) apply(w *write, version schema.GroupVersionKind, before *unstructured.Unstructured) object {
	w.Op, w.Manager, w.Force = "apply", one(s.random, "a", "b", "c", "kubectl"), s.chance(0.4)
	last := s.applied[w.Manager]
	var patch object
	switch {
	case last != nil && s.chance(0.1):
		patch = clone(last)
	case last != nil && s.chance(0.6):
		patch = s.changed(s.kind.root, last, 0.15)
	case s.chance(0.5):
		patch = s.changed(s.kind.root, before.Object, 0.25)
		if metadata, ok := patch["metadata"].(object); ok {
			delete(metadata, "managedFields")
			delete(metadata, "uid")
		}
	default:
		patch = s.object(s.kind.root, 6)
	}
	s.name(patch, version)
	if s.chance(0.08) {
		patch = s.broken(patch).(object)
	}
	if s.chance(0.01) {
		patch["kind"] = "Other"
	}
	if metadata, ok := patch["metadata"].(object); ok && s.chance(0.01) {
		metadata["managedFields"] = []any{}
	}
	return patch
}

// name sets the type of an object, and mostly its name.
func (s *sequence) name(made object, version schema.GroupVersionKind) {
	made["apiVersion"], made["kind"] = version.GroupVersion().String(), version.Kind
	if s.chance(0.1) {
		return
	}
	if metadata, ok := made["metadata"].(object); ok {
		metadata["name"] = "n"
	} else if made["metadata"] == nil {
		made["metadata"] = object{"name": "n"}
	}
}

// remember sets the last-applied annotation, like kubectl; not always with the right content.
func (s *sequence) remember(made object) {
	metadata, ok := made["metadata"].(object)
	if !ok {
		return
	}
	wanted := clone(made)
	delete(wanted["metadata"].(object), "managedFields")
	if s.chance(0.5) {
		wanted = s.changed(s.kind.root, wanted, 0.1)
	}
	if annotations, ok := metadata["annotations"].(object); ok {
		annotations[lastApplied] = string(truth.JSON(wanted))
	} else {
		metadata["annotations"] = object{lastApplied: string(truth.JSON(wanted))}
	}
}

// label sets one of many labels.
func (s *sequence) label(made object) {
	metadata, ok := made["metadata"].(object)
	if !ok {
		return
	}
	labels, ok := metadata["labels"].(object)
	if !ok {
		labels = object{}
		metadata["labels"] = labels
	}
	labels[fmt.Sprintf("l%d", s.Intn(40))] = fmt.Sprint(s.Intn(1000))
	delete(metadata, "managedFields")
}

// meddle changes the managed fields that a client sends.
func (s *sequence) meddle(made object, live *unstructured.Unstructured) {
	metadata, ok := made["metadata"].(object)
	if !ok {
		return
	}
	entries, _, _ := unstructured.NestedSlice(live.Object, "metadata", "managedFields")
	switch x := s.Float64(); {
	case x < 0.45:
		delete(metadata, "managedFields")
	case x < 0.9 && entries != nil:
		metadata["managedFields"] = entries
	case x >= 0.9 && x < 0.905:
		metadata["managedFields"] = []any{}
	case x >= 0.905 && x < 0.91:
		metadata["managedFields"] = []any{object{}}
	case x >= 0.91 && x < 0.97 && len(entries) > 0:
		metadata["managedFields"] = entries[1:]
	case x >= 0.97 && x < 0.98 && len(entries) > 0:
		entries[0].(object)["operation"] = "Broken"
		metadata["managedFields"] = entries
	case x >= 0.98 && len(entries) > 0:
		entries[0].(object)["fieldsV1"] = object{"broken": object{}}
		metadata["managedFields"] = entries
	}
}

// keep stores the result of a write for the next one.
func (s *sequence) keep(w *write, result *unstructured.Unstructured) {
	s.live = &unstructured.Unstructured{Object: object{}}
	truth.Check(utiljson.Unmarshal(truth.JSON(result.Object), &s.live.Object))
	if _, err := s.kind.typed.ObjectToTyped(s.live, typed.AllowDuplicates); err != nil {
		// An object that does not fit its type is not stored.
		s.live = &unstructured.Unstructured{Object: clone(w.Live)}
		return
	}
	if s.chance(0.9) && s.live.Object["metadata"] != nil {
		s.live.SetUID("u")
	}
	if s.chance(0.02) && !s.crowd {
		s.live.SetManagedFields(nil)
	}
	if s.chance(0.03) && s.live.Object["metadata"] != nil {
		s.addOldEntry()
	}
	if s.chance(0.02) && !s.crowd {
		s.live = empty(s.kind.versions[0])
	}
}

// Fields that a manager could own under earlier types.
var oldFields = []string{
	`{"f:spec":{"f:wholeMap":{"f:a":{},"f:b":{}},"f:whole":{"i:0":{}},"f:opaque":{".":{},"f:x":{}},
		"f:wholeStruct":{".":{},"f:name":{}},"f:entries":{"k:{\"name\":\"a\"}":{".":{},"f:args":{"v:1":{}}}}}}`,
	`{"f:spec":{"f:selector":{"f:matchLabels":{"f:a":{}}},"f:template":{"f:spec":{"f:containers":
		{"k:{\"name\":\"a\"}":{"f:args":{"i:0":{}}}}}}},"x:future":{}}`,
	`{"f:metadata":{"f:labels":{"f:a":{}},"f:finalizers":{"v:\"a\"":{},"v:\"b\"":{".":{}}}},"f:spec":{"f:set":{"v:1":{},"v:\"a\"":{}},
		"f:ports":{"k:{\"port\":1,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}`,
	`{}`,
}

// addOldEntry adds a managed fields entry of earlier types.
func (s *sequence) addOldEntry() {
	var fields any
	truth.Check(json.Unmarshal([]byte(one(s.random, oldFields...)), &fields))
	entry := object{
		"manager": "old", "operation": one(s.random, "Apply", "Update"), "apiVersion": s.live.GetAPIVersion(),
		"fieldsType": "FieldsV1", "fieldsV1": fields,
	}
	if s.chance(0.5) {
		entry["time"] = "1999-12-31T23:59:59Z"
	}
	entries, _, _ := unstructured.NestedSlice(s.live.Object, "metadata", "managedFields")
	truth.Check(unstructured.SetNestedSlice(s.live.Object, append(entries, entry), "metadata", "managedFields"))
}
