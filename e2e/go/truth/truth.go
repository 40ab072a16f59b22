// Package truth writes the results of the Kubernetes libraries for random objects, which the embedded server's unit tests compare
// with.
//
//	go test -count=1 ./truth/... -args -into FOLDER [-seed NUMBER] [-times NUMBER]
//
// `cargo xtask truth` runs it for the committed files. Each package below writes the results of one library. They are tests, because
// some libraries read the clock, and only a test can set it. Without a folder nothing is written.
package truth

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

var (
	into  = flag.String("into", "", "the folder to write to")
	seed  = flag.Int64("seed", 1, "where chance comes from")
	times = flag.Int("times", 1, "how many times as many cases; with more than one, none of them is left out")
)

// Seed is the seed of random numbers; each use derives its own.
func Seed(use int) int64 { return *seed*1_000_003 + int64(use)*7_919 }

// Times is the number of cases, relative to a sample.
func Times(sample int) int { return sample * *times }

// File is a file that is being written: a case per line.
type File struct {
	test    *testing.T
	name    string
	lines   [][]byte
	offered []*offer
	// The bytes that the sample may have.
	room int
}

// offer is a case that may be chosen, with its content.
type offer struct {
	line   []byte
	sort   string
	shows  []string
	chosen bool
}

// Create starts a file, which is written if the test passes. Without a folder the test is skipped.
func Create(t *testing.T, name string) *File {
	if *into == "" {
		t.Skip("no folder to write to; see the package truth")
	}
	file := &File{test: t, name: name}
	t.Cleanup(file.close)
	return file
}

// Sample starts a file of chosen cases with this number of bytes before compression.
func Sample(t *testing.T, name string, room int) *File {
	file := Create(t, name)
	file.room = room
	return file
}

// Put adds a case: as a line of JSON, or unchanged if it is bytes.
func (f *File) Put(line any) { f.lines = append(f.lines, written(line)) }

// Offer adds a case that is chosen if it is the only one of its type, or has much content that other cases do not have.
func (f *File) Offer(sort string, line any, shows []string) {
	f.offered = append(f.offered, &offer{written(line), sort, shows, false})
}

func written(line any) []byte {
	if bytes, ok := line.([]byte); ok {
		return bytes
	}
	return append(JSON(line), '\n')
}

// choose chooses the best case of every type, and then further cases while there is room.
func (f *File) choose() {
	seen, sorts, room := map[string]bool{}, map[string][]*offer{}, f.room
	for _, one := range f.offered {
		sorts[one.sort] = append(sorts[one.sort], one)
	}
	take := func(of []*offer) bool {
		best, most := (*offer)(nil), 0.0
		for _, one := range of {
			if worth := one.worth(seen); !one.chosen && (worth > most || best == nil) {
				best, most = one, worth
			}
		}
		if best == nil {
			return false
		}
		best.chosen = true
		room -= len(best.line)
		for _, what := range best.shows {
			seen[what] = true
		}
		return most > 0
	}
	for _, name := range slices.Sorted(maps.Keys(sorts)) {
		take(sorts[name])
	}
	for room > 0 && take(f.offered) {
	}
}

// worth returns how much new content a case has, relative to its size.
func (o *offer) worth(seen map[string]bool) float64 {
	count := 0
	for _, what := range o.shows {
		if !seen[what] {
			count++
		}
	}
	return float64(count) / float64(len(o.line)+100)
}

func (f *File) close() {
	if f.test.Failed() {
		return
	}
	if *times == 1 {
		f.choose()
	}
	for _, one := range f.offered {
		if one.chosen || *times > 1 {
			f.Put(one.line)
		}
	}
	var packed bytes.Buffer
	writer := Must(gzip.NewWriterLevel(&packed, gzip.BestCompression))
	for _, line := range f.lines {
		Must(writer.Write(line))
	}
	Check(writer.Close())
	path := filepath.Join(*into, f.name+".gz")
	Check(os.MkdirAll(filepath.Dir(path), 0o755))
	Check(os.WriteFile(path, packed.Bytes(), 0o644))
}

// Changes returns the places where two JSON values differ, with the new values. Indexes of list items are left out.
func Changes(before, after any) []string {
	var found []string
	changes("", before, after, &found)
	return found
}

func changes(path string, before, after any, found *[]string) {
	switch after := after.(type) {
	case map[string]any:
		before, _ := before.(map[string]any)
		for name, value := range after {
			changes(path+"."+name, before[name], value, found)
		}
		for name := range before {
			if _, ok := after[name]; !ok {
				*found = append(*found, path+"."+name+" is gone")
			}
		}
	case []any:
		before, _ := before.([]any)
		for i, value := range after {
			var old any
			if i < len(before) {
				old = before[i]
			}
			changes(path+"[]", old, value, found)
		}
	default:
		if string(JSON(before)) != string(JSON(after)) {
			*found = append(*found, path+"="+string(JSON(after)))
		}
	}
}

var (
	quoted  = regexp.MustCompile(`"(\\.|[^"\\])*"`)
	numbers = regexp.MustCompile(`[0-9]+`)
)

// Shape returns a string without quoted parts and numbers.
func Shape(text string) string {
	return numbers.ReplaceAllString(quoted.ReplaceAllString(text, `""`), "0")
}

// Value returns a value as decoded JSON.
func Value(of any) any {
	var value any
	Check(json.Unmarshal(JSON(of), &value))
	return value
}

// JSON encodes a value.
func JSON(of any) []byte { return Must(json.Marshal(of)) }

// Must returns the result of a call that cannot fail.
func Must[T any](value T, err error) T {
	Check(err)
	return value
}

// Check stops at an error that should not happen.
func Check(err error) {
	if err != nil {
		panic(fmt.Sprint(err))
	}
}
