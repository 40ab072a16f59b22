// Package tables writes the results of kube-apiserver's printers for random objects of every kind.
//
// Each line is a case of one type: the `columns` of a kind, the `rows` of an object, those of a `list` where they differ, the whole
// `table` of a response, or the form of a `quantity`.
package tables

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"testing"
	"testing/synctest"
	"time"

	"kube-informer-e2e/truth"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	crdtable "k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/tableconvertor"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/rest"
	aggregator "k8s.io/kube-aggregator/pkg/apis/apiregistration/install"
	apiservice "k8s.io/kube-aggregator/pkg/registry/apiservice/etcd"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	"k8s.io/kubernetes/pkg/apis/storage"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/printers"
	"k8s.io/kubernetes/pkg/printers/internalversion"
	printerstorage "k8s.io/kubernetes/pkg/printers/storage"
)

// line is a case of one type.
type line struct {
	What    string            `json:"what"`
	ID      string            `json:"id,omitempty"`
	Now     string            `json:"now,omitempty"`
	Objects []json.RawMessage `json:"objects,omitempty"`
	Rows    []row             `json:"rows,omitempty"`
	Table   *metav1.Table     `json:"table,omitempty"`
	Text    string            `json:"text,omitempty"`
	Result  string            `json:"result,omitempty"`
	Include string            `json:"include,omitempty"`
}

type row struct {
	Cells      []any                      `json:"cells"`
	Conditions []metav1.TableRowCondition `json:"conditions,omitempty"`
}

// TestTables writes cases of every type and kind.
func TestTables(t *testing.T) {
	file := truth.Sample(t, "tables.jsonl", 550_000)
	synctest.Test(t, func(t *testing.T) {
		for n, kind := range kinds {
			random = rand.New(rand.NewSource(truth.Seed(n)))
			for i := range truth.Times(60 * kind.weight) {
				time.Sleep(time.Duration(random.Intn(3000)) * time.Millisecond)
				printed(file, kind, i)
			}
		}
		random = rand.New(rand.NewSource(truth.Seed(len(kinds))))
		for range truth.Times(40) {
			offer(file, "list", storageClasses())
		}
		for range truth.Times(500) {
			text := amountText()
			if amount, err := resource.ParseQuantity(text); err == nil {
				file.Put(line{What: "quantity", Text: text, Result: amount.String()})
			}
		}
	})
}

// printed prints an object of a kind, every tenth one in all forms; the first one has the columns.
func printed(file *truth.File, kind kind, i int) {
	object, served := decoded(kind.id, truth.JSON(kind.make()), i%2 == 0 || rounded[kind.id])
	table := converted(kind.id, object)
	if i == 0 {
		file.Put(line{What: "columns", ID: kind.id, Table: &metav1.Table{ColumnDefinitions: table.ColumnDefinitions}})
	}
	offer(file, kind.id, line{What: "rows", ID: kind.id, Now: now(), Objects: []json.RawMessage{served}, Rows: rowsOf(table)})
	if i%10 == 0 {
		for n, include := range []string{"None", "Metadata", "Object"} {
			whole := line{What: "table", ID: kind.id, Now: now(), Objects: []json.RawMessage{served}, Include: include}
			later := (i/10+n)%2 == 1
			whole.Table = wholeTable(converted(kind.id, object), served, include, later)
			file.Offer(kind.id+" table", whole, []string{fmt.Sprint(include, later)})
		}
	}
}

// offer offers a case with the content of its cells.
func offer(file *truth.File, sort string, of line) {
	var shows []string
	for _, row := range of.Rows {
		for column, cell := range row.Cells {
			shows = append(shows, fmt.Sprint(of.What, of.ID, column, truth.Shape(fmt.Sprint(cell))))
		}
		for _, condition := range row.Conditions {
			shows = append(shows, fmt.Sprint(of.What, of.ID, condition))
		}
	}
	file.Offer(sort, of, shows)
}

func now() string { return time.Now().UTC().Format(time.RFC3339Nano) }

var (
	convertor = printerstorage.TableConvertor{TableGenerator: printers.NewTableGenerator().With(internalversion.AddHandlers)}
	crdScheme = runtime.NewScheme()
	crdCodecs serializer.CodecFactory
)

func init() {
	install.Install(crdScheme)
	aggregator.Install(crdScheme)
	crdCodecs = serializer.NewCodecFactory(crdScheme)
}

// decoded returns an object in the internal version, and as it was sent; with defaults, if requested.
func decoded(id string, text []byte, defaulted bool) (runtime.Object, []byte) {
	scheme, codecs := legacyscheme.Scheme, legacyscheme.Codecs
	if id == definitions || id == apiServices {
		scheme, codecs = crdScheme, crdCodecs
	}
	object, kind, err := codecs.UniversalDeserializer().Decode(text, nil, nil)
	truth.Check(err)
	scheme.Default(object)
	if defaulted {
		object.GetObjectKind().SetGroupVersionKind(*kind)
		text = truth.JSON(object)
		// Values that JSON does not have (empty lists, unset times) must not matter.
		object, _, err = codecs.UniversalDeserializer().Decode(text, nil, nil)
		truth.Check(err)
	}
	internal := schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal}
	return truth.Must(scheme.ConvertToVersion(object, internal)), text
}

func converted(id string, object runtime.Object) *metav1.Table {
	var by rest.TableConvertor = convertor
	if id == definitions {
		by = crdtable.New()
	} else if id == apiServices {
		by = &apiservice.REST{}
	} else if unprinted[id] {
		by = rest.NewDefaultTableConvertor(schema.GroupResource{})
	}
	return truth.Must(by.ConvertToTable(context.Background(), object, nil))
}

func rowsOf(table *metav1.Table) []row {
	var rows []row
	for _, one := range table.Rows {
		rows = append(rows, row{one.Cells, one.Conditions})
	}
	return rows
}

// storageClasses is a list, because only lists show the default class.
func storageClasses() line {
	const id = "storageclasses.storage.k8s.io"
	list, made := &storage.StorageClassList{}, line{What: "list", ID: id, Now: now()}
	for i := range 1 + upto(4) {
		object, text := decoded(id, truth.JSON(storageClass()), i%2 == 0)
		list.Items = append(list.Items, *object.(*storage.StorageClass))
		made.Objects = append(made.Objects, text)
	}
	made.Rows = rowsOf(converted(id, list))
	return made
}

// wholeTable returns a table as a response has it: with the changes by kube-apiserver's handlers. Later tables of a watch have no
// columns.
func wholeTable(table *metav1.Table, served []byte, include string, later bool) *metav1.Table {
	if later {
		table.ColumnDefinitions = nil
	}
	for i := range table.ColumnDefinitions {
		table.ColumnDefinitions[i].Description = ""
	}
	for i := range table.Rows {
		item := &table.Rows[i].Object
		switch include {
		case "Object":
			*item = runtime.RawExtension{Raw: served}
		case "Metadata":
			partial := meta.AsPartialObjectMetadata(truth.Must(meta.Accessor(item.Object)))
			partial.GetObjectKind().SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
			item.Object = partial
		case "None":
			item.Object = nil
		}
	}
	table.TypeMeta = metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"}
	return table
}
