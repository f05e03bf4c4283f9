package metrics_test

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/metrics"
)

// Samples that were written under a clock that was ahead are not read when the clock is
// right: they would be the newest of their node until then.
func TestSamplesOfFalseClockAreNotRead(t *testing.T) {
	server, clock := pgtest.StartWithClock(t, pgtest.Options{})
	i := postgrestest.On(t, server, server.Schema(t))
	i.Migrate("samples")
	w := &world{i}
	node := w.node("a")
	clock.Set(t, 365*24*time.Hour)
	_, before := w.read("")
	if err := report(t, 1, node, w.Pool, everything()); err != nil {
		t.Fatal(err)
	}
	if got, _ := w.read(before); len(got) != 1 {
		t.Fatalf("%d samples are read under the clock that is ahead, want 1", len(got))
	}
	clock.Set(t, 0)
	for _, after := range []struct {
		what     string
		position metrics.Position
	}{{"all", ""}, {"the new ones", before}} {
		if got, _ := w.read(after.position); len(got) != 0 {
			t.Errorf("of %s, %d samples of the false clock are read, want none", after.what, len(got))
		}
	}
}
