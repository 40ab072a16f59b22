package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// processorTime returns the processor time of this process so far, with garbage collection.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func resident() float64 { return status("VmRSS:") }

// peak returns the highest resident memory since the last resetPeak.
func peak() float64 { return status("VmHWM:") }

func resetPeak() {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		panic(err)
	}
}

// status returns a value of /proc/self/status in bytes.
func status(name string) float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == name {
			if kilobytes, err := strconv.ParseFloat(fields[1], 64); err == nil {
				return kilobytes * 1024
			}
		}
	}
	panic(fmt.Sprintf("/proc/self/status has no %s", name))
}
