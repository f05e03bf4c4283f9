package dialects

import (
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/lease"
)

// A pooler that lends a connection for one statement only has no transactions:
// a node on it does not open, and says why. In transaction mode PgBouncer is one
// of the kinds of databases that all tests run on.
func TestBackendStatementPooling(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	source := server.PgBouncer(t, "statement")(server.Database(t)) + "&default_query_exec_mode=exec"
	backend := newBackend(t, kinds[0].connect(t, source), lease.PostgreSQL, lease.Config{})
	node, err := tenure.Open(soon(t), backend, tenure.Config{
		Retry: tenure.RetryFunc(func(tenure.Attempts) (time.Duration, bool) { return 0, false }),
	})
	if err == nil {
		_ = node.Close(soon(t))
		t.Fatal("a node was opened")
	}
	if !strings.Contains(err.Error(), "statement pooling") {
		t.Errorf("%v; want it to name statement pooling", err)
	}
}
