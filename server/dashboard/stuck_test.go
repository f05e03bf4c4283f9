package dashboard

import (
	"strings"
	"testing"
)

// TestStuckProcessorIsCritical: a processor that cannot work is red, with the reason, and its
// figures carry the time of their measurement if they are old. A paused one is not red.
func TestStuckProcessorIsCritical(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{}, fillWork)
	w.await("the processor", func() bool { return w.board.snapshot.hasWork() })
	first := func() processorRecord { return w.board.snapshot.workNow().Processors[0] }
	if p := first(); p.BehindAsOf != nil || p.StuckSince != nil {
		t.Errorf("a processor that works is %+v", p)
	}
	// Set by hand: package processor tests that leaders write these columns.
	w.exec(`UPDATE {processors} SET stuck_error = E'no column\x1b[2J', stuck_since = clock_timestamp(), stuck_errors = 3`)
	w.exec(`UPDATE {processor_lags} SET measured_at = clock_timestamp() - interval '2 minutes'`)
	w.await("the record that it is stuck", func() bool { return first().Stuck != "" && first().BehindAsOf != nil })
	if got := first().trouble(); got.level != critical || !strings.Contains(got.text, "cannot work: ") || strings.Contains(got.text, "\x1b") || first().Level != critical {
		t.Errorf("a processor that cannot work has the trouble %+v", got)
	}
	w.exec(`UPDATE {processors} SET status = 'paused'`)
	w.await("the pause", func() bool { return first().Status == "paused" })
	if got := first().trouble(); got.level != warning {
		t.Errorf("a paused processor that could not work has the trouble %+v; want that of its dead letters", got)
	}
}
