package schema

import (
	"maps"
	"slices"
)

// Mistakes: fields that a place of a schema must not have.
var mistakes = []func(*random, object){
	func(_ *random, at object) { delete(at, "type") },
	func(r *random, at object) { at["type"] = one(r, "null", "foo", "array", "object") },
	func(r *random, at object) { at["x-kubernetes-list-type"] = one(r, "map", "set", "atomic", "foo") },
	func(r *random, at object) { at["x-kubernetes-map-type"] = one(r, "atomic", "granular", "foo") },
	func(r *random, at object) {
		at["x-kubernetes-list-map-keys"] = one(r, []string{"a"}, []string{"a", "a"}, []string{"zz", "name"})
	},
	func(_ *random, at object) { at["uniqueItems"] = true },
	func(_ *random, at object) { at["description"] = "x" },
	func(r *random, at object) {
		list, _ := at["allOf"].([]any)
		at["allOf"] = append(slices.Clone(list), one[any](r, object{"properties": object{"zz": object{"type": "string"}}},
			object{"type": "string"}, object{"nullable": true}, object{"default": 1}, object{"items": object{"minLength": 1}},
			object{"x-kubernetes-validations": []any{object{"rule": "true"}}}, object{"additionalProperties": object{"minLength": 1}}))
	},
	func(r *random, at object) {
		at["pattern"] = one(r, "(", "[a", "a)", "*a", `\q`, "(?=a)", "a**", "x{2,1}", "[z-a]", `a\`)
	},
	func(_ *random, at object) { at["x-kubernetes-embedded-resource"] = true },
	func(_ *random, at object) { at["x-kubernetes-int-or-string"] = true },
	func(r *random, at object) {
		at["default"] = one[any](r, 1, "a", object{}, object{"q": 1}, []any{}, true)
	},
	func(_ *random, at object) { at["items"] = object{"type": "string"} },
	func(r *random, at object) {
		at["additionalProperties"] = one[any](r, true, false, object{"type": "string"})
	},
	func(r *random, at object) { at["x-kubernetes-preserve-unknown-fields"] = r.chance(0.5) },
	func(_ *random, at object) { at["nullable"] = true },
	func(r *random, at object) { at[one(r, "$ref", "id", "$schema")] = "x" },
	func(_ *random, at object) { at["title"] = "t" },
	func(_ *random, at object) { at["items"] = []any{object{"type": "string"}} },
	func(r *random, at object) {
		properties, _ := at["properties"].(object)
		if properties == nil {
			properties = object{}
			at["properties"] = properties
		}
		properties["metadata"] = one(r, object{"type": "object"}, object{"type": "string"},
			object{"type": "object", "properties": object{"name": object{"type": "string", "maxLength": 5}}},
			object{"type": "object", "properties": object{"labels": object{"type": "object"}}})
	},
	func(r *random, at object) {
		at["x-kubernetes-validations"] = []any{one(r, object{"rule": ""}, object{"rule": "true", "message": " "},
			object{"rule": "true", "message": "a\nb"}, object{"rule": "true\n"}, object{"rule": "true\n&& true"},
			object{"rule": "true", "reason": "Foo"}, object{"rule": "true", "fieldPath": ".zz"},
			object{"rule": "true", "messageExpression": " "}, object{"rule": "self == oldSelf"}, object{"rule": "1"},
			object{"rule": "true", "optionalOldSelf": true}, object{"rule": "self.zz"}, object{"rule": "foo(1)"}, object{"rule": "true &&"},
			object{"rule": "true", "messageExpression": "1"})}
	},
}

// spoil makes one or two mistakes in a schema.
func (r *random) spoil(schema object) {
	for range one(r, 1, 1, 2) {
		one(r, mistakes...)(r, one(r, places(schema)...))
	}
}

// places returns a schema and all schemas inside of it.
func places(schema object) []object {
	found := []object{schema}
	if properties, ok := schema["properties"].(object); ok {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			found = append(found, places(properties[name].(object))...)
		}
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if inner, ok := schema[name].(object); ok {
			found = append(found, places(inner)...)
		}
	}
	for _, name := range []string{"anyOf", "allOf", "oneOf"} {
		list, _ := schema[name].([]any)
		for _, inner := range list {
			found = append(found, places(inner.(object))...)
		}
	}
	return found
}
