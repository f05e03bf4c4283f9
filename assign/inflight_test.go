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

// The server still runs a commit that assigns rows when its connection breaks
// and the cancel request is lost. Its rows are counted before more are
// assigned.
func TestMaxPerNodeCountsCommitInFlight(t *testing.T) {
	t.Parallel()
	const places, rows = 5, 30
	w := newJobs(t)
	admin := w.server.Conn(t)
	key := fmt.Sprint(int32(admin.PgConn().PID()))
	w.exec(`
		CREATE FUNCTION {schema}.linger() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM pg_advisory_xact_lock_shared(4712, ` + key + `);
			RETURN NULL;
		END $$;
		CREATE CONSTRAINT TRIGGER linger AFTER UPDATE ON {schema}.jobs DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW WHEN (NEW.state = 'assigned') EXECUTE FUNCTION {schema}.linger()`)
	ask := func(sql string) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}

	proxy, err := faultwire.Start(net.JoinHostPort(w.server.Host, strconv.Itoa(w.server.Port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	proxy.LoseCancelRequests()
	dsn, err := proxy.DSN(w.server.DSN())
	if err != nil {
		t.Fatal(err)
	}

	a := w.worker("a")
	leader := w.join(w.store(), tenure.Config{Name: "leader", Lease: time.Minute}, cluster.Config{Roles: []cluster.NodeRole{cluster.Scheduler}})
	w.sees(leader, cluster.Active, a)
	config := w.config()
	config.MaxPerNode, config.PollInterval = places, 10*time.Millisecond
	ask("SELECT pg_advisory_lock(4712, " + key + ")")
	w.add(rows, "")
	assigner, err := assign.New(leader, pgtest.Pool(t, dsn), config)
	if err != nil {
		t.Fatal(err)
	}
	w.run(assigner)

	held := func() []int32 {
		found, err := admin.Query(t.Context(), "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND (classid, objid) = (4712, "+key+") AND NOT granted")
		if err != nil {
			t.Fatal(err)
		}
		pids, err := pgx.CollectRows(found, pgx.RowTo[int32])
		if err != nil {
			t.Fatal(err)
		}
		return pids
	}
	var pid int32
	w.await("a commit that is held", func() bool {
		for _, conn := range proxy.Connections() {
			if slices.Contains(held(), int32(conn.PID())) {
				pid = int32(conn.PID())
				conn.Cut(faultwire.ToClient) // the server is not notified
				return true
			}
		}
		return false
	})
	w.await("the leader to go on", func() bool {
		return len(held()) > 1 || one[bool](w, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))", pid)
	})
	ask("SELECT pg_advisory_unlock(4712, " + key + ")")
	most := 0
	w.await("all done", func() bool {
		most = max(most, w.has(a))
		w.exec(`UPDATE {schema}.jobs SET state = 'done' WHERE id IN (SELECT id FROM {schema}.jobs WHERE state = 'assigned' LIMIT 3)`)
		return w.count(`state = 'done'`) == rows
	})
	if most > places {
		t.Errorf("a node had %d rows; the most is %d", most, places)
	}
}
