package rules

import (
	_ "embed"
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"kube-informer-e2e/truth"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

//go:embed checks.txt
var checks string

// TestChecks writes the validation errors of the objects in checks.txt.
func TestChecks(t *testing.T) {
	file := truth.Create(t, "rules/checks.jsonl")
	all := map[string]kind{}
	for _, kind := range kinds() {
		all[kind.id] = kind
	}
	synctest.Test(t, func(t *testing.T) {
		for one := range cases() {
			for _, id := range one.kinds {
				if all[id].sample == nil {
					t.Fatal("no kind ", id)
				}
				file.Put(all[id].check(one))
			}
		}
	})
}

// written is an object of checks.txt, and its change.
type written struct {
	verb          string
	kinds         []string
	before, after any
}

// cases returns the lines of checks.txt.
func cases() iter.Seq[written] {
	return func(yield func(written) bool) {
		var block written
		for line := range strings.Lines(checks) {
			line = strings.TrimSuffix(line, "\n")
			change, isChange := strings.CutPrefix(line, "\t")
			switch {
			case strings.HasPrefix(line, "#"):
				continue
			case isChange:
				path, value, _ := strings.Cut(change, " ")
				block.after = changed(block.before, strings.Split(path, "."), value)
			default:
				words, object, _ := strings.Cut(line, " {")
				block = written{verb: strings.Fields(words)[0], kinds: strings.Fields(words)[1:]}
				truth.Check(json.Unmarshal([]byte("{"+object), &block.before))
				block.after = block.before
			}
			if !yield(block) {
				return
			}
		}
	}
}

func (k kind) check(one written) map[string]any {
	line := k.line()
	if one.verb == "create" {
		k.checkCreate(line, truth.JSON(one.after))
	} else {
		k.checkUpdate(line, truth.JSON(one.before), truth.JSON(one.after))
	}
	return line
}

// changed returns a value with a replacement at one place.
func changed(value any, path []string, to string) any {
	var inner any
	if to != "-" || len(path) > 1 {
		inner = put(value, path, to)
	}
	switch value := value.(type) {
	case []any:
		list, index := slices.Clone(value), truth.Must(strconv.Atoi(path[0]))
		if index == len(list) {
			return append(list, inner)
		}
		list[index] = inner
		return list
	default:
		made := map[string]any{}
		if members, ok := value.(map[string]any); ok {
			for name, value := range members {
				made[name] = value
			}
		}
		made[path[0]] = inner
		if inner == nil {
			delete(made, path[0])
		}
		return made
	}
}

// put returns the value at the first step of a path, after a change below it.
func put(value any, path []string, to string) any {
	if len(path) > 1 {
		var inner any
		switch value := value.(type) {
		case []any:
			inner = value[truth.Must(strconv.Atoi(path[0]))]
		case map[string]any:
			inner = value[path[0]]
		}
		return changed(inner, path[1:], to)
	}
	if to == "LONG" || strings.Contains(to, ":LONG") {
		to = strings.Replace(to, "LONG", strconv.Quote(strings.Repeat("x", 1<<20+1)), 1)
	}
	var made any
	truth.Check(json.Unmarshal([]byte(to), &made))
	return made
}

// known returns an object as the validation gets it: with generated metadata and defaults.
func (k kind) known(text []byte) runtime.Object {
	object := k.read(text)
	accessor := truth.Must(meta.Accessor(object))
	accessor.SetUID("uid-1")
	accessor.SetResourceVersion("1")
	if accessor.GetName() == "" {
		accessor.SetName("thing")
	}
	if k.strategy.NamespaceScoped() {
		accessor.SetNamespace("default")
	}
	return k.filledIn(object)
}

func (k kind) checkCreate(line map[string]any, text []byte) {
	object := k.known(text)
	line["new"] = object.DeepCopyObject()
	made := truth.Must(k.internal(object))
	k.strategy.PrepareForCreate(k.context(), made)
	truth.Must(meta.Accessor(made)).SetResourceVersion("")
	line["causes"] = causes(rest.ValidateCreate(k.context(), made, k.strategy))
}

func (k kind) checkUpdate(line map[string]any, before, after []byte) {
	older := truth.Must(k.internal(k.known(before)))
	k.strategy.PrepareForCreate(k.context(), older)
	var old, given object
	truth.Check(json.Unmarshal(k.external(older), &old))
	truth.Check(json.Unmarshal(before, &given))
	if status, ok := given["status"]; ok {
		old["status"] = status
	}
	line["old"] = k.read(truth.JSON(old))
	new := k.known(after)
	if k.id == "jobs.batch" {
		new = k.read(truth.JSON(labelled(truth.Value(new).(object), old)))
	}
	line["new"] = new.DeepCopyObject()
	older, newer := truth.Must(k.internal(k.read(truth.JSON(old)))), truth.Must(k.internal(new))
	truth.Must(meta.Accessor(newer)).SetGeneration(truth.Must(meta.Accessor(older)).GetGeneration())
	k.strategy.PrepareForUpdate(k.context(), newer, older)
	line["causes"] = causes(rest.ValidateUpdate(k.context(), newer, older, k.strategy))
}

type object = map[string]any

// labelled adds the selector and labels of a created job, unless the object has them.
func labelled(job, old object) object {
	spec, oldSpec := job["spec"].(object), old["spec"].(object)
	if spec["selector"] == nil {
		spec["selector"] = oldSpec["selector"]
	}
	inside := func(of object, name string) object {
		if of[name] == nil {
			of[name] = object{}
		}
		return of[name].(object)
	}
	labels := inside(inside(inside(spec, "template"), "metadata"), "labels")
	for name, value := range inside(inside(inside(oldSpec, "template"), "metadata"), "labels") {
		if labels[name] == nil {
			labels[name] = value
		}
	}
	return job
}
