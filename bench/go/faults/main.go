// Faults watches a collection with client-go's informer, with default settings, until stdin ends, and prints the state of the cache
// whenever it has changed. The programs of the other clients print the same; see faults/src/client.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// tick is how often the state is read.
	tick = 50 * time.Millisecond
	// resync is the period of the sample controller.
	resync = 30 * time.Second
)

type line struct {
	Synced bool   `json:"synced"`
	Unwell bool   `json:"unwell"`
	Store  string `json:"store"`
	Told   string `json:"told"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

func run() error {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the server")
	widgets := flag.Bool("widgets", false, "widgets instead of config maps")
	namespace := flag.String("namespace", metav1.NamespaceAll, "one namespace instead of all")
	selector := flag.String("selector", "", "only objects with these labels")
	flag.Parse()
	informer, err := newInformer(*kubeconfig, *widgets, *namespace, *selector)
	if err != nil {
		return err
	}
	told := told{objects: map[string]uint64{}}
	err = informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) { told.failed.Store(true) })
	if err != nil {
		return err
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    told.put,
		UpdateFunc: told.update,
		DeleteFunc: told.remove,
	}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go informer.RunWithContext(ctx)
	go report(func() line {
		return line{
			Synced: informer.HasSynced(),
			Unwell: told.failed.Load(),
			Store:  held(informer.GetStore()),
			Told:   told.digest(),
		}
	})
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func newInformer(kubeconfig string, widgets bool, namespace, selector string) (cache.SharedIndexInformer, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	// Faulty events are inserted as lines of JSON for every client. By default client-go requests protobuf.
	config.AcceptContentTypes, config.ContentType = "application/json", "application/json"
	tweak := func(options *metav1.ListOptions) { options.LabelSelector = selector }
	if widgets {
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		resource := schema.GroupVersionResource{Group: "demo.example.com", Version: "v1", Resource: "widgets"}
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, resync, namespace, tweak)
		return factory.ForResource(resource).Informer(), nil
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(
		client, resync, informers.WithNamespace(namespace), informers.WithTweakListOptions(tweak))
	return factory.Core().V1().ConfigMaps().Informer(), nil
}

// told is the state that a handler derives from its events.
type told struct {
	lock    sync.Mutex
	objects map[string]uint64
	// failed is true if the last report was an error.
	failed atomic.Bool
}

func (t *told) update(old, object any) {
	before, ok := old.(metav1.Object)
	now, is := object.(metav1.Object)
	// An equal version means a resync.
	if ok && is && before.GetResourceVersion() != now.GetResourceVersion() {
		t.put(object)
	}
}

func (t *told) put(object any) {
	t.failed.Store(false)
	if object, ok := object.(metav1.Object); ok {
		t.lock.Lock()
		defer t.lock.Unlock()
		t.objects[key(object)] = state(object)
	}
}

func (t *told) remove(object any) {
	t.failed.Store(false)
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err == nil {
		t.lock.Lock()
		defer t.lock.Unlock()
		delete(t.objects, key)
	}
}

func (t *told) digest() string {
	t.lock.Lock()
	defer t.lock.Unlock()
	var sum uint64
	for _, state := range t.objects {
		sum += state
	}
	return digest(len(t.objects), sum)
}

func held(store cache.Store) string {
	objects := store.List()
	var sum uint64
	for _, object := range objects {
		if object, ok := object.(metav1.Object); ok {
			sum += state(object)
		}
	}
	return digest(len(objects), sum)
}

func digest(count int, sum uint64) string {
	return fmt.Sprintf("%d:%016x", count, sum)
}

func key(object metav1.Object) string {
	if namespace := object.GetNamespace(); namespace != "" {
		return namespace + "/" + object.GetName()
	}
	return object.GetName()
}

// state returns the hash of an object's state.
func state(object metav1.Object) uint64 {
	hash := fnv.New64a()
	content := ""
	if object, ok := object.(*corev1.ConfigMap); ok {
		content = object.Data["writes"]
	}
	fmt.Fprintf(hash, "%s\n%s\n%s\n%s", key(object), object.GetUID(), object.GetResourceVersion(), content)
	return hash.Sum64()
}

// report prints the state whenever it has changed.
func report(look func() line) {
	var last line
	for first := true; ; first = false {
		if now := look(); first || now != last {
			text, err := json.Marshal(now)
			if err != nil {
				panic(err)
			}
			fmt.Println(string(text))
			last = now
		}
		time.Sleep(tick)
	}
}
