package outbox_test

import (
	"errors"
	"math"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/processor"
)

func TestPositionsCompareByEpochFirst(t *testing.T) {
	t.Parallel()
	ordered := []outbox.Position{
		{},
		{Epoch: 1, Cursor: processor.Cursor{Transaction: 742, Position: 9}},
		{Epoch: 1, Cursor: processor.Cursor{Transaction: 742, Position: 1031}},
		{Epoch: 1, Cursor: processor.Cursor{Transaction: math.MaxUint64, Position: 1}},
		{Epoch: 1795347521151, Cursor: processor.Cursor{Transaction: 3, Position: 1}}, // another server
	}
	for i, a := range ordered {
		for j, b := range ordered {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := a.Compare(b); got != want {
				t.Errorf("%v compared with %v: %d; want %d", a, b, got, want)
			}
		}
		if read, err := outbox.ParsePosition(a.String()); err != nil || read != a {
			t.Errorf("%v was read as %v, %v", a, read, err)
		}
	}
	for _, text := range []string{"", "1:2", "1:2:3:4", "1:2:3 ", "1:-2:3", "01:2:3", "a:2:3"} {
		if _, err := outbox.ParsePosition(text); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%q was read: %v", text, err)
		}
	}
}
