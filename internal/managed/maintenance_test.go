package managed_test

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// The service restarts the server again and again. Each time the nodes return on
// their own, and the next leader begins within the documented wait.
func TestNodesReturnAfterMaintenance(t *testing.T) {
	t.Parallel()
	s := newSite(t, pgtest.Options{Durable: true})
	_, term, nodes := s.exercise()
	for _, mode := range []string{"fast", "immediate", "fast"} {
		s.server.Restart(t, mode)
		back := time.Now()
		s.reconnect()
		_, next := s.nextTerm(term.Number(), nodes...)
		took := time.Since(back)
		t.Logf("the next leader began %v after a restart in mode %s", took.Round(time.Millisecond), mode)
		if bound := lease + 5*time.Second; took > bound {
			t.Errorf("the next leader began %v after a restart in mode %s, want at most %v", took, mode, bound)
		}
		s.write(next)
		term = next
	}
}
