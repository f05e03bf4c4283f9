package acceptance_test

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// A process that holds a thousand roles is killed; another candidate for all of
// them holds them soon. The benchmark measures how soon.
func TestThousandRolesAreTakenOverAfterCrash(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	const roles, rounds, silence = 1000, 3, 5 * lease
	server, c := newServer(t, pgtest.Options{Settings: map[string]string{"max_locks_per_transaction": "256"}})
	c.migrate()
	admin := server.Conn(t)
	child := func(name string) *process {
		return c.spawn(childIdle, order{DSN: c.dsn, Schema: c.schema, Name: name, Lease: silence, Roles: roles})
	}
	leader := child("n0")
	leader.await("acquired", time.Time{})
	newest := value[int64](t, admin, "SELECT max(term) FROM "+c.quoted("terms"))
	for round := range rounds {
		standby := child("n" + string(rune('1'+round)))
		eventually(t, admin, "SELECT count(*) = 2 FROM "+c.quoted("nodes")+" WHERE status = 'active'")
		// Its watch has begun.
		eventually(t, admin, "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE application_name = 'tenure ' || $1 || ' watch'", standby.Name)
		killed := time.Now()
		leader.Kill()
		all := standby.await("acquired", killed)
		took := time.Duration(all.At - killed.UnixNano())
		t.Logf("%d roles were held again after %v", roles, took.Round(time.Millisecond))
		if took >= silence {
			t.Errorf("the roles were held again after %v, not before %v: the standby did not detect the death itself", took, silence)
		}
		const held = `
			SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
			WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND a.application_name = 'tenure ' || $1 || ' session'`
		if n := value[int](t, admin, held, standby.Name); n != roles {
			t.Errorf("%s holds %d locks, want %d", standby.Name, n, roles)
		}
		const wrong = " WHERE ended_at IS NOT NULL OR node_name <> $1 OR term <= $2"
		if n := value[int](t, admin, "SELECT count(*) FROM "+c.quoted("terms")+wrong, standby.Name, newest); n != 0 {
			t.Errorf("%d roles have another record than a newer term of %s", n, standby.Name)
		}
		newest = value[int64](t, admin, "SELECT max(term) FROM "+c.quoted("terms"))
		leader = standby
	}
}
