package cli

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/roles"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// A transaction of an application keeps the role of a dead leader vacant only until the
// printed grants are run. Until then, the commands name it and what ends it; afterwards,
// the history says what the failover waited for.
func TestApplicationThatHoldsUpFailoverIsNamedAndEnded(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	invoke(t, place.with("migrate")...).want(t, console.ExitDone)
	node, app := "n_"+place.schema, "a_"+place.schema
	run := place.user(t, node)
	place.user(t, app)
	run(invoke(t, "migrate", "grants", "--user", node, "--schema", place.schema).want(t, console.ExitDone).stdout)
	printed := invoke(t, "migrate", "grants", "--user", app, "--application", "--node-user", node, "--schema", place.schema).want(t, console.ExitDone).stdout
	tables, membership, _ := strings.Cut(printed, "DO $grant$")
	run(tables) // an operator leaves the rest out

	asNode := []string{"--schema", place.schema, "--dsn", place.server.DSNFor(node, "postgres"), "--manual-migrations"}
	start := func(name string) *process {
		return launch(t, append([]string{"run", "-o", "json", "--role", "billing", "--name", name, "--fence-timeout", "1s"}, asNode...)...)
	}
	first := start("one")
	first.await("acquired")
	second := start("two")
	second.await("acquire_failed")
	conn := pgtest.Conn(t, place.server.DSNFor(app, "postgres")+"&application_name=report")
	lock := fmt.Sprintf("BEGIN; SELECT FROM %s WHERE role = 'billing' FOR UPDATE", pgx.Identifier{place.schema, "tenure_terms"}.Sanitize())
	pgtest.Exec(t, conn, lock, pgx.QueryExecModeSimpleProtocol)
	first.signal(syscall.SIGKILL)

	grant := fmt.Sprintf(`GRANT %q TO %q`, app, node)
	name := fmt.Sprintf("process %d of user %s (report)", conn.PgConn().PID(), app)
	var status roles.StatusRecord
	eventually(t, "the blocker in the status", func() bool {
		status = place.status(t)
		return len(status.Roles) == 1 && len(status.Roles[0].Blockers) > 0
	})
	if b := status.Roles[0].Blockers[0]; b.PID != int32(conn.PgConn().PID()) || b.User != app || b.Application != "report" ||
		b.Terminable || !strings.HasPrefix(b.Advice, grant) || time.Time(b.Since).IsZero() {
		t.Errorf("the status has the blocker %+v; want %s with %s", b, name, grant)
	}
	if len(status.Problems) < 2 || status.Problems[1].Kind != "blocked_role" {
		t.Errorf("the problems are %+v; want a blocked_role", status.Problems)
	}
	text := invoke(t, place.with("status")...).want(t, console.ExitDone).stdout
	if flat := strings.Join(strings.Fields(text), " "); !strings.Contains(flat, "billing waits for "+name) || !strings.Contains(flat, "The node may not terminate it: run "+grant) {
		t.Errorf("the status says\n%s\nwant %s with %s", text, name, grant)
	}
	text = invoke(t, append([]string{"doctor"}, asNode[:4]...)...).want(t, console.ExitDone).stdout
	if flat := strings.Join(strings.Fields(text), " "); !strings.Contains(flat, "billing waits for "+name) || !strings.Contains(flat, app+" can hold up a failover") || !strings.Contains(flat, grant) {
		t.Errorf("the doctor says\n%s\nwant %s with %s", text, name, grant)
	}

	// The fence timeout passes, and still the role is vacant.
	eventually(t, "a transaction that is older than the fence timeout", func() bool {
		now := place.status(t).Roles[0]
		if now.Leader != nil || len(now.Blockers) != 1 {
			t.Fatalf("without the grant, the status is %+v; want a vacant role with its blocker", now)
		}
		return time.Since(time.Time(now.Blockers[0].Since)) > 3*time.Second
	})
	run("DO $grant$" + membership)
	second.await("acquired")
	checkRecordedBlocker(t, place, name)
}

// checkRecordedBlocker checks that the history and the incident name what the failover
// waited for.
func checkRecordedBlocker(t *testing.T, place place, name string) {
	t.Helper()
	var terms roles.TermHistoryRecord
	eventually(t, "the blocker in the history", func() bool {
		invoke(t, place.with("history", "-o", "json")...).want(t, console.ExitDone).decode(t, &terms)
		return len(terms.Terms) == 2 && terms.Terms[0].Blocker == name
	})
	text := invoke(t, place.with("history")...).want(t, console.ExitDone).stdout
	if flat := strings.Join(strings.Fields(text), " "); !strings.Contains(flat, "it waited for "+name+".") {
		t.Errorf("the history says\n%s\nwant %s", text, name)
	}
	var incidents roles.IncidentHistoryRecord
	invoke(t, place.with("history", "--incidents", "-o", "json")...).want(t, console.ExitDone).decode(t, &incidents)
	if n := len(incidents.Incidents); n != 1 || !strings.Contains(incidents.Incidents[0].Sentence, "The next term waited for "+name+".") || incidents.Incidents[0].Moves[0].Blocker != name {
		t.Errorf("the incidents are %+v; want a crash whose move waited for %s", incidents.Incidents, name)
	}
}
