package acceptance_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// Behind a pooler session locks protect nothing, in silence. Tenure says so
// instead.
func TestBehindPgBouncer(t *testing.T) {
	for _, mode := range []string{"transaction", "statement", "session"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			server := pgtest.Shared(t)
			through := server.PgBouncer(t, mode).DSN
			db, err := postgres.New(through(server.DSN()), postgres.Config{Schema: server.Schema(t)})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			begun := time.Now()
			node, err := tenure.Open(ctx, db, tenure.Config{Logger: logTo(t)})
			if node != nil {
				t.Error("a node was opened")
				_ = node.Close(ctx)
			}
			if !errors.Is(err, dberr.ErrPooled) || !errors.Is(err, tenure.ErrRefused) {
				t.Fatalf("%v; want it refused with ErrPooled", err)
			}
			if !strings.Contains(err.Error(), "Connect directly to PostgreSQL") {
				t.Errorf("%q does not say what to do", err)
			}
			if took := time.Since(begun); took > patience/2 {
				t.Errorf("a refusal was tried again for %v", took)
			}
		})
	}
}
