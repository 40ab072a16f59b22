package rules

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"

	"kube-informer-e2e/truth"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
)

// TestStrategies writes objects before and after they are prepared for a write, with their validation errors. The clock is fixed.
func TestStrategies(t *testing.T) {
	file := truth.Sample(t, "rules/strategies.jsonl", 1_100_000)
	synctest.Test(t, func(t *testing.T) {
		for n, kind := range kinds() {
			writes := &writes{kind, newRandom(truth.Seed(1000 + n)), file}
			for range truth.Times(60) {
				writes.run()
			}
		}
	})
}

// writes generates writes to objects of a kind.
type writes struct {
	kind
	*random
	file *truth.File
}

// run creates an object, and updates it and its status.
func (w *writes) run() {
	object := w.filledIn(w.named(w.object(w.sample)))
	made, err := w.internal(object.DeepCopyObject())
	if err != nil {
		return
	}
	w.strategy.PrepareForCreate(w.context(), made)
	found := judged(func() field.ErrorList { return rest.ValidateCreate(w.context(), made.DeepCopyObject(), w.strategy) })
	w.strategy.Canonicalize(made)
	created := w.external(made)
	w.put("create", nil, truth.JSON(object), created, found)
	w.update("update", created, w.strategy)
	if w.status != nil {
		w.update("status", created, w.status)
	}
}

// update updates the object with a change, or with a new object.
func (w *writes) update(verb string, created []byte, strategy updates) {
	before, after := w.read(created), w.read(created)
	switch w.Intn(8) {
	case 0, 1:
		after = w.object(w.sample)
	case 2, 3:
		w.change(reflect.ValueOf(after).Elem(), 0)
	case 4, 5:
		w.change(reflect.ValueOf(after).Elem(), 0)
		w.change(reflect.ValueOf(after).Elem(), 0)
	case 6:
		rewrite(reflect.ValueOf(after).Elem())
	}
	after = w.filledIn(w.named(after))
	text := truth.JSON(after)
	newer, err := w.internal(after)
	if err != nil {
		return
	}
	older := truth.Must(w.internal(before))
	newMeta, oldMeta := truth.Must(meta.Accessor(newer)), truth.Must(meta.Accessor(older))
	// What every update does before the strategy.
	newMeta.SetGeneration(oldMeta.GetGeneration())
	strategy.PrepareForUpdate(w.context(), newer, older)
	if oldMeta.GetDeletionTimestamp() != nil {
		newMeta.SetDeletionTimestamp(oldMeta.GetDeletionTimestamp())
	}
	var found []cause
	if verb == "update" {
		found = judged(func() field.ErrorList {
			return rest.ValidateUpdate(w.context(), newer.DeepCopyObject(), older.DeepCopyObject(), w.strategy)
		})
	}
	strategy.Canonicalize(newer)
	w.put(verb, created, text, w.external(newer), found)
}

func (w *writes) put(verb string, old, new, after []byte, found []cause) {
	line := w.line()
	line["verb"], line["new"], line["after"], line["causes"] = verb, json.RawMessage(new), json.RawMessage(after), found
	if old != nil {
		line["old"] = json.RawMessage(old)
	}
	w.file.Offer(w.id+" "+verb, line, shown(w.kind, verb, line["new"], line["after"]))
}

// named sets the metadata that kube-apiserver has set before a strategy is called.
func (w *writes) named(of runtime.Object) runtime.Object {
	accessor := truth.Must(meta.Accessor(of))
	accessor.SetName("thing")
	accessor.SetUID("uid-1")
	accessor.SetGeneration(max(accessor.GetGeneration(), 0))
	annotations := accessor.GetAnnotations()
	if w.id == "daemonsets.apps" && w.Intn(2) == 0 {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["deprecated.daemonset.template.generation"] = one(w.random, "0", "1", "5")
		accessor.SetAnnotations(annotations)
	}
	return of
}

// cause is a validation error.
type cause struct {
	Reason  string `json:"reason"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

// judged returns the validation errors in order; none if the validation panics.
func judged(check func() field.ErrorList) (found []cause) {
	defer func() {
		if recover() != nil {
			found = nil
		}
	}()
	return slices.SortedFunc(slices.Values(causes(check())), func(a, b cause) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
}

func causes(errors field.ErrorList) []cause {
	found := []cause{}
	for _, err := range errors {
		found = append(found, cause{string(err.Type), err.Field, err.ErrorBody()})
	}
	return found
}
