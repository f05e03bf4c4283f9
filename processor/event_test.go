package processor_test

import (
	"math"
	"testing"

	"github.com/exactly-one/tenure/processor"
)

// Positions alone do not define an order: a transaction that began first can
// get its position last.
func TestCursorsAreOrderedByTransactionFirst(t *testing.T) {
	t.Parallel()
	ordered := []processor.Cursor{{}, {Transaction: 1, Position: 20}, {Transaction: 2, Position: 10}, {Transaction: 2, Position: 11}, {Transaction: math.MaxUint64}}
	for i, a := range ordered {
		for j, b := range ordered {
			if got, want := a.Before(b), i < j; got != want {
				t.Errorf("the order of cursors: %v before %v: %t, want %t", a, b, got, want)
			}
		}
	}
}
