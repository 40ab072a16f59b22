package fields

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// types are types by name, in the format that the Rust tests read.
type types map[string]*description

// description is the type of a place: one of the three.
type description struct {
	Scalar string  `json:"scalar,omitempty"`
	List   *listOf `json:"list,omitempty"`
	Map    *mapOf  `json:"map,omitempty"`
}

type listOf struct {
	Relation string   `json:"relation"`
	Keys     []string `json:"keys,omitempty"`
	Items    string   `json:"items"`
}

type mapOf struct {
	Relation string            `json:"relation"`
	Fields   map[string]member `json:"fields,omitempty"`
	Element  string            `json:"element,omitempty"`
}

type member struct {
	Type    string `json:"type"`
	Default any    `json:"default,omitempty"`
	// How a strategic merge patch merges it, by the tags of its Go type.
	strategy, key string
}

// names returns the fields of a type in order, so that the random choices are repeatable.
func (m *mapOf) names() []string { return slices.Sorted(maps.Keys(m.Fields)) }

// addParsed adds a type of a parsed schema and the types of its fields, and returns its name.
func (t types) addParsed(of *schema.Schema, reference schema.TypeRef) string {
	atom, ok := of.Resolve(reference)
	if !ok {
		panic("a type that is not there")
	}
	if atom == (schema.Atom{}) {
		return ""
	}
	name := fmt.Sprintf("inline-%d", len(t))
	if reference.NamedType != nil {
		name = *reference.NamedType
		if reference.ElementRelationship != nil {
			name += " " + string(*reference.ElementRelationship)
		}
	}
	if t[name] != nil {
		return name
	}
	made := &description{}
	t[name] = made
	if atom.Scalar != nil {
		made.Scalar = string(*atom.Scalar)
	}
	if list := atom.List; list != nil {
		made.List = &listOf{string(list.ElementRelationship), list.Keys, t.addParsed(of, list.ElementType)}
	}
	if atom.Map != nil {
		made.Map = &mapOf{Relation: string(atom.Map.ElementRelationship), Element: t.addParsed(of, atom.Map.ElementType)}
		for _, field := range atom.Map.Fields {
			if made.Map.Fields == nil {
				made.Map.Fields = map[string]member{}
			}
			made.Map.Fields[field.Name] = member{Type: t.addParsed(of, field.Type), Default: plain(field.Default)}
		}
	}
	return name
}

// plain returns a default that is a scalar; others cannot be keys.
func plain(value any) any {
	switch value.(type) {
	case string, int, bool, float64:
		return value
	}
	return nil
}

// Types that are a struct in Go and a scalar in JSON.
var scalars = map[string]string{"Quantity": "string", "Time": "string", "MicroTime": "string", "IntOrString": "untyped", "Duration": "string"}

// addGo adds a Go type and the types of its fields, and returns its name.
func (t types) addGo(of reflect.Type) string {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	name := of.String()
	if t[name] != nil {
		return name
	}
	made := &description{}
	t[name] = made
	if scalar, ok := scalars[of.Name()]; ok && of.Kind() == reflect.Struct {
		made.Scalar = scalar
		return name
	}
	switch of.Kind() {
	case reflect.String:
		made.Scalar = "string"
	case reflect.Bool:
		made.Scalar = "boolean"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64, reflect.Uint8:
		made.Scalar = "numeric"
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			made.Scalar = "string"
			break
		}
		made.List = &listOf{Relation: "atomic", Items: t.addGo(of.Elem())}
	case reflect.Map:
		made.Map = &mapOf{Element: t.addGo(of.Elem())}
	case reflect.Struct:
		made.Map = &mapOf{Fields: map[string]member{}}
		t.addMembers(of, made.Map)
	default:
		panic(of.Kind().String())
	}
	return name
}

func (t types) addMembers(of reflect.Type, to *mapOf) {
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			t.addMembers(field.Type, to)
		case name != "-" && name != "" && name != "managedFields":
			to.Fields[name] = member{
				Type: t.addGo(field.Type), strategy: field.Tag.Get("patchStrategy"), key: field.Tag.Get("patchMergeKey"),
			}
		}
	}
}
