package tables

import (
	"fmt"
	"math/rand"
	"strings"
	"time"

	"kube-informer-e2e/truth"

	"k8s.io/apimachinery/pkg/api/resource"
)

// random is the source of random numbers; each kind has its own.
var random *rand.Rand

// object is an object as decoded JSON.
type object = map[string]any

func one[T any](choices ...T) T { return choices[random.Intn(len(choices))] }

func chance(percent int) bool { return random.Intn(100) < percent }

func upto(n int) int { return random.Intn(n + 1) }

// put sets a member most of the time, so that any member may be missing.
func put(o object, percent int, name string, value func() any) {
	if chance(percent) {
		o[name] = value()
	}
}

func some[T any](most int, value func() T) []T {
	list := []T{}
	for i := upto(most); i > 0; i-- {
		list = append(list, value())
	}
	return list
}

// ago returns a time before now, of any order of magnitude; sometimes in the future or missing.
func ago() string {
	if chance(2) {
		return "0001-01-01T00:00:00Z"
	}
	var seconds int64
	switch random.Intn(7) {
	case 0:
		seconds = int64(random.Intn(10)) - 4
	case 1:
		seconds = random.Int63n(700)
	case 2:
		seconds = random.Int63n(4 * 3600)
	case 3:
		seconds = random.Int63n(60 * 3600)
	case 4:
		seconds = random.Int63n(10 * 86400)
	case 5:
		seconds = random.Int63n(3 * 365 * 86400)
	default:
		seconds = random.Int63n(12 * 365 * 86400)
	}
	// Whole units are frequent.
	if chance(20) {
		seconds = seconds / 3600 * 3600
	}
	return time.Now().Add(-time.Duration(seconds) * time.Second).UTC().Format(time.RFC3339)
}

func microAgo() string {
	t := truth.Must(time.Parse(time.RFC3339, ago()))
	if chance(50) && t.Year() > 1 {
		t = t.Add(500 * time.Millisecond)
	}
	return t.Format("2006-01-02T15:04:05.000000Z07:00")
}

func word() string {
	return one("web", "db", "cache", "api", "proxy", "a", "b", "worker-1", "x.y", "front-end", "zeta")
}

func labelMap() any {
	labels := object{}
	for i := upto(4); i > 0; i-- {
		name := one("app", "app-x", "app.kubernetes.io/name", "tier", "role", "a", "a-b", "A", "example.com/z")
		labels[name] = one("", "web", "v1", "x_y", "Z")
	}
	return labels
}

func selector() any {
	s := object{}
	put(s, 70, "matchLabels", labelMap)
	put(s, 40, "matchExpressions", func() any {
		return some(3, func() object {
			e := object{"key": one("app", "b", "tier", "x.io/y", "a"), "operator": one("In", "NotIn", "Exists", "DoesNotExist")}
			if op := e["operator"]; op == "In" || op == "NotIn" {
				e["values"] = []string{one("c", "z"), one("b", "a")}
				if chance(40) {
					e["values"] = []string{one("x", "y")}
				}
			}
			if chance(4) {
				e["operator"] = one("In", "Odd", "Exists")
			}
			if chance(3) {
				e["key"] = one("-bad", "a/b/c", "Upper.io/ok", "bad!")
			}
			return e
		})
	})
	return s
}

func metadata(namespaced bool) object {
	m := object{
		"name": fmt.Sprintf("%s-%d", word(), random.Intn(1000)), "resourceVersion": fmt.Sprint(random.Intn(1e6)),
		"uid": fmt.Sprintf("u-%d", random.Intn(1e9)),
	}
	if namespaced {
		m["namespace"] = one("default", "kube-system")
	}
	put(m, 95, "creationTimestamp", func() any { return ago() })
	put(m, 20, "deletionTimestamp", func() any { return time.Now().UTC().Format(time.RFC3339) })
	put(m, 50, "labels", labelMap)
	put(m, 20, "annotations", func() any { return object{"note": word()} })
	return m
}

func base(apiVersion, kind string, namespaced bool) object {
	return object{"apiVersion": apiVersion, "kind": kind, "metadata": metadata(namespaced)}
}

func annotate(o object, key, value string) {
	m := o["metadata"].(object)
	if m["annotations"] == nil {
		m["annotations"] = object{}
	}
	m["annotations"].(object)[key] = value
}

func condition(types ...string) func() object {
	return func() object {
		c := object{"type": one(types...), "status": one("True", "True", "False", "Unknown")}
		put(c, 50, "reason", func() any { return one("SchedulingGated", "Other", "Because") })
		return c
	}
}

func containers() any {
	return some(3, func() object {
		c := object{"name": word()}
		put(c, 90, "image", func() any { return one("nginx", "nginx:1.2", "registry.io/x/y@sha256:abc", "") })
		return c
	})
}

func podTemplate() any {
	t := object{}
	put(t, 80, "metadata", func() any { return object{"labels": labelMap()} })
	spec := object{"containers": containers()}
	put(spec, 40, "nodeSelector", labelMap)
	t["spec"] = spec
	return t
}

func address() string {
	return one("10.0.0.1", "10.0.0.2", "192.168.7.7", "fd00::1", "2001:db8::5", "172.16.0.9", "203.0.113.250", "10.255.255.254")
}

func number(most int) func() any { return func() any { return upto(most) } }

// amountText returns a quantity as a user may write it, or a similar string.
func amountText() string {
	if chance(60) {
		return one("1", "0", "100m", "1500m", "1.5", "0.5", "1Gi", "8Gi", "1024Mi", "1.5Gi", "500M", "1e3", "1E3", "2k", "10Ki", "1000Ki",
			"0.1", "100u", "5n", "1.500", "+5", "12e6", "1T", "3Pi", "2Ei", "16Ei", "0Gi", "1024", "1000", "1000m", "-5", "-1.5Gi", "0.3Ki",
			"1.1Ki", "3e-3", "100000", "9223372036854775807", "99999999999999999999")
	}
	var b strings.Builder
	b.WriteString(one("", "", "", "", "-", "+"))
	digits := func(n int) {
		for range n {
			b.WriteString(one("0", "0", "1", "2", "5", "8", "9", "4"))
		}
	}
	digits(upto(20))
	if chance(35) {
		b.WriteString(".")
		digits(upto(11))
	}
	b.WriteString(one("", "", "m", "u", "n", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "e-2", "E5", "e1",
		"e+6", "e-12", "e20"))
	return b.String()
}

// amount returns a valid quantity.
func amount() any {
	for {
		text := amountText()
		if _, err := resource.ParseQuantity(text); err == nil {
			return text
		}
	}
}
