package acceptance_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/sandbox"
	"github.com/exactly-one/tenure/postgres"
)

// A leader's process is stopped inside a handler, which holds locks. The next
// leader does not wait for them, and nothing of the stopped handler lands.
func TestHandlerOfStoppedLeaderChangesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.migrate()
	admin := pgtest.Conn(t, c.dsn)
	createViews(c, admin)
	backend, err := postgres.New(c.dsn, c.db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(backend.Close)
	if err := eventstore.New(backend, eventstore.Config{}).Append(t.Context(), pgtest.Pool(t, c.dsn),
		eventstore.NewEvent{Type: "counted", Tags: []string{"stream=a"}, Data: 1}); err != nil {
		t.Fatal(err)
	}
	// A handler of the event needs this lock.
	table := pgx.Identifier{c.schema, viewBatch}.Sanitize()
	execute(t, admin, "CREATE UNIQUE INDEX ON "+table+" (stream, in_stream)")
	old := c.spawn(childProjecting, order{DSN: c.dsn, Schema: c.schema, Name: "old", Lease: lease})
	old.await("writing", time.Time{})
	next := c.spawn(childProjects, order{DSN: c.dsn, Schema: c.schema, Name: "next", Lease: lease})

	stopped := time.Now()
	old.signal(sandbox.PauseSignal)
	eventually(t, admin, "SELECT count(*) = 1 FROM "+table)
	if took := time.Since(stopped); took > lease+margin+slack {
		t.Errorf("the event was applied after %v", took)
	}
	old.say("continue")
	old.signal(sandbox.ResumeSignal)
	written := old.await("written", stopped)
	if written.Error == fmt.Sprint(error(nil)) {
		t.Error("the transaction of the stopped handler was still open")
	}
	// It has led and lost; then it campaigns for the role again.
	next.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := eventstore.New(backend, eventstore.Config{}).Append(ctx, pgtest.Pool(t, c.dsn),
		eventstore.NewEvent{Type: "counted", Tags: []string{"stream=a"}, Data: 2}); err != nil {
		t.Fatal(err)
	}
	again := old.await("writing", time.Unix(0, written.At))
	old.say("continue")
	old.await("written", time.Unix(0, again.At))
	eventually(t, admin, "SELECT count(*) = 3 FROM "+table)
	const applied = "SELECT string_agg(concat(node, ' ', stream, ' ', in_stream), ', ' ORDER BY number) FROM "
	if got := value[string](t, admin, applied+table); got != "next a 1, old a 2,  late " {
		t.Errorf("applied: %q", got)
	}
}
