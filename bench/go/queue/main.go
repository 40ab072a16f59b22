// Queue prints the figures of client-go's work queue, one per line: name, value, unit. `cargo xtask bench` prints them next to those
// of crates/controller/benches/figures.rs, which are measured in the same way and have the same names.
package main

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

const (
	items  = 100_000
	queued = 1_000_000
	rounds = 7
)

type queue = workqueue.TypedRateLimitingInterface[string]

func main() {
	figure("add, get, done in turn", "ns", least(inTurn))
	for _, workers := range []int{1, 8} {
		figure(fmt.Sprintf("add, get, done, workers: %d", workers), "ns", least(func() time.Duration { return throughput(workers) }))
	}
	figure("delayed, insert", "ns", least(insert))
	figure("delayed, fire", "ns", least(fire))
	figure("queued, memory", "bytes", memory())
}

func figure(name, unit string, value float64) {
	fmt.Printf("%s %.0f %s\n", name, value, unit)
}

// least returns the shortest time of several rounds, per item.
func least(round func() time.Duration) float64 {
	least := round()
	for range rounds - 1 {
		// Collect the garbage of earlier rounds first.
		runtime.GC()
		least = min(least, round())
	}
	return float64(least.Nanoseconds()) / items
}

func newQueue() queue {
	return workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
}

func key(number int) string {
	return fmt.Sprintf("default/thing-%07d", number)
}

// keys returns keys in random order.
func keys() []string {
	keys := make([]string, items)
	for number := range keys {
		keys[number] = key(number * 7919 % items)
	}
	return keys
}

// inTurn measures one goroutine that adds and takes each item, so that the queue is empty in between.
func inTurn() time.Duration {
	queue, keys := newQueue(), keys()
	defer queue.ShutDown()
	start := time.Now()
	for _, key := range keys {
		queue.Add(key)
		item, _ := queue.Get()
		queue.Done(item)
	}
	return time.Since(start)
}

// throughput measures workers that take items while another goroutine adds them.
func throughput(workers int) time.Duration {
	queue, keys := newQueue(), keys()
	var group sync.WaitGroup
	start := time.Now()
	for range workers {
		group.Go(func() {
			for {
				item, shutdown := queue.Get()
				if shutdown {
					return
				}
				queue.Done(item)
			}
		})
	}
	for _, key := range keys {
		queue.Add(key)
	}
	queue.ShutDown()
	group.Wait()
	return time.Since(start)
}

// insert measures adding items that become due within an hour.
func insert() time.Duration {
	queue, keys := newQueue(), keys()
	defer queue.ShutDown()
	start := time.Now()
	for number, key := range keys {
		queue.AddAfter(key, time.Hour+time.Duration(number*104_729%items)*time.Millisecond)
	}
	return time.Since(start)
}

// fire measures how long it takes to get items that become due at the same time.
func fire() time.Duration {
	queue, keys := newQueue(), keys()
	defer queue.ShutDown()
	due := time.Now().Add(500 * time.Millisecond)
	for _, key := range keys {
		queue.AddAfter(key, time.Until(due))
	}
	if time.Now().After(due) {
		return time.Hour // Too slow to measure.
	}
	time.Sleep(time.Until(due))
	for queue.Len() < items {
		time.Sleep(20 * time.Microsecond)
	}
	return time.Since(due)
}

// memory measures the memory of a waiting item with its key.
func memory() float64 {
	before, queue := heap(), newQueue()
	defer queue.ShutDown()
	for number := range queued {
		queue.Add(key(number))
	}
	return float64(heap()-before) / queued
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
