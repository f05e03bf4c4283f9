package postgres

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// A watch that can connect and cannot work is tried again ever more seldom: eight
// failures take at least 10 + 20 + … + 640 ms.
func TestWatchThatAlwaysFailsIsTriedSeldom(t *testing.T) {
	t.Parallel()
	b := backendOn(t, pgtest.Shared(t).DSN(), Config{Schema: pgtest.Shared(t).Schema(t)})
	open(t, b)
	began := time.Now()
	exec(t, b, "ALTER FUNCTION {watch}(integer, integer, integer, bigint, integer, integer) RENAME TO lost")
	exec(t, b, watchStatements[stmtNext]) // it begins a new call
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for b.Stats().WatchFailures < 8 {
		if <-tick.C; time.Since(began) > patience {
			t.Fatalf("the watch failed %d times", b.Stats().WatchFailures)
		}
	}
	if took := time.Since(began); took < 1270*time.Millisecond {
		t.Errorf("eight failures took only %v", took)
	}
}
