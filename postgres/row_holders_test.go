package postgres

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres/internal/diagnosis"
)

// restricted is an installation whose nodes and application have separate users with
// only the privileges that the program prints.
type restricted struct {
	server      *pgtest.Server
	owner, node *Backend
	application string // connection string
}

func newRestricted(t *testing.T, settings map[string]string) restricted {
	t.Helper()
	server := pgtest.Start(t, pgtest.Options{Settings: settings})
	owner := backendOn(t, server.DSN(), Config{})
	r := restricted{server: server, owner: owner, application: user(t, server, "app")}
	if err := owner.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.node = backendOn(t, user(t, server, "node"), Config{ManualMigrations: true})
	exec(t, owner, owner.NodeGrants("node")+owner.ApplicationGrants("app"))
	return r
}

// lock leaves a transaction of the application open that holds a role's row.
func (r restricted) lock(t *testing.T, sql string) *pgx.Conn {
	t.Helper()
	conn := pgtest.Conn(t, r.application+"&application_name=report")
	if _, err := conn.Exec(t.Context(), r.owner.names.SQL("BEGIN; "+sql), pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	return conn
}

// finding returns what the doctor finds as the user of nodes.
func (r restricted) finding(t *testing.T, name string) doctor.Finding {
	t.Helper()
	for _, f := range r.node.Diagnose(t.Context()) {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("the doctor has no finding %q", name)
	return doctor.Finding{}
}

// blockers returns what keeps the role from being led, as an observer reads it.
func (r restricted) blockers(t *testing.T, reader *Backend) []history.Blocker {
	t.Helper()
	holders, err := reader.Holders(t.Context(), tenure.NamedRole("scheduler"))
	if err != nil {
		t.Fatal(err)
	}
	return holders[0].Blockers
}

// waitBlocked campaigns until so long after the fence timeout that a round of terminations
// is over, and fails the test if the term begins.
func (p *peer) waitBlocked(role string) {
	p.t.Helper()
	for end := time.Now().Add(p.opening.Timing.FenceTimeout + fenceSlack); time.Now().Before(end); {
		attempt := p.try(role)[0]
		if attempt.Outcome == tenure.OutcomeGranted {
			p.t.Fatal("the term began while a transaction held the row")
		}
		p.wait(max(attempt.RetryIn, time.Millisecond))
	}
}

const grantApp = `GRANT "app" TO "node"`

// Without the right to terminate the application's transactions, a node waits for one
// for as long unchanged open. Everything that shows the role names the transaction and the
// statement that mends it. After that statement, the node takes over.
func TestBlockerIsNamedUntilNodesMayTerminateIt(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	for name, lock := range map[string]string{
		"FOR UPDATE":              "SELECT FROM {terms} WHERE role = 'scheduler' FOR UPDATE",
		"FOR NO KEY UPDATE":       "SELECT FROM {terms} WHERE role = 'scheduler' FOR NO KEY UPDATE",
		"in a savepoint":          "SAVEPOINT s; SELECT FROM {terms} WHERE role = 'scheduler' FOR UPDATE",
		"in a released savepoint": "SAVEPOINT s; SELECT FROM {terms} WHERE role = 'scheduler' FOR KEY SHARE; RELEASE s",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testBlockerIsNamed(t, lock)
		})
	}
}

func testBlockerIsNamed(t *testing.T, lock string) {
	t.Helper()
	r := newRestricted(t, nil)
	log := new(logBuffer)
	first, second := open(t, r.node), open(t, r.node, impatient, logTo(log))
	first.take("scheduler")
	if found := r.finding(t, diagnosis.RowLocksFinding); found.Severity != doctor.Warning || !strings.Contains(found.Advice, grantApp) {
		t.Errorf("before anything is blocked, the doctor says %+v; want a warning with %s", found, grantApp)
	}
	holder := r.lock(t, lock)
	if found := r.blockers(t, r.node); len(found) > 0 {
		t.Errorf("while the leader lives, %v blocks the role; want none", found)
	}
	first.Abort()
	second.waitBlocked("scheduler")

	for what, reader := range map[string]*Backend{"a superuser": r.owner, "a node's user": r.node} {
		found := r.blockers(t, reader)
		if len(found) != 1 {
			t.Fatalf("as %s: blockers %v; want one", what, found)
		}
		b := found[0]
		if b.PID != int32(holder.PgConn().PID()) || b.User != "app" || b.Application != "report" || b.Terminable || !strings.HasPrefix(b.Advice, grantApp) {
			t.Errorf("as %s: blocker %+v; want process %d of app, with %s", what, b, holder.PgConn().PID(), grantApp)
		}
		if b.Since.IsZero() == (reader == r.owner) {
			t.Errorf("as %s: the transaction began at %v; only the node's user must not see that", what, b.Since)
		}
	}
	found := r.finding(t, "blocked roles")
	if found.Severity != doctor.Warning || !strings.Contains(found.Detail, "of user app (report)") || !strings.HasPrefix(found.Advice, grantApp) {
		t.Errorf("the doctor says %+v; want a warning that names app, with %s", found, grantApp)
	}
	if !log.contains("may not terminate it") || !log.contains("GRANT") {
		t.Errorf("the node's log does not name the blocker and the GRANT")
	}

	exec(t, r.owner, r.owner.ApplicationGrants("app", "node"))
	if found := r.finding(t, diagnosis.RowLocksFinding); found.Severity != doctor.OK {
		t.Errorf("after the grant, the doctor says %+v; want ok", found)
	}
	second.win("scheduler")
	if err := holder.Ping(t.Context()); err == nil {
		t.Error("the application's transaction continues after the term began")
	}
	r.awaitRecorded(t, "of user app (report)")
	if strings.Contains(r.server.Log(), "wraparound") {
		t.Error("the look for the lockers of a row leaves an error in the server's log")
	}
}

// awaitRecorded waits until the history names what kept the last term from beginning.
func (r restricted) awaitRecorded(t *testing.T, want string) {
	t.Helper()
	eventually(t, r.owner, `SELECT blocked_by LIKE '%' || $1 || '%' FROM {terms} WHERE role = 'scheduler'`, want)
	terms, err := r.owner.History(t.Context(), history.Query{Latest: true})
	if err != nil || len(terms) != 1 || !strings.Contains(terms[0].PrecedingBlocker, want) {
		t.Errorf("the history is %+v, error %v; want what kept the term from beginning: %q", terms, err, want)
	}
}

// With the grants that are printed for an application, a node takes over after the
// fence timeout, and the history says what kept it.
func TestApplicationCannotHoldUpFailover(t *testing.T) {
	t.Parallel()
	r := newRestricted(t, nil)
	exec(t, r.owner, r.owner.ApplicationGrants("app", "node"))
	first, second := open(t, r.node), open(t, r.node, fenceLater)
	first.take("scheduler")
	r.lock(t, "SELECT FROM {terms} WHERE role = 'scheduler' FOR UPDATE")
	first.Abort()
	blocked := second.winFenced("scheduler", 0)
	r.awaitRecorded(t, "of user app (report)")

	// The next term moves the record to the history.
	second.Abort()
	third := open(t, r.node)
	third.win("scheduler")
	terms, err := r.owner.History(t.Context(), history.Query{})
	if err != nil || len(terms) != 3 {
		t.Fatalf("the history is %+v, error %v; want three terms", terms, err)
	}
	if now := terms[0]; now.PrecedingBlocker != "" {
		t.Errorf("the third term was kept by %q; want nothing", now.PrecedingBlocker)
	}
	if past := terms[1]; past.Term != blocked.Term || !strings.Contains(past.PrecedingBlocker, "of user app (report)") {
		t.Errorf("the second term is %+v; want what kept it", past)
	}
}

// No GRANT helps against a prepared transaction, so its ROLLBACK is named.
func TestPreparedTransactionIsNamedAsBlocker(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{"as a whole": "", "in a savepoint": "SAVEPOINT s; "} {
		t.Run(name, func(t *testing.T) {
			if before != "" {
				pgtest.Long(t)
			}
			t.Parallel()
			r := newRestricted(t, map[string]string{"max_prepared_transactions": "2"})
			first, second := open(t, r.node), open(t, r.node)
			first.take("scheduler")
			holder := r.lock(t, before+"SELECT FROM {terms} WHERE role = 'scheduler' FOR KEY SHARE")
			if _, err := holder.Exec(t.Context(), "PREPARE TRANSACTION 'it''s mine'"); err != nil {
				t.Fatal(err)
			}
			first.Abort()
			second.tryUntilFenced("scheduler")
			found := r.blockers(t, r.node)
			if len(found) != 1 {
				t.Fatalf("blockers %v; want the prepared transaction", found)
			}
			if b := found[0]; b.Prepared != "it's mine" || b.User != "app" || b.Since.IsZero() || b.Terminable || b.Advice != "ROLLBACK PREPARED E'it''s mine'" {
				t.Errorf("blocker %+v; want the prepared transaction with its ROLLBACK", b)
			}
			if found := r.finding(t, "blocked roles"); found.Severity != doctor.Warning || !strings.Contains(found.Advice, "ROLLBACK PREPARED") {
				t.Errorf("the doctor says %+v; want a warning with the ROLLBACK", found)
			}
		})
	}
}

// tryUntilFenced campaigns until a transaction prevents the term.
func (p *peer) tryUntilFenced(role string) {
	p.t.Helper()
	for begun := time.Now(); time.Since(begun) < patience; {
		attempt := p.try(role)[0]
		if attempt.Fenced {
			return
		}
		p.wait(max(attempt.RetryIn, time.Millisecond))
	}
	p.t.Fatalf("no transaction prevented the term of %s in %v", role, patience)
}

// The doctor names every user that can lock a role's row, whichever way it has the
// privilege, unless the node's user may terminate its transactions.
func TestDoctorNamesUsersThatCanHoldUpFailovers(t *testing.T) {
	t.Parallel()
	r := newRestricted(t, nil)
	for _, name := range []string{"member", "writer", "deleter", "owner", "outsider", "helper"} {
		user(t, r.server, name)
	}
	exec(t, r.owner, `
CREATE ROLE idle_group NOLOGIN;
ALTER ROLE member NOINHERIT;
GRANT app TO member;
GRANT pg_write_all_data TO writer;
GRANT DELETE ON {terms} TO deleter;
GRANT UPDATE ON {terms} TO idle_group;
GRANT SELECT ON {terms} TO outsider;
ALTER TABLE {terms} OWNER TO owner;
GRANT UPDATE (fence) ON {terms} TO helper;
GRANT helper TO node;`)
	found := r.finding(t, diagnosis.RowLocksFinding)
	if want := "app, deleter, member, owner, writer can hold up"; found.Severity != doctor.Warning || !strings.HasPrefix(found.Detail, want) {
		t.Errorf("the doctor says %+v; want a warning that begins with %q", found, want)
	}
	for _, user := range []string{"app", "deleter", "member", "writer"} {
		if want := `GRANT "` + user + `" TO "node"`; !strings.Contains(found.Advice, want) {
			t.Errorf("the advice is %q; want %s in it", found.Advice, want)
		}
	}
	if want := `ALTER ROLE "owner" NOLOGIN, or GRANT "pg_signal_backend" TO "node"`; !strings.Contains(found.Advice, want) {
		t.Errorf("the advice is %q; want %s in it", found.Advice, want)
	}
	exec(t, r.owner, "GRANT UPDATE (fence) ON {terms} TO PUBLIC")
	if found := r.finding(t, diagnosis.RowLocksFinding); !strings.Contains(found.Detail, "outsider") {
		t.Errorf("with UPDATE for PUBLIC, the doctor says %+v; want every user", found)
	}
	exec(t, r.owner, "GRANT pg_signal_backend TO node")
	if found := r.finding(t, diagnosis.RowLocksFinding); found.Severity != doctor.OK {
		t.Errorf("with pg_signal_backend, the doctor says %+v; want ok", found)
	}
}
