package rules

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"kube-informer-e2e/truth"

	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// TestDefaults writes objects before and after defaulting.
func TestDefaults(t *testing.T) {
	file := truth.Sample(t, "rules/defaults.jsonl", 1_000_000)
	for n, kind := range append(kinds(), older()) {
		random := newRandom(truth.Seed(n))
		for range truth.Times(100) {
			before := truth.JSON(random.object(kind.sample))
			// As it is after encoding and decoding.
			before = truth.JSON(kind.read(before))
			after := truth.JSON(kind.filledIn(kind.read(before)))
			line := kind.line()
			line["before"], line["after"] = json.RawMessage(before), json.RawMessage(after)
			file.Offer(kind.GroupVersion.String()+kind.id, line, shown(kind, "", line["before"], line["after"]))
		}
	}
}

// shown returns the content of a case for the sample: the changes of an object, with its kind.
func shown(kind kind, verb string, before, after any) []string {
	var what []string
	for _, change := range truth.Changes(truth.Value(before), truth.Value(after)) {
		what = append(what, kind.id+" "+verb+" "+change)
	}
	return what
}

// TestReset writes the fields that a write of an object, or of its status, does not own.
func TestReset(t *testing.T) {
	file := truth.Create(t, "rules/reset.jsonl")
	for _, kind := range kinds() {
		line := kind.line()
		line["main"], line["status"] = kind.reset(kind.strategy), kind.reset(kind.status)
		file.Put(line)
	}
}

func (k kind) reset(strategy any) []string {
	paths := []string{}
	resets, ok := strategy.(rest.ResetFieldsStrategy)
	if !ok || reflect.ValueOf(strategy).IsZero() && reflect.TypeOf(strategy).NumField() == 0 {
		return paths
	}
	if set := resets.GetResetFields()[fieldpath.APIVersion(k.GroupVersion.String())]; set != nil {
		set.Iterate(func(path fieldpath.Path) { paths = append(paths, strings.TrimPrefix(path.String(), ".")) })
	}
	return paths
}
