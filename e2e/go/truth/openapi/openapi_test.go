// Package openapi writes the OpenAPI documents of kube-apiserver as far as they describe requests and responses: without descriptions,
// and each schema once.
package openapi

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kube-informer-e2e/served"
	"kube-informer-e2e/truth"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

type object = map[string]any

// TestDocuments writes a line for each served group and version.
func TestDocuments(t *testing.T) {
	file := truth.Create(t, "openapi.jsonl")
	module := string(truth.Must(exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()))
	folder := filepath.Join(strings.TrimSpace(module), "api", "openapi-spec", "v3")
	seen, schemas := []schema.GroupVersion{}, map[string]bool{}
	for kind := range served.Kinds() {
		in := kind.GroupVersion()
		if slices.Contains(seen, in) {
			continue
		}
		seen = append(seen, in)
		text, err := os.ReadFile(filepath.Join(folder, name(in)))
		if err != nil {
			// Some kinds have no path.
			continue
		}
		document := object{}
		truth.Check(json.Unmarshal(text, &document))
		file.Put(object{"group": in.Group, "version": in.Version, "paths": paths(document), "components": components(document, schemas)})
	}
}

func name(in schema.GroupVersion) string {
	if in.Group == "" {
		return "api__" + in.Version + "_openapi.json"
	}
	return "apis__" + in.Group + "__" + in.Version + "_openapi.json"
}

// paths returns the id, the kind and the responses of each operation.
func paths(document object) object {
	made := object{}
	for path, item := range document["paths"].(object) {
		operations := object{}
		for method, operation := range item.(object) {
			operation, ok := operation.(object)
			if !ok {
				continue
			}
			kept := object{}
			for _, member := range []string{"operationId", "x-kubernetes-action", "x-kubernetes-group-version-kind"} {
				kept[member] = operation[member]
			}
			if schema := answered(operation); schema != nil {
				kept["responses"] = object{"200": object{"content": object{"application/json": object{"schema": schema}}}}
			}
			operations[method] = kept
		}
		made[path] = operations
	}
	return made
}

// answered returns the schema of an operation's response.
func answered(operation any) any {
	for _, step := range []string{"responses", "200", "content", "application/json", "schema"} {
		members, ok := operation.(object)
		if !ok {
			return nil
		}
		operation = members[step]
	}
	return operation
}

// components returns the schemas that were not returned before.
func components(document object, seen map[string]bool) object {
	made := object{}
	for name, schema := range document["components"].(object)["schemas"].(object) {
		if !seen[name] {
			seen[name] = true
			made[name] = withoutProse(schema)
		}
	}
	return object{"schemas": made}
}

// withoutProse removes descriptions, but not members with that name.
func withoutProse(schema any) any {
	switch schema := schema.(type) {
	case object:
		made := object{}
		for name, value := range schema {
			if _, isProse := value.(string); name != "description" || !isProse {
				made[name] = withoutProse(value)
			}
		}
		return made
	case []any:
		made := []any{}
		for _, item := range schema {
			made = append(made, withoutProse(item))
		}
		return made
	}
	return schema
}
