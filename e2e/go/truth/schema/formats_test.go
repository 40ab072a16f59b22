package schema

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"testing"

	"kube-informer-e2e/truth"
)

//go:embed formats.json
var formatsText []byte

// TestFormats writes whether strings match every format and many patterns, and invalid patterns.
func TestFormats(t *testing.T) {
	file := truth.Create(t, "schema/formats.jsonl")
	lists := map[string][]string{}
	truth.Check(json.Unmarshal(formatsText, &lists))
	ask := func(schema object, spec any) {
		root := object{"type": "object", "properties": object{"spec": schema}}
		object := object{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": object{"name": "x"}, "spec": spec}
		made := &line{Schema: truth.JSON(root), Object: truth.JSON(object)}
		if made.answer() {
			file.Put(made)
		}
	}
	askAll := func(keyword string, choices, texts []string) {
		for _, text := range texts {
			properties, spec := object{}, object{}
			for n, choice := range choices {
				name := fmt.Sprintf("%c%d", keyword[0], n)
				properties[name], spec[name] = object{"type": "string", keyword: choice}, text
			}
			ask(object{"type": "object", "properties": properties}, spec)
		}
	}
	askAll("format", lists["formats"], lists["texts"])
	askAll("pattern", lists["patterns"], lists["texts of patterns"])
	for _, pattern := range lists["wrong patterns"] {
		ask(object{"type": "string", "pattern": pattern}, "a")
	}
}
