package acceptance_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// stalls makes statements that write a table of the installation take longer
// than half a refresh interval, as a disk does that stalls, until the returned
// function is called.
func (c *cluster) stalls(t *testing.T, event, table string, d time.Duration) (end func()) {
	t.Helper()
	admin := pgtest.Conn(t, c.dsn)
	function := pgx.Identifier{c.schema, "stall"}.Sanitize()
	execute(t, admin, fmt.Sprintf(`CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN PERFORM pg_sleep(%v); RETURN NULL; END'`, function, d.Seconds()))
	execute(t, admin, fmt.Sprintf("CREATE TRIGGER stall BEFORE %s ON %s FOR EACH STATEMENT EXECUTE FUNCTION %s()",
		event, c.quoted(table), function))
	return func() { execute(t, admin, "DROP FUNCTION "+function+" CASCADE") }
}

// campaignForMany starts elections for some roles and returns them.
func campaignForMany(t *testing.T, node *tenure.Node, roles int) []*tenure.Election {
	t.Helper()
	elections := make([]*tenure.Election, roles)
	for i := range elections {
		e, err := node.Election(tenure.NamedRole(fmt.Sprintf("role %d", i)))
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
		elections[i] = e
	}
	return elections
}

func awaitAll(t *testing.T, elections []*tenure.Election) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, e := range elections {
		if _, err := e.WaitForLeadership(ctx); err != nil {
			t.Fatalf("%s: %v", e.Role(), err)
		}
	}
}

// A statement of joining that outlasts half a refresh interval does not make a
// node begin again from nothing.
func TestSlowJoiningDoesNotStartAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.migrate()
	defer c.stalls(t, "INSERT OR DELETE", "nodes", lease/6+100*time.Millisecond)()
	node := c.open("slow", nil).Node
	if n := node.Stats().SessionFailures; n > 0 {
		t.Errorf("joining failed %d times, want none", n)
	}
}

// One event for each role and session, no join that begins again, and leaders as soon as
// the cause has passed: no node can lead before.
func TestStalledAcquisitionReportsOneEvent(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	const roles = 50
	const stall = lease/6 + 100*time.Millisecond
	for _, table := range []string{"terms", "nodes"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.migrate()
			node := c.open("slow", nil).Node
			end := c.stalls(t, "UPDATE", table, stall)
			elections := campaignForMany(t, node, roles)
			<-time.After(3 * lease) // as long as the disk stalls
			stalled := node.Stats()
			end()
			since := time.Now()
			awaitAll(t, elections)
			took := time.Since(since)
			t.Logf("%d sessions, %d failed openings, %d events of errors; led %v after the stall",
				stalled.Sessions, stalled.SessionFailures, stalled.Events[tenure.EventError], took.Round(time.Millisecond))
			// A stall of heartbeats ends one session; the next one opens after it.
			if n := stalled.Sessions; n != 1 {
				t.Errorf("%d sessions were opened until the end of the stall; want only the one before it", n)
			}
			if n := stalled.SessionFailures; n > 0 {
				t.Errorf("joining failed %d times; want none", n)
			}
			if n := stalled.Events[tenure.EventError]; n > roles*stalled.Sessions {
				t.Errorf("%d events of errors for one cause, %d roles and %d sessions", n, roles, stalled.Sessions)
			}
			// A statement that began during the stall, and the next attempt.
			if took > stall+checkInterval+slack {
				t.Errorf("all roles were led %v after the stall", took)
			}
		})
	}
}
