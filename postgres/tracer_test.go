package postgres

import (
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/statements"
)

// The benchmarks of nodes at rest count what a connection's tracer sees.
func TestTracerSeesTheStatementsOfASession(t *testing.T) {
	t.Parallel()
	counter := &statements.Counter{}
	b := backendOn(t, pgtest.Shared(t).DSN(), Config{Schema: pgtest.Shared(t).Schema(t), Connect: counter.Connect})
	p := open(t, b)
	before := counter.Counts()
	for range 3 {
		p.beat()
	}
	if sent := statements.Since(before, counter.Counts()); sent[string(stmtHeartbeat)] != 3 {
		t.Errorf("the tracer saw %v; want 3 heartbeats", sent)
	}
}
