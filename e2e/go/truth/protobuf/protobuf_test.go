// Package protobuf writes random objects of every served kind, in JSON and in protobuf.
//
// Each case is a line with the API version, the kind, and the lengths of the two encodings, which follow: the object in JSON, and in
// protobuf with its envelope.
package protobuf

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"testing"
	"time"

	"kube-informer-e2e/served"
	"kube-informer-e2e/truth"

	core "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// message is an object with a protobuf encoding.
type message interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// TestProtobuf writes objects of every kind with an envelope, and a list.
func TestProtobuf(t *testing.T) {
	file := truth.Sample(t, "protobuf", 450_000)
	kinds := append([]served.Kind{{
		GroupVersionKind: core.SchemeGroupVersion.WithKind("ConfigMapList"), Of: reflect.TypeFor[core.ConfigMapList](),
	}}, slices.Collect(served.Kinds())...)
	for n, kind := range kinds {
		if _, ok := reflect.New(kind.Of).Interface().(message); !ok {
			continue
		}
		r := &random{Rand: rand.New(rand.NewSource(truth.Seed(n)))}
		for range truth.Times(60) {
			r.density, r.shows = one(r, 0.1, 0.3, 0.6, 1), nil
			made := reflect.New(kind.Of)
			r.fill(made.Elem(), 0)
			// Values that JSON or protobuf cannot represent (nanoseconds, empty lists) are removed.
			object := reflect.New(kind.Of).Interface().(message)
			truth.Check(json.Unmarshal(truth.JSON(made.Interface()), object))
			told := truth.Must(object.Marshal())
			object = reflect.New(kind.Of).Interface().(message)
			truth.Check(object.Unmarshal(told))
			object.GetObjectKind().SetGroupVersionKind(kind.GroupVersionKind)
			var packed bytes.Buffer
			truth.Check(protobuf.NewSerializer(nil, nil).Encode(object, &packed))
			text := truth.JSON(object)
			line := fmt.Appendf(nil, "%s %s %d %d\n%s%s", kind.GroupVersion(), kind.Kind, len(text), packed.Len(), text, packed.Bytes())
			file.Offer(kind.String(), line, r.shows)
		}
	}
}

// random fills objects.
type random struct {
	*rand.Rand
	// The fraction of members that are set.
	density float64
	// Each member that was set, with its value.
	shows []string
}

func one[T any](r *random, choices ...T) T { return choices[r.Intn(len(choices))] }

func (r *random) fill(value reflect.Value, depth int) {
	if made := r.special(value, depth); made != nil {
		value.Set(reflect.ValueOf(made))
		return
	}
	switch of := value.Type(); of.Kind() {
	case reflect.Pointer:
		made := reflect.New(of.Elem())
		r.fill(made.Elem(), depth)
		value.Set(made)
	case reflect.Struct:
		r.fillMembers(value, depth)
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			value.SetBytes([]byte(one(r, "", "a", "\x00\xff", "bytes")))
			return
		}
		count := r.Intn(3)
		value.Set(reflect.MakeSlice(of, count, count))
		for i := range count {
			r.fill(value.Index(i), depth+1)
		}
	case reflect.Map:
		value.Set(reflect.MakeMap(of))
		for range r.Intn(3) {
			key, item := reflect.New(of.Key()).Elem(), reflect.New(of.Elem()).Elem()
			r.fill(key, depth+1)
			r.fill(item, depth+1)
			value.SetMapIndex(key, item)
		}
	case reflect.String:
		value.SetString(one(r, "", "a", "b", "text", "é\u2028\n"))
	case reflect.Bool:
		value.SetBool(r.Intn(2) == 0)
	case reflect.Int32:
		value.SetInt(one[int64](r, 0, 1, -1, 300, 2147483647, -2147483648))
	case reflect.Int64:
		value.SetInt(one[int64](r, 0, 1, -1, 70000, 9223372036854775807, -9223372036854775808))
	case reflect.Uint8:
		value.SetUint(one[uint64](r, 0, 1, 255))
	case reflect.Float64:
		value.SetFloat(one(r, 0, 1, -2.5, 1e300))
	default:
		panic(fmt.Sprint(of, " is not known"))
	}
}

func (r *random) fillMembers(value reflect.Value, depth int) {
	often := r.density
	for range depth - 4 {
		often *= 0.7
	}
	of := value.Type()
	for i := range of.NumField() {
		field := of.Field(i)
		if !field.IsExported() || field.Type == reflect.TypeFor[meta.TypeMeta]() || field.Tag.Get("json") == "-" {
			continue
		}
		// Recursive types end at some depth.
		if value.Field(i).Kind() == reflect.Struct || r.Float64() < often && depth < 14 {
			r.fill(value.Field(i), depth+1)
		}
		r.shows = append(r.shows, fmt.Sprint(of, ".", field.Name, " ", shown(value.Field(i))))
	}
}

// shown returns a scalar, and for other values whether there is one.
func shown(value reflect.Value) any {
	if value.Kind() == reflect.Pointer && !value.IsNil() {
		value = value.Elem()
	}
	switch value.Kind() {
	case reflect.Slice, reflect.Map:
		return value.Len()
	case reflect.Struct, reflect.Pointer:
		return !value.IsZero()
	}
	return value.Interface()
}

// special generates types with a special form.
func (r *random) special(value reflect.Value, depth int) any {
	moment := time.Unix(one[int64](r, 0, 1_450_000_000, -5_000_000_000), 0).UTC()
	text := []byte(one(r, `{"a":1,"b":[true,null,"x"]}`, `{}`, `{"f:a":{".":{},"f:b":{}}}`))
	switch value.Interface().(type) {
	case resource.Quantity:
		return resource.MustParse(one(r, "0", "1", "500m", "1.5Gi", "1e3", "12E", "-1", "0.0001", "1234567890123456789012"))
	case meta.Time:
		return one(r, meta.Time{}, meta.NewTime(moment))
	case meta.MicroTime:
		return one(r, meta.MicroTime{}, meta.NewMicroTime(moment), meta.NewMicroTime(moment.Add(5*time.Microsecond)))
	case meta.Duration:
		return meta.Duration{Duration: one(r, 0, time.Second, 90*time.Minute+1500*time.Millisecond, -3*time.Hour)}
	case intstr.IntOrString:
		return one(r, intstr.FromInt32(0), intstr.FromInt32(-7), intstr.FromString(""), intstr.FromString("25%"))
	case runtime.RawExtension:
		return one(r, runtime.RawExtension{}, runtime.RawExtension{Raw: text})
	case meta.FieldsV1:
		return *meta.NewFieldsV1(string(text))
	case apiextensions.JSON:
		return apiextensions.JSON{Raw: []byte(one(r, string(text), `null`, `"x"`, `1`, `[1,2.5]`, `false`))}
	case apiextensions.JSONSchemaPropsOrBool:
		return apiextensions.JSONSchemaPropsOrBool{Allows: r.Intn(2) == 0, Schema: r.schema(depth)}
	case apiextensions.JSONSchemaPropsOrArray:
		if schema := r.schema(depth); schema != nil && r.Intn(2) == 0 {
			return apiextensions.JSONSchemaPropsOrArray{JSONSchemas: []apiextensions.JSONSchemaProps{*schema, {}}}
		}
		return apiextensions.JSONSchemaPropsOrArray{Schema: r.schema(depth)}
	case apiextensions.JSONSchemaPropsOrStringArray:
		if schema := r.schema(depth); schema != nil {
			return apiextensions.JSONSchemaPropsOrStringArray{Schema: schema}
		}
		return apiextensions.JSONSchemaPropsOrStringArray{Property: []string{"a", ""}}
	}
	return nil
}

// schema generates a schema inside of another, up to some depth.
func (r *random) schema(depth int) *apiextensions.JSONSchemaProps {
	if depth > 10 || r.Intn(3) == 0 {
		return nil
	}
	made := &apiextensions.JSONSchemaProps{}
	r.fill(reflect.ValueOf(made).Elem(), depth+3)
	return made
}
