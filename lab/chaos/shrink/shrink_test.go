package shrink_test

import (
	"slices"
	"testing"

	"github.com/exactly-one/tenure/lab/chaos/shrink"
)

func numbers(n int) []int {
	var all []int
	for i := range n {
		all = append(all, i)
	}
	return all
}

func always() bool { return true }

func TestMinimizeFindsTheFailingPart(t *testing.T) {
	for _, want := range [][]int{{0}, {63}, {17}, {3, 4}, {0, 63}, {5, 20, 41}, {1, 2, 3, 4, 5, 6, 7, 8}} {
		attempts := 0
		got := shrink.Minimize(numbers(64), func(part []int) bool {
			attempts++
			for _, n := range want {
				if !slices.Contains(part, n) {
					return false
				}
			}
			return true
		}, always)
		if !slices.Equal(got, want) {
			t.Errorf("got %v; want %v", got, want)
		}
		if attempts > 64*len(want) {
			t.Errorf("%v took %d attempts", want, attempts)
		}
	}
}

// A failure that any two of the items cause has many minimal parts.
func TestMinimizeIsMinimal(t *testing.T) {
	fails := func(part []int) bool {
		even := 0
		for _, n := range part {
			if n%2 == 0 {
				even++
			}
		}
		return even >= 2
	}
	if got := shrink.Minimize(numbers(50), fails, always); len(got) != 2 || !fails(got) {
		t.Errorf("got %v; want two even numbers", got)
	}
}

func TestMinimizeStopsInTime(t *testing.T) {
	attempts := 0
	got := shrink.Minimize(numbers(1000), func(part []int) bool {
		attempts++
		return slices.Contains(part, 777)
	}, func() bool { return attempts < 3 })
	if attempts != 3 || !slices.Contains(got, 777) || len(got) >= 1000 {
		t.Errorf("after %d attempts: %d items", attempts, len(got))
	}
}
