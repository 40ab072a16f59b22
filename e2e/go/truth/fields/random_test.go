package fields

import (
	"maps"
	"math/rand"
	"slices"
	"strings"

	"kube-informer-e2e/truth"
)

// Fields that random objects often have; other fields of a large type are rare.
var popular = map[string]bool{}

func init() {
	for name := range strings.FieldsSeq(`containers name image ports env labels annotations replicas selector template spec metadata
		volumes status conditions data finalizers ownerReferences resources limits uid type port protocol containerPort value strategy
		rollingUpdate maxSurge matchLabels matchExpressions valueFrom secretKeyRef key args command tolerations clusterIPs externalIPs
		paused phase hostAliases ip imagePullSecrets`) {
		popular[name] = true
	}
}

// random generates and changes values of types.
type random struct {
	*rand.Rand
	types types
	// True if a list with keys may have equal items.
	duplicates bool
}

// chance returns true with this probability.
func (r *random) chance(of float64) bool { return r.Float64() < of }

func one[T any](r *random, choices ...T) T { return choices[r.Intn(len(choices))] }

func (r *random) text() string {
	if r.chance(0.04) {
		return one(r, "x<y&z", "\"q\"", "é\u00a0\n")
	}
	return one(r, "a", "b", "c", "d")
}

// object generates an object of a type, with as many attempts as needed.
func (r *random) object(name string, depth int) object {
	for {
		if made, ok := r.value(name, depth).(object); ok {
			return made
		}
	}
}

// present generates a value that is not null.
func (r *random) present(name string) any {
	for {
		if made := r.value(name, 1); made != nil {
			return made
		}
	}
}

// value generates a value of a type, rarely null.
func (r *random) value(name string, depth int) any {
	of := r.types[name]
	if of == nil {
		return r.text()
	}
	switch {
	case strings.HasSuffix(name, ".Quantity"):
		return one(r, "1", "2")
	case strings.HasSuffix(name, ".Time"):
		return one(r, "2000-01-01T00:00:00Z", "2001-01-01T00:00:00Z")
	case strings.HasSuffix(name, ".MicroTime"):
		return "2000-01-01T00:00:00.000000Z"
	}
	if r.chance(0.02) {
		return nil
	}
	var makers []func() any
	if of.Scalar != "" {
		makers = append(makers, func() any { return r.scalar(of.Scalar) })
	}
	if of.List != nil {
		makers = append(makers, func() any { return r.list(of.List, depth) })
	}
	if of.Map != nil {
		makers = append(makers, func() any { return r.members(of.Map, depth) })
	}
	switch {
	case len(makers) == 0:
		return r.text()
	case depth <= 0:
		return makers[0]()
	}
	return one(r, makers...)()
}

func (r *random) scalar(of string) any {
	switch {
	case of == "numeric" && r.chance(0.03):
		return float64(r.Intn(4)) + 0.5
	case of == "numeric":
		return int64(r.Intn(4))
	case of == "boolean":
		return r.chance(0.5)
	case of == "untyped" && r.chance(0.5):
		return int64(r.Intn(3))
	}
	return r.text()
}

func (r *random) list(of *listOf, depth int) []any {
	made := []any{}
	if depth <= 0 {
		return made
	}
	seen := map[string]bool{}
	for range r.Intn(4) {
		item := r.item(of, depth)
		identity := r.identity(of, item)
		if of.Relation == "associative" && (item == nil || seen[identity] && !(r.duplicates && r.chance(0.2))) {
			continue
		}
		seen[identity] = true
		made = append(made, item)
	}
	return made
}

// item generates an item of a list, mostly with its keys.
func (r *random) item(of *listOf, depth int) any {
	item := r.value(of.Items, depth-1)
	members, ok := item.(object)
	if !ok {
		return item
	}
	for i, key := range of.Keys {
		field, ok := r.types[of.Items].Map.Fields[key]
		if ok && (field.Default != nil || i > 0) && r.chance(0.3) {
			delete(members, key)
			continue
		}
		members[key] = r.present(field.Type)
	}
	return item
}

// identity returns the key of an item.
func (r *random) identity(of *listOf, item any) string {
	members, ok := item.(object)
	if !ok || len(of.Keys) == 0 {
		return string(truth.JSON(item))
	}
	var keys []any
	for _, key := range of.Keys {
		value, ok := members[key]
		if !ok {
			value = r.types[of.Items].Map.Fields[key].Default
		}
		keys = append(keys, value)
	}
	return string(truth.JSON(keys))
}

func (r *random) members(of *mapOf, depth int) object {
	made := object{}
	if depth <= 0 {
		return made
	}
	for _, name := range of.names() {
		often := 0.02
		if popular[name] || len(of.Fields) < 12 {
			often = 0.45
		}
		if r.chance(often) && name != "managedFields" && name != "apiVersion" && name != "kind" {
			made[name] = r.value(of.Fields[name].Type, depth-1)
		}
	}
	if of.Element != "" {
		for range r.Intn(4) {
			made[r.text()] = r.value(of.Element, depth-1)
		}
	}
	return made
}

// changed returns an object with a few changes, or a new object if nothing is left of it.
func (r *random) changed(name string, of object, rate float64) object {
	if made, ok := r.change(name, clone(of), 6, rate).(object); ok {
		return made
	}
	return r.object(name, 6)
}

// change changes a value of a type at some places.
func (r *random) change(name string, value any, depth int, rate float64) any {
	of := r.types[name]
	if of == nil {
		return value
	}
	if r.chance(rate * 0.3) {
		return r.value(name, depth)
	}
	switch value := value.(type) {
	case object:
		if of.Map != nil {
			return r.changeMembers(of.Map, value, depth, rate)
		}
		return value
	case []any:
		if of.List != nil {
			return r.changeItems(of.List, value, depth, rate)
		}
		return value
	}
	if r.chance(rate) {
		return r.value(name, depth)
	}
	return value
}

func (r *random) changeMembers(of *mapOf, value object, depth int, rate float64) object {
	made := object{}
	for _, name := range slices.Sorted(maps.Keys(value)) {
		if name == "managedFields" || name == "uid" || name == "apiVersion" || name == "kind" {
			made[name] = value[name]
			continue
		}
		if r.chance(rate) {
			continue
		}
		member := of.Element
		if field, ok := of.Fields[name]; ok {
			member = field.Type
		}
		made[name] = r.change(member, value[name], depth-1, rate)
	}
	if r.chance(rate * 2) {
		for name, value := range r.members(of, min(depth, 3)) {
			if _, ok := made[name]; !ok {
				made[name] = value
			}
		}
	}
	return made
}

func (r *random) changeItems(of *listOf, value []any, depth int, rate float64) []any {
	made, seen := []any{}, map[string]bool{}
	add := func(item any) {
		identity := r.identity(of, item)
		if of.Relation == "associative" && (item == nil || seen[identity] && !(r.duplicates && r.chance(0.5))) {
			return
		}
		seen[identity] = true
		made = append(made, item)
	}
	for _, item := range value {
		if r.chance(rate) {
			continue
		}
		changed := r.change(of.Items, item, depth-1, rate)
		before, wasObject := item.(object)
		after, isObject := changed.(object)
		if wasObject && isObject {
			keepKeys(of, before, after)
		} else if len(of.Keys) > 0 {
			changed = item
		}
		add(changed)
	}
	if r.chance(rate * 2) {
		for _, item := range r.list(of, min(depth, 3)) {
			add(item)
		}
	}
	if r.chance(rate) {
		r.Shuffle(len(made), func(i, j int) { made[i], made[j] = made[j], made[i] })
	}
	return made
}

func keepKeys(of *listOf, from, to object) {
	for _, key := range of.Keys {
		if value, ok := from[key]; ok {
			to[key] = value
		} else {
			delete(to, key)
		}
	}
}

// broken replaces a value at one place by one of a wrong type.
func (r *random) broken(value any) any {
	wrong := func() any {
		return one[any](r, int64(7), "text", true, []any{"l"}, object{"m": int64(1)}, 2.5, nil)
	}
	switch value := value.(type) {
	case object:
		if len(value) == 0 || r.chance(0.2) {
			value["bogus"] = wrong()
			return value
		}
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(value)), func(name string) bool { return name == "apiVersion" || name == "kind" })
		if len(names) == 0 {
			return value
		}
		name := one(r, names...)
		if r.chance(0.15) {
			delete(value, name)
			return value
		}
		value[name] = r.broken(value[name])
		return value
	case []any:
		switch {
		case len(value) > 0 && r.chance(0.7):
			value[r.Intn(len(value))] = r.broken(value[r.Intn(len(value))])
			return value
		case len(value) > 0 && r.chance(0.5):
			return append(value, value[0])
		}
	}
	return wrong()
}
