package assign_test

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/assign"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// heldCommits holds commits that assign rows.
type heldCommits struct {
	*world
	admin *pgx.Conn
	key   string
}

// holdCommits holds every such commit until release is called.
func (w *world) holdCommits() heldCommits {
	w.Helper()
	admin := w.Server.Conn(w)
	h := heldCommits{w, admin, fmt.Sprint(int32(admin.PgConn().PID()))}
	w.Exec(`
		CREATE FUNCTION {schema}.linger() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM pg_advisory_xact_lock_shared(4712, ` + h.key + `);
			RETURN NULL;
		END $$;
		CREATE CONSTRAINT TRIGGER linger AFTER UPDATE ON {schema}.jobs DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW WHEN (NEW.state = 'assigned') EXECUTE FUNCTION {schema}.linger()`)
	h.ask("SELECT pg_advisory_lock(4712, " + h.key + ")")
	return h
}

func (h heldCommits) ask(sql string) {
	h.Helper()
	pgtest.Exec(h, h.admin, sql)
}

func (h heldCommits) release() { h.Helper(); h.ask("SELECT pg_advisory_unlock(4712, " + h.key + ")") }

// pids returns the backends whose commits are held.
func (h heldCommits) pids() []int32 {
	h.Helper()
	found, err := h.admin.Query(h.Context(), "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND (classid, objid) = (4712, "+h.key+") AND NOT granted")
	if err != nil {
		h.Fatal(err)
	}
	pids, err := pgx.CollectRows(found, pgx.RowTo[int32])
	if err != nil {
		h.Fatal(err)
	}
	return pids
}

// awaitNext waits until another commit is held, too, or a statement waits for that of pid.
func (h heldCommits) awaitNext(pid int32) {
	h.Helper()
	h.Await("another pass", func() bool {
		return len(h.pids()) > 1 || one[bool](h.world, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))", pid)
	})
}

// finishAll finishes rows until all are done, and returns how many a node had at most.
func (w *world) finishAll(n node, rows int) (most int) {
	w.Helper()
	w.Await("all done", func() bool {
		most = max(most, w.has(n))
		w.Exec(`UPDATE {schema}.jobs SET state = 'done' WHERE id IN (SELECT id FROM {schema}.jobs WHERE state = 'assigned' LIMIT 3)`)
		return w.count(`state = 'done'`) == rows
	})
	return most
}

// The server still runs a commit that assigns rows when its connection breaks
// and the cancel request is lost. Its rows are counted before more are
// assigned.
func TestMaxPerNodeCountsCommitInFlight(t *testing.T) {
	t.Parallel()
	const places, rows = 5, 30
	w := newJobs(t)
	proxy, err := faultwire.Start(net.JoinHostPort(w.Server.Host, strconv.Itoa(w.Server.Port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	proxy.LoseCancelRequests()
	dsn, err := proxy.DSN(w.Server.DSN())
	if err != nil {
		t.Fatal(err)
	}

	a := w.worker("a")
	leader := w.join(w.store(), tenure.Config{Name: "leader", Lease: time.Minute}, cluster.Config{Roles: []cluster.NodeRole{cluster.Scheduler}})
	w.sees(leader, cluster.Active, a)
	config := w.config()
	config.MaxPerNode, config.PollInterval = places, 10*time.Millisecond
	held := w.holdCommits()
	w.add(rows, "")
	assigner, err := assign.New(leader, pgtest.Pool(t, dsn), config)
	if err != nil {
		t.Fatal(err)
	}
	w.run(assigner)

	var pid int32
	w.Await("a commit that is held", func() bool {
		for _, conn := range proxy.Connections() {
			if slices.Contains(held.pids(), int32(conn.PID())) {
				pid = int32(conn.PID())
				conn.Cut(faultwire.ToClient) // the server is not notified
				return true
			}
		}
		return false
	})
	held.awaitNext(pid)
	held.release()
	if most := w.finishAll(a, rows); most > places {
		t.Errorf("a node had %d rows; the maximum is %d", most, places)
	}
}

// While a role is renamed, two roles can have leaders that assign rows of one table, and
// can name it in two ways. Each leader counts what the other has assigned.
func TestMaxPerNodeHoldsForTwoRoles(t *testing.T) {
	t.Parallel()
	const places, rows = 5, 30
	w := newJobs(t)
	pool := pgtest.Pool(t, w.Server.DSN()+"&search_path="+w.Schema)
	a := w.worker("a")
	held := w.holdCommits()
	w.add(rows, "")
	var pid int32
	for role, table := range map[string]pgx.Identifier{"assigner": {w.Schema, "jobs"}, "renamed": {"jobs"}} {
		leader := w.join(w.store(), tenure.Config{Name: role, Lease: time.Minute}, cluster.Config{Roles: []cluster.NodeRole{cluster.Scheduler}})
		w.sees(leader, cluster.Active, a)
		config := w.config()
		config.Role, config.Table = tenure.NamedRole(role), table
		config.MaxPerNode, config.PollInterval = places, 10*time.Millisecond
		assigner, err := assign.New(leader, pool, config)
		if err != nil {
			t.Fatal(err)
		}
		w.run(assigner)
		if pid == 0 {
			w.Await("a commit that is held", func() bool {
				if pids := held.pids(); len(pids) > 0 {
					pid = pids[0]
				}
				return pid != 0
			})
		}
	}
	held.awaitNext(pid)
	held.release()
	if most := w.finishAll(a, rows); most > places {
		t.Errorf("a node had %d rows; the maximum is %d", most, places)
	}
}
