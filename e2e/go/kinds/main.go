// Kinds prints the types of every kind that the embedded server serves, from the Go types and the OpenAPI definitions of the pinned
// version: a line for each type and for each field, without descriptions.
//
//	kinds [FILE]
//
// With a file it writes there, compressed.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"os"
	"path"
	"reflect"
	"slices"
	"sort"
	"strings"

	"kube-informer-e2e/served"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kube-openapi/pkg/validation/spec"
	openapi "k8s.io/kubernetes/pkg/generated/openapi"
)

// Types with a special form in JSON or protobuf.
var special = map[reflect.Type]string{
	reflect.TypeFor[meta.Time]():                                  "Time",
	reflect.TypeFor[meta.MicroTime]():                             "MicroTime",
	reflect.TypeFor[meta.Duration]():                              "Duration",
	reflect.TypeFor[resource.Quantity]():                          "Quantity",
	reflect.TypeFor[intstr.IntOrString]():                         "IntOrString",
	reflect.TypeFor[runtime.RawExtension]():                       "RawExtension",
	reflect.TypeFor[meta.FieldsV1]():                              "FieldsV1",
	reflect.TypeFor[apiextensions.JSON]():                         "JSON",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrArray]():       "SchemaOrArray",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrBool]():        "SchemaOrBool",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrStringArray](): "SchemaOrStrings",
}

var packages = strings.NewReplacer("k8s.io/api/", "", "k8s.io/apimachinery/pkg/apis/", "",
	"k8s.io/apiextensions-apiserver/pkg/apis/", "", "k8s.io/kube-aggregator/pkg/apis/", "", "k8s.io/apimachinery/pkg/", "")

type printer struct {
	definitions map[string]spec.Schema
	types       map[string]string
	out         bytes.Buffer
}

func main() {
	log.SetFlags(0)
	printer := printer{definitions: definitions(), types: map[string]string{}}
	for kind := range served.Kinds() {
		name := printer.add(kind.Of)
		fmt.Fprintf(&printer.out, "! %s %s %s\n", kind.GroupVersion(), kind.Kind, name)
	}
	for _, name := range slices.Sorted(maps.Keys(printer.types)) {
		printer.out.WriteString(printer.types[name])
	}
	if len(os.Args) < 2 {
		os.Stdout.Write(printer.out.Bytes())
		return
	}
	var packed bytes.Buffer
	writer, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	writer.Write(printer.out.Bytes())
	writer.Close()
	if err := os.WriteFile(os.Args[1], packed.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}

// definitions returns the OpenAPI definition of each type, by model name.
func definitions() map[string]spec.Schema {
	found := map[string]spec.Schema{}
	for name, definition := range openapi.GetOpenAPIDefinitions(func(path string) spec.Ref { return spec.Ref{} }) {
		found[name] = definition.Schema
	}
	return found
}

// definition returns the OpenAPI definition of a type, or an empty one.
func (p *printer) definition(of reflect.Type) spec.Schema {
	if named, ok := reflect.New(of).Elem().Interface().(interface{ OpenAPIModelName() string }); ok {
		return p.definitions[named.OpenAPIModelName()]
	}
	return p.definitions[of.PkgPath()+"."+of.Name()]
}

// add describes a struct and the types of its fields, and returns its name.
func (p *printer) add(of reflect.Type) string {
	name := packages.Replace(of.PkgPath()) + "." + of.Name()
	if _, known := p.types[name]; known {
		return name
	}
	p.types[name] = ""
	definition := p.definition(of)
	var lines strings.Builder
	fmt.Fprintf(&lines, "= %s", name)
	if definition.Extensions["x-kubernetes-map-type"] == "atomic" {
		lines.WriteString(" atomic")
	}
	if union := definition.Extensions["x-kubernetes-unions"]; union != nil {
		lines.WriteString(" union")
	}
	lines.WriteString("\n")
	for i := range of.NumField() {
		p.field(&lines, of.Field(i), definition)
	}
	p.types[name] = lines.String()
	return name
}

func (p *printer) field(lines *strings.Builder, field reflect.StructField, definition spec.Schema) {
	tag, tagged := field.Tag.Lookup("json")
	name, options, _ := strings.Cut(tag, ",")
	if !field.IsExported() || !tagged || name == "-" {
		return
	}
	inline := name == ""
	var flags []string
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty", "omitzero":
			flags = append(flags, option)
		}
	}
	number := "0"
	if protobuf := strings.Split(field.Tag.Get("protobuf"), ","); len(protobuf) > 1 {
		number = protobuf[1]
	}
	if inline {
		name = "-"
	}
	described := definition.Properties[name]
	flags = append(flags, extensions(described)...)
	if slices.Contains(definition.Required, name) {
		flags = append(flags, "required")
	}
	if strategy := field.Tag.Get("patchStrategy"); strategy != "" {
		flags = append(flags, "patch="+strings.ReplaceAll(strategy, ",", "+"))
	}
	if key := field.Tag.Get("patchMergeKey"); key != "" {
		flags = append(flags, "key="+key)
	}
	if fallback, ok := fallback(described); ok {
		flags = append(flags, "default="+fallback)
	}
	fmt.Fprintf(lines, "%s %s %s", name, number, p.expression(field.Type))
	for _, flag := range flags {
		lines.WriteString(" " + flag)
	}
	lines.WriteString("\n")
}

// extensions returns how lists and maps of a field are merged.
func extensions(of spec.Schema) []string {
	var found []string
	if kind, ok := of.Extensions["x-kubernetes-list-type"].(string); ok {
		keys := []string{}
		if named, ok := of.Extensions["x-kubernetes-list-map-keys"].([]any); ok {
			for _, key := range named {
				keys = append(keys, key.(string))
			}
		}
		found = append(found, strings.TrimSuffix("list="+kind+":"+strings.Join(keys, ","), ":"))
	}
	if kind, ok := of.Extensions["x-kubernetes-map-type"].(string); ok {
		found = append(found, "map="+kind)
	}
	sort.Strings(found)
	return found
}

// fallback returns the default of a field as JSON. An empty string counts: it is the value of a list key that an item leaves out.
func fallback(of spec.Schema) (string, bool) {
	if of.Default == nil {
		return "", false
	}
	text, err := json.Marshal(of.Default)
	if err != nil || slices.Contains([]string{"{}", "null"}, string(text)) {
		return "", false
	}
	return string(text), true
}

// expression returns the notation of a type: `*` is a pointer, `[]` a list, `{}` a map with string keys; a named scalar has its name
// after a colon.
func (p *printer) expression(of reflect.Type) string {
	if name, ok := special[of]; ok {
		return name
	}
	own := ""
	if of.PkgPath() != "" {
		own = ":" + path.Base(of.PkgPath()) + "." + of.Name()
	}
	switch of.Kind() {
	case reflect.Pointer:
		return "*" + p.expression(of.Elem())
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + p.expression(of.Elem()) + wrapped(of)
	case reflect.Map:
		return "{}" + p.expression(of.Elem())
	case reflect.Struct:
		return p.add(of)
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64, reflect.Float64:
		return of.Kind().String() + own
	case reflect.Uint8:
		return "int32" + own
	}
	log.Fatalf("%s: %s is not known", of, of.Kind())
	return ""
}

// wrapped reports whether a list is a separate message in protobuf.
func wrapped(of reflect.Type) string {
	if _, message := reflect.New(of).Interface().(interface{ Size() int }); message {
		return "%"
	}
	return ""
}
