package fields

import (
	"encoding/json"
	"maps"
	"math/rand"
	"reflect"
	"slices"
	"testing"

	"kube-informer-e2e/truth"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

var patched = []struct {
	kind string
	of   any
}{
	{"deployments.apps", apps.Deployment{}}, {"deployments.apps", apps.Deployment{}}, {"pods", core.Pod{}}, {"services", core.Service{}},
	{"configmaps", core.ConfigMap{}},
}

// TestPatches writes strategic merge patches: half of them as clients compute them, half with directives at random places.
func TestPatches(t *testing.T) {
	file := truth.Create(t, "fields/patches.jsonl")
	for n := range truth.Times(800) {
		of, seed := patched[n%len(patched)], truth.Seed(200_000+n)
		r := &patching{&random{Rand: rand.New(rand.NewSource(seed)), types: types{}}}
		root := r.types.addGo(reflect.TypeOf(of.of))
		original := r.keyed(root, r.object(root, 6), !r.chance(0.05)).(object)
		var patch object
		if r.chance(0.5) {
			original, patch = r.byClient(root, original, of.of)
		} else {
			patch = r.changed(root, original, 0.3)
			patch = r.directed(root, r.keyed(root, patch, !r.chance(0.03)), member{}).(object)
		}
		if patch == nil {
			continue
		}
		if r.chance(0.04) {
			r.addUnknown(original, patch)
		}
		answer, ok := patchedAlways(truth.JSON(original), truth.JSON(patch), of.of)
		if !ok {
			continue
		}
		line := map[string]any{"kind": of.kind, "seed": seed, "original": original, "patch": patch}
		if answer.err != "" {
			line["error"] = answer.err
		} else {
			line["result"] = json.RawMessage(answer.result)
		}
		file.Put(line)
	}
}

type answer struct{ result, err string }

// patchedAlways patches an object several times, because some results depend on the order of a map, and some patches panic.
func patchedAlways(original, patch []byte, of any) (first answer, same bool) {
	defer func() {
		if recover() != nil {
			same = false
		}
	}()
	for n := range 20 {
		var found answer
		result, err := strategicpatch.StrategicMergePatch(original, patch, of)
		if err != nil {
			found.err = err.Error()
		} else {
			found.result = string(result)
		}
		if n == 0 {
			first = found
		}
		if found != first {
			return first, false
		}
	}
	return first, true
}

// patching generates patches.
type patching struct{ *random }

// byClient computes the patch between an object and a change of it like a client, and sometimes changes the object meanwhile.
func (r *patching) byClient(root string, original object, of any) (object, object) {
	modified := r.keyed(root, r.changed(root, original, 0.15), true)
	base := r.keyed(root, clone(original), true)
	made, err := strategicpatch.CreateTwoWayMergePatch(truth.JSON(base), truth.JSON(modified), of)
	if err != nil {
		return original, nil
	}
	patch := object{}
	truth.Check(utiljson.Unmarshal(made, &patch))
	if r.chance(0.5) {
		original = r.keyed(root, r.changed(root, original, 0.1), true).(object)
	}
	return original, patch
}

// addUnknown adds a member that no type has to both an object and its patch.
func (r *patching) addUnknown(original, patch object) {
	value := one[any](r.random, object{"a": "b"}, []any{"a"}, []any{object{"name": "a"}}, "a")
	for _, of := range []object{original, patch} {
		if spec, ok := of["spec"].(object); ok && len(spec) > 0 {
			of = spec
		}
		of["unknown"] = value
	}
}

// keyed sets the keys of items in merged lists; most items get different keys.
func (r *patching) keyed(name string, value any, distinct bool) any {
	of := r.types[name]
	members, ok := value.(object)
	if !ok || of == nil || of.Map == nil {
		return value
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		field, ok := of.Map.Fields[name]
		if !ok {
			if of.Map.Element != "" {
				members[name] = r.keyed(of.Map.Element, members[name], distinct)
			}
			continue
		}
		list := r.types[field.Type].List
		items, isList := members[name].([]any)
		if !isList || list == nil {
			members[name] = r.keyed(field.Type, members[name], distinct)
			continue
		}
		members[name] = r.keyedItems(field, list, items, distinct)
	}
	return members
}

func (r *patching) keyedItems(field member, list *listOf, items []any, distinct bool) []any {
	made, seen := []any{}, map[string]bool{}
	for _, item := range items {
		item = r.keyed(list.Items, item, distinct)
		identity := ""
		switch members, isObject := item.(object); {
		case field.key != "" && distinct:
			if !isObject {
				continue
			}
			if members[field.key] == nil {
				members[field.key] = r.present(r.types[list.Items].Map.Fields[field.key].Type)
			}
			identity = string(truth.JSON(members[field.key]))
		case item == nil:
			continue
		case field.strategy != "" && field.key == "":
			identity = string(truth.JSON(item))
		}
		if identity != "" && seen[identity] {
			continue
		}
		seen[identity] = true
		made = append(made, item)
	}
	return made
}

// directed adds directives to a patch.
func (r *patching) directed(name string, value any, field member) any {
	of := r.types[name]
	if of == nil {
		return value
	}
	switch value := value.(type) {
	case object:
		if of.Map != nil {
			r.directMembers(of.Map, value)
		}
	case []any:
		if of.List != nil {
			return r.directItems(of.List, value, field)
		}
	}
	return value
}

func (r *patching) directMembers(of *mapOf, members object) {
	names := slices.Sorted(maps.Keys(members))
	for _, name := range names {
		field := of.Fields[name]
		if field.Type == "" {
			field.Type = of.Element
		}
		if r.chance(0.06) {
			members[name] = nil
			continue
		}
		members[name] = r.directed(field.Type, members[name], field)
		items, ok := members[name].([]any)
		if !ok || r.types[field.Type] == nil || r.types[field.Type].List == nil {
			continue
		}
		if field.strategy != "" && r.chance(0.3) {
			members["$setElementOrder/"+name] = r.order(field, items)
			if r.chance(0.2) {
				delete(members, name)
			}
		}
		if field.key == "" && r.chance(0.2) {
			members["$deleteFromPrimitiveList/"+name] = []any{r.text(), r.text()}
			if r.chance(0.6) {
				delete(members, name)
			}
		}
	}
	if r.chance(0.03) {
		members["$patch"] = one(r.random, "replace", "replace", "replace", "replace", "delete", "merge", "odd", "odd")
	} else if len(names) > 0 && r.chance(0.05) {
		if r.chance(0.2) {
			names = names[1:]
		}
		members["$retainKeys"] = toAny(names)
	}
}

// order sets the order of a list's items, and sometimes names one that does not exist.
func (r *patching) order(field member, items []any) []any {
	made := []any{}
	for _, item := range items {
		members, isObject := item.(object)
		switch {
		case !isObject:
			made = append(made, item)
		case members["$patch"] == nil && members[field.key] != nil:
			made = append(made, object{field.key: members[field.key]})
		}
	}
	if r.chance(0.3) {
		extra := any("b")
		if field.key != "" {
			extra = object{field.key: "b"}
		}
		made = slices.Insert(made, r.Intn(len(made)+1), extra)
	}
	if r.chance(0.1) {
		r.Shuffle(len(made), func(i, j int) { made[i], made[j] = made[j], made[i] })
	}
	return made
}

func (r *patching) directItems(of *listOf, items []any, field member) []any {
	for i := range items {
		items[i] = r.directed(of.Items, items[i], member{})
		members, ok := items[i].(object)
		if !ok || field.strategy == "" || !r.chance(0.12) {
			continue
		}
		if r.chance(0.7) {
			items[i] = object{field.key: members[field.key], "$patch": "delete"}
		} else {
			members["$patch"] = one(r.random, "delete", "delete", "delete", "delete", "replace", "merge", "odd", "odd")
		}
	}
	if field.key != "" && r.chance(0.05) {
		items = append(items, object{"$patch": "replace"})
	}
	return items
}

func toAny(texts []string) []any {
	made := []any{}
	for _, text := range texts {
		made = append(made, text)
	}
	return made
}
