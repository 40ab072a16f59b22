// Informer measures client-go's informer of pods, with default settings, against the bench server, and prints figures as lines of
// JSON. The Rust programs have the same flags and figures; see bench/src.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/features"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	byNode         = "node"
	sentAnnotation = "bench.example.com/sent"
	// patience is the time limit for expected events; without one, a lost event would block the benchmark.
	patience = 5 * time.Minute
	// readRounds is the number of rounds; the shortest counts, because a garbage collection may happen during one.
	readRounds = 5
)

type options struct {
	server, scenario                            string
	objects, events, stuckEvents, keys, seconds int
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "informer:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("usage: informer protobuf|json --server URL --objects N --scenario streamed|listed|ten|stuck|latency|reads")
	}
	var options options
	flags := flag.NewFlagSet("informer", flag.ContinueOnError)
	flags.StringVar(&options.server, "server", "", "address of the bench server")
	flags.StringVar(&options.scenario, "scenario", "streamed", "what to measure")
	flags.IntVar(&options.objects, "objects", 0, "pods that the server has")
	flags.IntVar(&options.events, "events", 0, "events to send; 0: as many as the scenario usually has")
	flags.IntVar(&options.stuckEvents, "stuck-events", 100_000, "events to send beside a handler that is stuck")
	flags.IntVar(&options.keys, "keys", 0, "objects to get; 0: all")
	flags.IntVar(&options.seconds, "duration-secs", 0, "how long to idle or to send events; 0: as long as the scenario usually does")
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	if options.scenario == "listed" {
		// client-go reads this variable when it first checks a feature. With it, client-go lists in pages of 500 from version 0: a
		// server with a watch cache would return everything at once, the bench server returns pages.
		if err := os.Setenv("KUBE_FEATURE_"+string(features.WatchListClient), "false"); err != nil {
			return err
		}
	}
	if streams := features.FeatureGates().Enabled(features.WatchListClient); streams != (options.scenario != "listed") {
		return fmt.Errorf("streaming lists: %t, which the scenario is not for", streams)
	}
	bench, err := newBench(arguments[0], options)
	if err != nil {
		return err
	}
	switch options.scenario {
	case "streamed":
		return bench.streamed()
	case "listed":
		return bench.listed()
	case "ten":
		return bench.ten()
	case "stuck":
		return bench.stuck()
	case "latency":
		return bench.latency()
	case "reads":
		return bench.readsAlone()
	default:
		return fmt.Errorf("no scenario %q", options.scenario)
	}
}

type bench struct {
	options
	wire          *wire
	factory       informers.SharedInformerFactory
	informer      cache.SharedIndexInformer
	lister        corelisters.PodLister
	registrations []cache.ResourceEventHandlerRegistration
	calls         calls
	base, settled float64
}

func newBench(client string, options options) (*bench, error) {
	accepted := map[string]string{
		"protobuf": "application/vnd.kubernetes.protobuf,application/json",
		"json":     "application/json",
	}[client]
	if accepted == "" {
		return nil, fmt.Errorf("no client %q", client)
	}
	contentType, _, _ := strings.Cut(accepted, ",")
	wire := &wire{contentType: contentType}
	config := &rest.Config{
		Host:          options.server,
		QPS:           -1,
		ContentConfig: rest.ContentConfig{AcceptContentTypes: accepted, ContentType: contentType},
		WrapTransport: wire.wrap,
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(clients, 0)
	pods := factory.Core().V1().Pods()
	return &bench{
		options: options, wire: wire, factory: factory, informer: pods.Informer(), lister: pods.Lister(),
		calls: calls{reached: make(chan struct{}, 1)},
	}, nil
}

// calls counts the events of handlers, and signals when a number is reached.
type calls struct {
	count, target atomic.Int64
	reached       chan struct{}
}

func (c *calls) add() {
	if c.count.Add(1) == c.target.Load() {
		c.reached <- struct{}{}
	}
}

// handle registers a handler that counts, and that passes updates to another function.
func (b *bench) handle(updated func(*corev1.Pod)) error {
	return b.register(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { b.calls.add() },
		UpdateFunc: func(_, object any) {
			updated(object.(*corev1.Pod))
			b.calls.add()
		},
		DeleteFunc: func(any) { b.calls.add() },
	})
}

func (b *bench) register(handler cache.ResourceEventHandler) error {
	registration, err := b.informer.AddEventHandler(handler)
	b.registrations = append(b.registrations, registration)
	return err
}

func ignore(*corev1.Pod) {}

// sync starts the informer, and waits until it is synced and the handlers have received all objects. It returns the processor time and
// the peak of resident memory.
func (b *bench) sync() (time.Duration, float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	synced := []cache.DoneChecker{b.informer.HasSyncedChecker()}
	for _, registration := range b.registrations {
		synced = append(synced, registration.HasSyncedChecker())
	}
	b.base = resident()
	resetPeak()
	start := processorTime()
	b.factory.StartWithContext(context.Background())
	if !cache.WaitFor(ctx, "", synced...) {
		return 0, 0, fmt.Errorf("not synced after %v", patience)
	}
	used := processorTime() - start
	settle()
	b.settled = resident()
	return used, peak(), b.check()
}

// check fails if an object is missing, or if client-go used another kind of request than expected.
func (b *bench) check() error {
	if have := len(b.informer.GetStore().ListKeys()); have != b.objects {
		return fmt.Errorf("%d objects in the cache instead of %d", have, b.objects)
	}
	return b.wire.check(b.scenario != "listed")
}

// settle waits, so that the runtime can return memory to the system.
func settle() { time.Sleep(3 * time.Second) }

// send lets the server send events, and waits until all counting handlers have received them. It returns the processor time.
func (b *bench) send(events, rate, handlers int) (time.Duration, error) {
	requests := b.wire.requests()
	b.calls.target.Store(b.calls.count.Load() + int64(events*handlers))
	start := processorTime()
	if err := b.post(fmt.Sprintf("/bench/events?count=%d&rate=%d", events, rate)); err != nil {
		return 0, err
	}
	select {
	case <-b.calls.reached:
	case <-time.After(patience):
		missing := b.calls.target.Load() - b.calls.count.Load()
		return 0, fmt.Errorf("%d announcements missing after %v", missing, patience)
	}
	used := processorTime() - start
	if b.wire.requests() != requests {
		return 0, errors.New("the watch did not last")
	}
	return used, nil
}

func (b *bench) post(path string) error {
	response, err := http.Post(b.server+path, "", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s: %s", path, response.Status, text)
	}
	return err
}

func (b *bench) streamed() error {
	if err := b.handle(ignore); err != nil {
		return err
	}
	if err := b.first(); err != nil {
		return err
	}
	resetPeak()
	events := orElse(b.events, 50_000)
	used, err := b.send(events, 0, 1)
	if err != nil {
		return err
	}
	settle()
	figure("event_cpu", micros(used)/float64(events), "us/event")
	figure("event_peak", b.ratio(peak()), "ratio")
	if err := b.reads(); err != nil {
		return err
	}
	if err := b.relist(); err != nil {
		return err
	}
	seconds := orElse(b.seconds, 5)
	start := processorTime()
	time.Sleep(time.Duration(seconds) * time.Second)
	figure("idle_cpu", micros(processorTime()-start)/float64(seconds), "us/s")
	return b.check()
}

// first prints the figures of the first sync, with one handler.
func (b *bench) first() error {
	used, most, err := b.sync()
	if err != nil {
		return err
	}
	if told := b.calls.count.Load(); told != int64(b.objects) {
		return fmt.Errorf("%d announcements instead of %d", told, b.objects)
	}
	figure("sync_cpu", micros(used)/float64(b.objects), "us/object")
	figure("base_rss", b.base, "bytes")
	figure("settled_rss", (b.settled-b.base)/float64(b.objects), "bytes/object")
	figure("sync_peak", b.ratio(most), "ratio")
	// Programs do not force a garbage collection: this shows how much of the memory is garbage. It must be done here, because events
	// leave holes in the heap; it does not change the cost of events.
	runtime.GC()
	debug.FreeOSMemory()
	figure("settled_rss_after_gc", (resident()-b.base)/float64(b.objects), "bytes/object")
	return nil
}

// gets reads by key, in the order that all programs use.
func (b *bench) gets() error {
	indexer := b.informer.GetIndexer()
	keys := indexer.ListKeys()
	// The keys are copies, because a program does not have the cache's own strings.
	for number, key := range keys {
		keys[number] = strings.Clone(key)
	}
	slices.Sort(keys)
	shuffle(keys)
	keys = keys[:min(orElse(b.keys, len(keys)), len(keys))]
	found := 0
	taken := least(func() {
		for _, key := range keys {
			if _, exists, err := indexer.GetByKey(key); err == nil && exists {
				found++
			}
		}
	})
	if found != len(keys)*readRounds {
		return fmt.Errorf("%d of %d gets found something", found, len(keys)*readRounds)
	}
	figure("get", float64(taken.Nanoseconds())/float64(len(keys)), "ns")
	return nil
}

func (b *bench) reads() error {
	// Added late, as in the other programs, so that the earlier measurements do the same work.
	err := b.informer.AddIndexers(cache.Indexers{byNode: func(object any) ([]string, error) {
		return []string{object.(*corev1.Pod).Spec.NodeName}, nil
	}})
	if err != nil {
		return err
	}
	if err := b.gets(); err != nil {
		return err
	}
	indexer := b.informer.GetIndexer()
	nodes := indexer.ListIndexFuncValues(byNode)
	found := 0
	taken := least(func() {
		for _, node := range nodes {
			if objects, err := indexer.ByIndex(byNode, node); err == nil {
				found += len(objects)
			}
		}
	})
	if found != b.objects*readRounds {
		return fmt.Errorf("the index has %d objects instead of %d", found/readRounds, b.objects)
	}
	figure("by_index", float64(taken.Nanoseconds())/float64(b.objects), "ns/object")
	figure("by_index_call", float64(taken.Nanoseconds())/float64(len(nodes)), "ns")

	selector, err := labels.Parse("app=service-7,tier=backend")
	if err != nil {
		return err
	}
	var selected []*corev1.Pod
	taken = least(func() { selected, err = b.lister.List(selector) })
	if err == nil && len(selected) == 0 {
		err = errors.New("nothing was selected")
	}
	figure("select", float64(taken.Nanoseconds())/float64(b.objects), "ns/object")
	return err
}

// relist lets the server end the watch, and waits until client-go has listed again. client-go does not report when this is done:
// versions do not change, and only the handler calls for every object show it.
func (b *bench) relist() error {
	calls, requests := b.calls.count.Load(), b.wire.requests()
	resetPeak()
	start := processorTime()
	if err := b.post("/bench/expire"); err != nil {
		return err
	}
	for waited := time.Now(); b.wire.requests() == requests; time.Sleep(10 * time.Millisecond) {
		if time.Since(waited) > patience {
			return fmt.Errorf("no new list after %v", patience)
		}
	}
	used := b.quiet(2*time.Second) - start
	figure("relist_cpu", micros(used)/float64(b.objects), "us/object")
	figure("relist_announcements", float64(b.calls.count.Load()-calls), "calls")
	figure("relist_peak", b.ratio(peak()), "ratio")
	return nil
}

// quiet waits until the process is idle for some time, and returns the processor time at the beginning of that time.
func (b *bench) quiet(span time.Duration) time.Duration {
	const step = 50 * time.Millisecond
	last, calls := processorTime(), b.calls.count.Load()
	quiet, since := last, time.Now()
	for time.Since(since) < span {
		time.Sleep(step)
		now, told := processorTime(), b.calls.count.Load()
		// Go's runtime returns memory meanwhile, which takes about 1 % of the time.
		if told != calls || now-last > step/20 {
			quiet, since = now, time.Now()
		}
		last, calls = now, told
	}
	return quiet
}

func (b *bench) listed() error {
	if err := b.handle(ignore); err != nil {
		return err
	}
	return b.first()
}

func (b *bench) ten() error {
	for range 10 {
		if err := b.handle(ignore); err != nil {
			return err
		}
	}
	if _, _, err := b.sync(); err != nil {
		return err
	}
	events := orElse(b.events, 20_000)
	used, err := b.send(events, 0, 10)
	if err != nil {
		return err
	}
	figure("event_cpu", micros(used)/float64(events), "us/event")
	return b.check()
}

func (b *bench) readsAlone() error {
	if err := b.handle(ignore); err != nil {
		return err
	}
	if _, _, err := b.sync(); err != nil {
		return err
	}
	if err := b.gets(); err != nil {
		return err
	}
	return b.check()
}

func (b *bench) stuck() error {
	if err := b.handle(ignore); err != nil {
		return err
	}
	if err := b.register(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { select {} }}); err != nil {
		return err
	}
	if _, _, err := b.sync(); err != nil {
		return err
	}
	if _, err := b.send(b.stuckEvents, 0, 1); err != nil {
		return err
	}
	settle()
	figure("stuck_rss", b.ratio(resident()), "ratio")
	return b.check()
}

func (b *bench) latency() error {
	const rate = 1000
	events := rate * orElse(b.seconds, 10)
	taken := make([]time.Duration, 0, events)
	odd := 0
	err := b.handle(func(pod *corev1.Pod) {
		sent, err := strconv.ParseInt(pod.Annotations[sentAnnotation], 10, 64)
		if err != nil || sent == 0 {
			odd++
		}
		taken = append(taken, time.Since(time.Unix(0, sent)))
	})
	if err != nil {
		return err
	}
	if _, _, err := b.sync(); err != nil {
		return err
	}
	if _, err := b.send(events, rate, 1); err != nil {
		return err
	}
	if odd > 0 {
		return fmt.Errorf("%d events do not say when they were sent", odd)
	}
	slices.Sort(taken)
	figure("latency_p50", micros(taken[len(taken)*50/100]), "us")
	figure("latency_p99", micros(taken[len(taken)*99/100]), "us")
	return b.check()
}

// ratio returns a number of bytes as a multiple of the synced cache's memory.
func (b *bench) ratio(size float64) float64 {
	return (size - b.base) / (b.settled - b.base)
}

// least returns the shortest time of several rounds.
func least(round func()) time.Duration {
	least := time.Duration(-1)
	for range readRounds {
		start := time.Now()
		round()
		if taken := time.Since(start); least < 0 || taken < least {
			least = taken
		}
	}
	return least
}

func orElse(given, usual int) int {
	if given == 0 {
		return usual
	}
	return given
}

func micros(taken time.Duration) float64 {
	return float64(taken.Nanoseconds()) / 1000
}

func figure(name string, value float64, unit string) {
	line := struct {
		Figure string  `json:"figure"`
		Value  float64 `json:"value"`
		Unit   string  `json:"unit"`
	}{name, value, unit}
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		panic(err)
	}
}
