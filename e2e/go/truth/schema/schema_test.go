// Package schema writes kube-apiserver's results for schemas of custom resources and for objects that are validated with them.
//
// Each line has a schema, and optionally an object, an old object and columns; then the errors of the schema (`definition`), the
// unknown fields, the object without them (`pruned`) and with defaults (`defaulted`) where they differ, its validation errors
// (`causes`), and the content of the columns (`cells`). `structures` are random schemas, `rules` are rules in CEL, and `formats` are
// strings with every format and many patterns.
package schema

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"

	"kube-informer-e2e/truth"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	definitions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// object is an object as decoded JSON.
type object = map[string]any

// line is a case: the input, and then kube-apiserver's result.
type line struct {
	Schema  json.RawMessage `json:"schema"`
	Object  json.RawMessage `json:"object,omitempty"`
	Old     json.RawMessage `json:"old,omitempty"`
	Columns json.RawMessage `json:"columns,omitempty"`

	Definition []cause         `json:"definition,omitempty"`
	Unknown    []string        `json:"unknown,omitempty"`
	Pruned     json.RawMessage `json:"pruned,omitempty"`
	Defaulted  json.RawMessage `json:"defaulted,omitempty"`
	Causes     []cause         `json:"causes,omitempty"`
	Cells      []any           `json:"cells,omitempty"`
	// The error of invalid metadata in the object; there is no further result then.
	Unreadable string `json:"unreadable,omitempty"`
}

// cause is a validation error.
type cause struct {
	Reason  string `json:"reason"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

var scheme = runtime.NewScheme()

func init() { install.Install(scheme) }

// A type without a name gets a new one each time.
var unnamed = regexp.MustCompile(`selfType[A-Za-z0-9.]*`)

func causes(errors field.ErrorList) []cause {
	var found []cause
	for _, err := range errors {
		found = append(found, cause{string(err.Type), err.Field, unnamed.ReplaceAllString(err.ErrorBody(), "object")})
	}
	slices.SortFunc(found, func(a, b cause) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	return found
}

// answer adds kube-apiserver's result to a case, unless there is none.
func (l *line) answer() (isAnswered bool) {
	// Some rules panic when they are compiled, and some objects when they are validated.
	defer func() { isAnswered = recover() == nil && isAnswered }()
	var given v1.JSONSchemaProps
	if utiljson.Unmarshal(l.Schema, &given) != nil {
		return false
	}
	definition := &apiextensions.CustomResourceDefinition{}
	if scheme.Convert(definitionOf(&given), definition, nil) != nil {
		return false
	}
	l.Definition = causes(definitions.ValidateCustomResourceDefinition(context.Background(), definition))
	if len(l.Definition) > 0 || l.Object == nil {
		return true
	}
	schema := definition.Spec.Validation.OpenAPIV3Schema
	known := truth.Must(structural.NewStructural(schema))
	truth.Check(defaulting.PruneDefaults(known))
	made := decoded(l.Object)
	if !l.complete(known, made) {
		return true
	}
	l.Causes = causes(l.check(schema, known, made))
	l.show(made)
	return true
}

func definitionOf(schema *v1.JSONSchemaProps) *v1.CustomResourceDefinition {
	made := &v1.CustomResourceDefinition{
		ObjectMeta: meta.ObjectMeta{Name: "things.example.com"},
		Spec: v1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: v1.NamespaceScoped,
			Names: v1.CustomResourceDefinitionNames{Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList"},
			Versions: []v1.CustomResourceDefinitionVersion{
				{Name: "v1", Served: true, Storage: true, Schema: &v1.CustomResourceValidation{OpenAPIV3Schema: schema}},
			},
		},
		Status: v1.CustomResourceDefinitionStatus{StoredVersions: []string{"v1"}},
	}
	v1.SetDefaults_CustomResourceDefinition(made)
	v1.SetDefaults_CustomResourceDefinitionSpec(&made.Spec)
	return made
}

// complete prunes unknown fields of an object, and adds defaults, like a request.
func (l *line) complete(known *structural.Structural, made object) bool {
	_, _, unknown, err := objectmeta.GetObjectMetaWithOptions(made, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		l.Unreadable = err.Error()
		return false
	}
	l.Unknown = append(unknown, pruning.PruneWithOptions(made, known, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	defaulting.PruneNonNullableNullsWithoutDefaults(made, known)
	wrong, paths := objectmeta.CoerceWithOptions(nil, made, known, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if wrong != nil {
		l.Unreadable = wrong.Error()
		return false
	}
	l.Unknown = slices.Sorted(slices.Values(append(l.Unknown, paths...)))
	pruned := truth.JSON(made)
	if !bytes.Equal(pruned, truth.JSON(decoded(l.Object))) {
		l.Pruned = pruned
	}
	defaulting.Default(made, known)
	if defaulted := truth.JSON(made); !bytes.Equal(defaulted, pruned) {
		l.Defaulted = defaulted
	}
	return true
}

// check returns the validation errors of an object, in kube-apiserver's order and under its conditions.
func (l *line) check(schema *apiextensions.JSONSchemaProps, known *structural.Structural, made object) field.ErrorList {
	validator, _, err := validation.NewSchemaValidator(schema)
	truth.Check(err)
	var wrong field.ErrorList
	var old object
	var options []cel.Option
	if l.Old != nil {
		old = decoded(l.Old)
		correlated := common.NewCorrelatedObject(made, old, &model.Structural{Structural: known})
		wrong = validation.ValidateCustomResourceUpdate(nil, made, old, validator, validation.WithRatcheting(correlated))
		options = append(options, cel.WithRatcheting(correlated))
	} else {
		wrong = validation.ValidateCustomResource(nil, made, validator)
	}
	wrong = append(wrong, objectmeta.Validate(context.Background(), nil, made, known, false)...)
	if old == nil || len(listtype.ValidateListSetsAndMaps(nil, known, old)) == 0 {
		wrong = append(wrong, listtype.ValidateListSetsAndMaps(nil, known, made)...)
	}
	rules := cel.NewValidator(known, true, celconfig.PerCallLimit)
	if rules == nil {
		return wrong
	}
	if slices.ContainsFunc(wrong, isInTheWay) {
		unchecked := "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
		return append(wrong, field.Invalid(nil, nil, unchecked))
	}
	var before any
	if old != nil {
		before = old
	}
	broken, _ := rules.Validate(context.Background(), nil, known, made, before, celconfig.RuntimeCELCostBudget, options...)
	return append(wrong, broken...)
}

// isInTheWay reports whether an error prevents the evaluation of rules.
func isInTheWay(err *field.Error) bool {
	switch err.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}

// show adds the content of columns for an object, without its name.
func (l *line) show(made object) {
	if l.Columns == nil {
		return
	}
	var columns []v1.CustomResourceColumnDefinition
	truth.Check(json.Unmarshal(l.Columns, &columns))
	// The error of a column is recorded, and the column has no content.
	convertor, _ := tableconvertor.New(columns)
	table, err := convertor.ConvertToTable(context.Background(), &unstructured.Unstructured{Object: made}, nil)
	if err == nil && len(table.Rows) == 1 {
		l.Cells = table.Rows[0].Cells[1:]
	}
}

func decoded(text []byte) object {
	made := object{}
	truth.Check(utiljson.Unmarshal(text, &made))
	return made
}

// shows returns the content of a case for the sample: each kind of error, and the changes of the object.
func (l *line) shows() []string {
	what := []string{"fine"}
	for _, one := range l.Definition {
		what = append(what, "definition "+one.Reason+truth.Shape(one.Message))
	}
	for _, one := range l.Causes {
		what = append(what, "object "+one.Reason+truth.Shape(one.Message))
	}
	if l.Unknown != nil {
		what = append(what, "unknown "+truth.Shape(l.Unknown[0]))
	}
	if l.Defaulted != nil {
		what = append(what, "defaulted")
	}
	return what
}
