package schema

import (
	"encoding/json"
	"maps"
	"math/rand"
	"slices"
	"testing"
	"testing/synctest"

	"kube-informer-e2e/truth"
)

// TestStructures writes random schemas, some of them invalid, with objects that are mostly valid.
func TestStructures(t *testing.T) {
	file := truth.Sample(t, "schema/structures.jsonl", 400_000)
	synctest.Test(t, func(t *testing.T) {
		r := &random{rand.New(rand.NewSource(truth.Seed(0)))}
		for range truth.Times(3000) {
			schema := r.root()
			if r.chance(0.5) {
				r.addDefaults(schema)
			}
			if r.chance(0.25) {
				r.spoil(schema)
			}
			object := r.object(schema)
			made := &line{Schema: truth.JSON(schema), Object: truth.JSON(object)}
			sort := "create"
			if r.chance(0.4) {
				made.Old, sort = truth.JSON(r.changed(object)), "update"
			}
			if made.answer() {
				file.Offer(sort, made, made.shows())
			}
		}
	})
}

// random generates schemas and objects.
type random struct{ *rand.Rand }

func (r *random) chance(of float64) bool { return r.Float64() < of }

func one[T any](r *random, choices ...T) T { return choices[r.Intn(len(choices))] }

// some returns this number of choices.
func some[T any](r *random, count int, choices ...T) []T {
	choices = slices.Clone(choices)
	r.Shuffle(len(choices), func(i, j int) { choices[i], choices[j] = choices[j], choices[i] })
	return choices[:min(count, len(choices))]
}

// put sets a member with this probability.
func put[T any](r *random, to object, often float64, name string, choices ...T) {
	if r.chance(often) {
		to[name] = one(r, choices...)
	}
}

// root generates the schema of an object.
func (r *random) root() object {
	made := object{"type": "object", "properties": object{"spec": r.node(3), "status": r.node(2)}}
	put(r, made, 0.3, "required", []string{"spec"})
	put(r, made, 0.15, "x-kubernetes-preserve-unknown-fields", true)
	return made
}

// node generates the schema of a place.
func (r *random) node(depth int) object {
	kind := r.Float64()
	var made object
	switch {
	case depth <= 0 || kind < 0.45:
		return r.leaf()
	case kind < 0.65:
		made = r.list(depth)
	case kind < 0.8:
		made = object{"type": "object", "additionalProperties": r.node(depth - 1)}
		put(r, made, 0.05, "additionalProperties", true, false)
		put(r, made, 0.2, "maxProperties", 0, 1, 2)
		put(r, made, 0.2, "minProperties", 1)
	default:
		made = r.structure(depth)
	}
	put(r, made, 0.1, "nullable", true)
	return made
}

func (r *random) leaf() object {
	switch {
	case r.chance(0.08):
		made := object{"x-kubernetes-int-or-string": true}
		put(r, made, 0.3, "anyOf", []any{object{"type": "integer"}, object{"type": "string"}})
		put(r, made, 0.3, "pattern", "^[0-9]+%?$")
		put(r, made, 0.2, "maximum", 5)
		return made
	case r.chance(0.05):
		return object{"x-kubernetes-preserve-unknown-fields": true}
	}
	made := object{"type": one(r, "string", "string", "integer", "number", "boolean")}
	switch made["type"] {
	case "string":
		put(r, made, 0.2, "maxLength", 0, 1, 3, 10)
		put(r, made, 0.2, "minLength", 0, 1, 3)
		put(r, made, 0.2, "pattern", "^a+$", "[a-z]", `^\d{2,3}$`, `^[\w-]+$`, "a{,2}", "^(x|y)*$", `\bfoo\b`, `^[^\s]+$`, "[[:alpha:]]",
			`\.`, "(?i)ABC", "^.{2}$")
		put(r, made, 0.2, "format", "date-time", "ipv4", "uuid", "byte", "date", "duration", "email", "unknown", "int32", "uri", "hostname",
			"cidr")
		put(r, made, 0.2, "enum", some(r, 1+r.Intn(3), "a", "b", "", "aa", "1"))
	case "integer", "number":
		put[any](r, made, 0.3, "minimum", 0, -1, 1, 2.5, 10)
		put[any](r, made, 0.3, "maximum", 0, 5, 3.5, 100, 1e21)
		put(r, made, 0.1, "exclusiveMinimum", true)
		put(r, made, 0.1, "exclusiveMaximum", true)
		put[any](r, made, 0.2, "multipleOf", 1, 2, 0.5, 3, 0.1)
		put(r, made, 0.2, "format", "int32", "int64", "float", "double", "foo")
		put(r, made, 0.1, "enum", some[any](r, 2, 1, 2, 3.5, 0))
	}
	put(r, made, 0.15, "nullable", true)
	return made
}

func (r *random) list(depth int) object {
	items := r.node(depth - 1)
	made := object{"type": "array", "items": items}
	put(r, made, 0.3, "maxItems", 0, 1, 2, 3)
	put(r, made, 0.2, "minItems", 0, 1, 2)
	put(r, made, 0.15, "x-kubernetes-preserve-unknown-fields", true)
	if r.chance(0.4) {
		return made
	}
	properties, isStructure := items["properties"].(object)
	switch {
	case isStructure && r.chance(0.8):
		r.makeMap(made, items, properties)
	case items["type"] == "string" || items["type"] == "integer":
		made["x-kubernetes-list-type"] = one(r, "set", "set", "atomic")
		delete(items, "nullable")
	}
	return made
}

// makeMap makes a list a map with keys, if its items have members that can be keys.
func (r *random) makeMap(list, items, properties object) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if of := properties[name].(object)["type"]; of == "string" || of == "integer" || of == "boolean" {
			names = append(names, name)
		}
	}
	if names == nil {
		return
	}
	keys := some(r, one(r, 1, 1, 2), names...)
	required, _ := items["required"].([]string)
	required = slices.Sorted(slices.Values(append(slices.Clone(keys), required...)))
	list["x-kubernetes-list-type"], list["x-kubernetes-list-map-keys"] = "map", keys
	items["required"] = slices.Compact(required)
	delete(items, "nullable")
	for _, key := range keys {
		delete(properties[key].(object), "nullable")
	}
}

func (r *random) structure(depth int) object {
	names := some(r, 1+r.Intn(4), "a", "b", "c", "name", "x-y", "for", "a.b", "spec2", "under__score", "long")
	properties := object{}
	for _, name := range names {
		properties[name] = r.node(depth - 1)
	}
	made := object{"type": "object", "properties": properties}
	put(r, made, 0.4, "required", some(r, 1+r.Intn(2), names...))
	put(r, made, 0.15, "x-kubernetes-preserve-unknown-fields", true)
	put(r, made, 0.1, "x-kubernetes-map-type", "atomic", "granular")
	put(r, made, 0.15, "x-kubernetes-embedded-resource", true)
	for _, name := range []string{"oneOf", "anyOf", "allOf"} {
		if r.chance(0.15) {
			var list []any
			for range 1 + r.Intn(3) {
				list = append(list, r.junctor(names, properties))
			}
			made[name] = list
		}
	}
	if r.chance(0.08) {
		made["not"] = r.junctor(names, properties)
	}
	return made
}

// junctor generates a schema for `oneOf`, `anyOf`, `allOf` and `not`.
func (r *random) junctor(names []string, properties object) object {
	made := object{}
	put(r, made, 0.6, "required", some(r, 1, names...))
	if r.chance(0.4) {
		return made
	}
	name, inner := one(r, names...), object{}
	switch properties[name].(object)["type"] {
	case "string":
		inner = one(r, object{"enum": []string{"a", "b"}}, object{"minLength": 2}, object{"pattern": "^a"})
	case "integer", "number":
		inner = one(r, object{"minimum": 2}, object{"maximum": 3}, object{"enum": []int{1, 2}})
	case "array":
		inner = one(r, object{"minItems": 1}, object{"maxItems": 1})
	}
	made["properties"] = object{name: inner}
	return made
}

// value generates a value that is mostly valid for a schema.
func (r *random) value(schema object) any {
	if r.chance(0.06) {
		return one[any](r, nil, "str", 5, true, []any{}, object{}, 1.5, object{"zz": 1}, []any{nil})
	}
	if schema["x-kubernetes-int-or-string"] == true {
		return one[any](r, 1, "5%", "x", 6, "50")
	}
	switch schema["type"] {
	case "array":
		made := []any{}
		if items, ok := schema["items"].(object); ok {
			for range r.Intn(4) {
				made = append(made, r.value(items))
			}
		}
		return made
	case "object":
		return r.members(schema)
	case "string":
		return one(r, "", "a", "b", "aa", "aaa", "foo", "x-y", "12", "123", "2020-01-01", "2020-01-01T00:00:00Z", "10.0.0.1", "é<&>",
			"abcdefghijk", "1h", "foo bar", "ABC")
	case "integer":
		return one[any](r, 0, 1, 2, 3, -1, 5, 6, 100, 2147483648, json.Number("1.0"), 4611686018427387904)
	case "number":
		return one[any](r, 0, 1, 2.5, 3.5, -1, 0.3, 100, json.Number("1e21"), json.Number("1e22"), 1.5e-7, 10)
	case "boolean":
		return r.chance(0.5)
	}
	return one[any](r, object{"any": []any{1, object{"k": nil}}}, 1, "x", []any{1})
}

func (r *random) members(schema object) object {
	made := object{}
	if values, ok := schema["additionalProperties"].(object); ok {
		for _, key := range some(r, r.Intn(3), "k1", "k2", "a.b", "x") {
			made[key] = r.value(values)
		}
	}
	properties, _ := schema["properties"].(object)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if r.chance(0.75) {
			made[name] = r.value(properties[name].(object))
		}
	}
	put[any](r, made, 0.15, "unknown", 1, object{"q": object{}}, nil)
	if schema["x-kubernetes-embedded-resource"] == true {
		put(r, made, 0.8, "apiVersion", "v1", "a/b", "a/b/c", "")
		put(r, made, 0.8, "kind", "Pod", "x_y", "")
		put(r, made, 0.5, "metadata", object{"name": "n", "foo": 1}, object{"labels": object{"a": "b"}},
			object{"name": "x", "creationTimestamp": nil})
	}
	return made
}

// object generates a whole object.
func (r *random) object(schema object) object {
	made := r.members(schema)
	metadata := object{"name": "x"}
	put(r, metadata, 0.1, "bogus", 1)
	made["apiVersion"], made["kind"], made["metadata"] = "example.com/v1", "Thing", metadata
	return made
}

// changed returns an object with a replacement at one place, or unchanged.
func (r *random) changed(of object) object {
	made := truth.Value(of).(object)
	r.change(made, 5)
	return made
}

func (r *random) change(value any, depth int) {
	other := func() any { return one[any](r, "a", 1, nil, "zz", []any{}, object{}) }
	switch value := value.(type) {
	case object:
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(value)), func(name string) bool {
			return name == "apiVersion" || name == "kind" || name == "metadata"
		})
		if len(names) == 0 || depth == 0 {
			return
		}
		name := one(r, names...)
		if isFilled(value[name]) && r.chance(0.7) {
			r.change(value[name], depth-1)
		} else if r.chance(0.5) {
			value[name] = other()
		}
	case []any:
		index := r.Intn(len(value))
		if isFilled(value[index]) && r.chance(0.7) {
			r.change(value[index], depth-1)
		} else if r.chance(0.5) {
			value[index] = other()
		}
	}
}

func isFilled(value any) bool {
	switch value := value.(type) {
	case object:
		return len(value) > 0
	case []any:
		return len(value) > 0
	}
	return false
}

// addDefaults adds defaults, some of them invalid.
func (r *random) addDefaults(schema object) {
	properties, _ := schema["properties"].(object)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		member := properties[name].(object)
		r.addDefaults(member)
		if !r.chance(0.25) {
			continue
		}
		var made any = object{"zz": 1}
		if r.chance(0.85) {
			made = r.value(member)
		}
		if made != nil {
			member["default"] = made
		}
	}
	for _, name := range []string{"additionalProperties", "items"} {
		if inner, ok := schema[name].(object); ok {
			r.addDefaults(inner)
		}
	}
}
