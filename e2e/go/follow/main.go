// Follow runs client-go informers, typed and dynamic and with default settings, and prints their caches on request.
//
// It prints "synced" when they are synced. It answers each line of stdin with a line of JSON: for each informer, version and uid of
// every object by key. It ends when stdin ends.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the cluster")
	flag.Parse()
	if err := follow(*kubeconfig, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "follow:", err)
		os.Exit(1)
	}
}

// follow watches resources, given as group/version/plural, until stdin ends.
func follow(kubeconfig string, resources []string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	typedClient, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	typed := informers.NewSharedInformerFactory(typedClient, 0)
	untyped := dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, 0)
	followed := map[string]cache.SharedIndexInformer{}
	for _, resource := range resources {
		parts := strings.Split(resource, "/")
		if len(parts) != 3 {
			return fmt.Errorf("%q is not group/version/plural", resource)
		}
		collection := schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}
		followed["dynamic "+parts[2]] = untyped.ForResource(collection).Informer()
		// Only built-in resources have a type.
		if generic, err := typed.ForResource(collection); err == nil {
			followed["typed "+parts[2]] = generic.Informer()
		}
	}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	typed.Start(ctx.Done())
	untyped.Start(ctx.Done())
	typed.WaitForCacheSync(ctx.Done())
	untyped.WaitForCacheSync(ctx.Done())
	fmt.Println("synced")

	questions := bufio.NewScanner(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	for questions.Scan() {
		caches := map[string]map[string]string{}
		for name, informer := range followed {
			objects := map[string]string{}
			for _, item := range informer.GetStore().List() {
				key, err := cache.MetaNamespaceKeyFunc(item)
				if err != nil {
					return err
				}
				object, err := meta.Accessor(item)
				if err != nil {
					return err
				}
				objects[key] = object.GetResourceVersion() + " " + string(object.GetUID())
			}
			caches[name] = objects
		}
		if err := answers.Encode(caches); err != nil {
			return err
		}
	}
	return questions.Err()
}
