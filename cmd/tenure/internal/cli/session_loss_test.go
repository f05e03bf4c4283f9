package cli

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// TestRunLeadsAfterSessionIsLostWhileJoining: a connection that is cut between the
// opening of the first session and the first reading of the registry does not end
// "tenure run". It opens another session and leads.
func TestRunLeadsAfterSessionIsLostWhileJoining(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	proxy, err := faultwire.Start(net.JoinHostPort(place.server.Host, strconv.Itoa(place.server.Port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	dsn, err := proxy.DSN(place.server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	holdReading := holdFirstReading(t, place)
	node := launch(t, "run", "-o", "json", "--dsn", dsn, "--schema", place.schema, "--role", "billing",
		"--lease", "3m", "--heartbeat-interval", "1m") // no statement of the node times out here
	held, resume := holdReading()
	conn, err := proxy.Await(t.Context(), func(c *faultwire.Conn) bool { return c.PID() == held })
	if err != nil {
		t.Fatal(err)
	}
	conn.Cut()
	resume()
	node.await("acquired")
	if log := node.log(); !strings.Contains(log, `msg="session ended"`) {
		t.Errorf("no session was lost:\n%s", log)
	}
	node.signal(syscall.SIGTERM)
	if code := node.exit(); code != console.ExitDone {
		t.Errorf("exit code %d", code)
	}
}

// holdFirstReading prepares an installation so that the first heartbeat of a session waits.
// The function that it returns waits for that heartbeat, lets it pass, and holds the next
// statement, which reads the registry. It returns the PID of that session's backend, and a
// function that lets the statement pass.
func holdFirstReading(t *testing.T, place place) (hold func() (pid uint32, resume func())) {
	t.Helper()
	installation := place.installation(t)
	installation.Migrate()
	gate := pgx.Identifier{place.schema, "gate"}.Sanitize()
	installation.Exec(`CREATE TABLE ` + gate + `()`)
	installation.Exec(`
CREATE FUNCTION ` + gate + `() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    LOCK TABLE ` + gate + ` IN ACCESS SHARE MODE;
    RETURN NULL;
END
$$`)
	installation.Exec(`CREATE TRIGGER gate AFTER UPDATE OF last_heartbeat ON {nodes} FOR EACH ROW EXECUTE FUNCTION ` + gate + `()`)
	begin := func(statement string) (tx pgx.Tx, pid uint32) {
		t.Helper()
		conn := place.server.Conn(t)
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if statement != "" {
			pgtest.Exec(t, tx, statement)
		}
		return tx, conn.PgConn().PID()
	}
	end := func(tx pgx.Tx) {
		t.Helper()
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	closed, holder := begin(`LOCK TABLE ` + gate + ` IN ACCESS EXCLUSIVE MODE`)
	return func() (pid uint32, resume func()) {
		t.Helper()
		heartbeat := awaitBlocked(t, place, holder, "")
		registry, locker := begin("")
		locked := make(chan error, 1)
		go func() {
			_, err := registry.Exec(t.Context(), pgtest.SQL(installation.Backend, `LOCK TABLE {nodes} IN ACCESS EXCLUSIVE MODE`))
			locked <- err
		}()
		if waits := awaitBlocked(t, place, heartbeat, ""); waits != locker {
			t.Fatalf("the heartbeat of the backend %d holds up another backend than the test's", heartbeat)
		}
		end(closed)
		if err := <-locked; err != nil {
			t.Fatal(err)
		}
		reader := awaitBlocked(t, place, locker, "worker_capabilities") // the watch may wait too
		if reader != heartbeat {
			t.Fatalf("the backend %d reads the registry, not %d which sent the heartbeat", reader, heartbeat)
		}
		return reader, func() { end(registry) }
	}
}

// awaitBlocked waits until a backend waits for another one in a statement that contains a
// text, and returns it.
func awaitBlocked(t *testing.T, place place, by uint32, text string) (pid uint32) {
	t.Helper()
	conn := place.server.Conn(t)
	defer conn.Close(context.WithoutCancel(t.Context()))
	eventually(t, fmt.Sprintf("a backend that waits for %d", by), func() bool {
		err := conn.QueryRow(t.Context(), `SELECT pid FROM pg_stat_activity WHERE $1::int = ANY (pg_blocking_pids(pid)) AND strpos(query, $2) > 0`, by, text).
			Scan(&pid)
		return err == nil
	})
	return pid
}
