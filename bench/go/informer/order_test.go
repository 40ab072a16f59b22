package main

import (
	"slices"
	"testing"
)

// bench/src/chance.rs has the same test.
func TestKeysAreShuffledAsInTheOtherProgram(t *testing.T) {
	numbers := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	shuffle(numbers)
	if expected := []int{8, 9, 3, 6, 5, 2, 1, 0, 7, 4}; !slices.Equal(numbers, expected) {
		t.Errorf("%v instead of %v", numbers, expected)
	}
}
