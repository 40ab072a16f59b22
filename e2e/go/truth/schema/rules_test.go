package schema

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kube-informer-e2e/truth"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

//go:embed rules.txt
var rulesText string

//go:embed thing.json
var thingText []byte

// TestRules writes rules with valid and invalid objects, and columns of the same objects.
func TestRules(t *testing.T) {
	file := truth.Sample(t, "schema/rules.jsonl", 1_700_000)
	rules := readRules()
	synctest.Test(t, func(t *testing.T) {
		// The clock of a test starts before the times in these objects.
		time.Sleep(25 * 365 * 24 * time.Hour)
		r := &ruled{random: &random{rand.New(rand.NewSource(truth.Seed(1)))}, rules: rules}
		for n := range truth.Times(6 * len(rules["right"])) {
			// Read again each time, because it is changed.
			thing := map[string]object{}
			truth.Check(utiljson.Unmarshal(thingText, &thing))
			r.values = thing["values"]
			schema, shown := r.schema(n, thing["properties"])
			made := &line{Schema: truth.JSON(schema), Columns: truth.JSON(r.columns())}
			object := r.thing()
			made.Object = truth.JSON(object)
			if r.chance(0.45) {
				made.Old = truth.JSON(r.before(object))
			}
			if made.answer() {
				file.Offer(shown[0], made, showing(made, shown))
			}
		}
	})
}

// showing returns the rules and columns of a case for the sample.
func showing(of *line, rules []string) []string {
	var what []string
	for _, rule := range rules {
		for _, shown := range of.shows() {
			what = append(what, rule+" "+shown)
		}
	}
	var columns []any
	truth.Check(json.Unmarshal([]byte(cmp.Or(string(of.Columns), "[]")), &columns))
	for n, cell := range of.Cells {
		what = append(what, fmt.Sprint(columns[n], cell))
	}
	return what
}

// readRules returns the rules by type.
func readRules() map[string][]string {
	found, sort := map[string][]string{}, ""
	for text := range strings.Lines(rulesText) {
		text = strings.TrimSuffix(text, "\n")
		switch {
		case strings.HasPrefix(text, "#"):
		case strings.HasPrefix(text, "[") && !strings.Contains(text, " "):
			sort = strings.Trim(text, "[]")
		default:
			found[sort] = append(found[sort], text)
		}
	}
	return found
}

// ruled generates schemas with rules, and objects for them.
type ruled struct {
	*random
	rules  map[string][]string
	values object
}

// schema adds rules at random places of a schema, and returns them. Every valid rule gets its turn.
func (r *ruled) schema(turn int, properties object) (object, []string) {
	spec := object{"type": "object", "properties": properties}
	root := object{"type": "object", "properties": object{"spec": spec}}
	var shown []string
	put := func(to object, rules ...any) {
		list, _ := to["x-kubernetes-validations"].([]any)
		to["x-kubernetes-validations"] = append(list, rules...)
		for _, rule := range rules {
			shown = append(shown, rule.(object)["rule"].(string))
		}
	}
	of := func(sort string) any { return object{"rule": one(r.random, r.rules[sort]...)} }
	inside := func(path ...string) object {
		at := properties
		for _, step := range path {
			at = at[step].(object)
		}
		return at
	}
	switch kind := r.Float64(); {
	case kind < 0.1:
		put(spec, r.rule(one(r.random, r.rules["wrong"]...)))
	case kind < 0.75:
		put(spec, r.rule(r.rules["right"][turn%len(r.rules["right"])]))
		if r.chance(0.33) {
			put(spec, r.rule(one(r.random, r.rules["right"]...)))
		}
	case kind < 0.8:
		put(inside("lm", "items"), of("item"), of("item"))
	case kind < 0.85:
		put(root, of("root"), of("root"))
	case kind < 0.9:
		put(inside("s"), of("text"), of("text"))
	case kind < 0.93:
		put(inside("m", "additionalProperties"), of("text"))
	case kind < 0.96:
		put(inside("ls", "items"), of("text"))
	default:
		put(spec, object{"rule": one(r.random, r.rules["optional"]...), "optionalOldSelf": true})
	}
	if r.chance(0.1) {
		put(spec, r.rule(one(r.random, r.rules["wrong"]...)))
	}
	return root, shown
}

// rule adds optional fields to a rule.
func (r *ruled) rule(text string) object {
	made := object{"rule": text}
	put(r.random, made, 0.15, "message", " some message ")
	put(r.random, made, 0.15, "messageExpression", "'made: ' + string(1 + 1)", "'x'.charAt(0)", "''", `'a\nb'`, "string(1/0)",
		"'%s!'.format([self])")
	put(r.random, made, 0.15, "reason", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate", "FieldValueInvalid")
	put(r.random, made, 0.1, "fieldPath", ".s", ".o.x", ".m['k']", ".o['a-b']", ".zz")
	return made
}

// thing generates an object with some of the values.
func (r *ruled) thing() object {
	spec := object{}
	for _, name := range slices.Sorted(maps.Keys(r.values)) {
		if r.chance(0.85) {
			spec[name] = one(r.random, r.values[name].([]any)...)
		}
	}
	return object{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": object{"name": "x"}, "spec": spec}
}

// before generates an old object with many equal values.
func (r *ruled) before(of object) object {
	if r.chance(0.1) {
		return of
	}
	made := r.thing()
	spec := of["spec"].(object)
	for _, name := range slices.Sorted(maps.Keys(spec)) {
		if r.chance(0.6) {
			made["spec"].(object)[name] = spec[name]
		}
	}
	return made
}

// None of these selects several members of a map, whose order is random.
var columnPaths = []string{
	".spec.i", ".spec.s", ".spec.l", ".spec.l[0]", `.spec.lm[?(@.name=="a")].v`, ".spec.ts", ".spec.d", ".spec.b", ".spec.o",
	".spec.m['a']", ".spec.lm[*].name", ".metadata.name", ".spec.n", ".spec.zz.q", ".spec.l[-1]", ".spec.l[0:1]",
	".spec.lm[?(@.v>0)].name", `.spec.o.c\.d/e`, ".spec.l[9]", ".spec.lm[?(@.tags)].name", "{.spec.i}", ".spec.s[0]", ".spec.by", ".spec.ios",
}

func (r *ruled) columns() []object {
	var made []object
	for range 3 {
		kind := one(r.random, "string", "integer", "number", "boolean", "date")
		made = append(made, object{"name": "A", "type": kind, "jsonPath": one(r.random, columnPaths...)})
	}
	return made
}
