package dashboard

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// At most 512 viewers are connected, 128 of them from one address.
func TestViewersAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	connected := 0
	for address := range 10 {
		before := connected
		for range 150 {
			if _, ok := w.board.streams.Take(fmt.Sprint("192.0.2.", address)); ok {
				connected++
			}
		}
		if got := connected - before; address < 4 && got != 128 {
			t.Errorf("one address has %d viewers, want 128", got)
		}
	}
	if connected != 512 {
		t.Errorf("%d viewers are connected, want 512", connected)
	}
}

func TestGraphsShowTotalsAfterADay(t *testing.T) {
	t.Parallel()
	if day := graphRanges["24h"]; day.daily || day.length != 24*time.Hour {
		t.Errorf("a graph shows samples for %v (totals: %t), want 24h0m0s", day.length, day.daily)
	}
	if week := graphRanges["7d"]; !week.daily {
		t.Errorf("a graph of %v shows no totals", week.length)
	}
}

func TestOutcomeIsAwaitedFor15Seconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		board := &Dashboard{snapshot: newSnapshot()}
		begun := time.Now()
		got := board.await(t.Context(), pendingAction{actionBody: actionBody{Action: stepDown, Name: "billing"}})
		if took := time.Since(begun); got.Done || took != 15*time.Second {
			t.Errorf("after %v: %+v; want no outcome after 15s", took, got)
		}
	})
}
