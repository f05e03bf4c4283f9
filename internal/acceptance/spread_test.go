package acceptance_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// spreadName is the name under which the processes of these tests share roles.
const spreadName = "orders"

// shared is a cluster of processes that share roles.
type shared struct {
	*cluster
	admin     *pgx.Conn
	roles     int
	processes []*process
	started   int
}

func newShared(t *testing.T, roles, processes int) *shared {
	t.Helper()
	server, c := newServer(t, pgtest.Options{Settings: map[string]string{"max_locks_per_transaction": "512"}})
	c.migrate()
	s := &shared{cluster: c, admin: server.Conn(t), roles: roles}
	for range processes {
		s.start()
	}
	s.even()
	return s
}

// start starts one more process.
func (s *shared) start() *process {
	s.t.Helper()
	name := fmt.Sprintf("s%d", s.started)
	s.started++
	p := s.spawn(childSpread, order{DSN: s.dsn, Schema: s.schema, Name: name, Lease: 10 * time.Second, Roles: s.roles})
	s.processes = append(s.processes, p)
	return p
}

// kill kills a process and returns when.
func (s *shared) kill(i int) time.Time {
	s.t.Helper()
	victim := s.processes[i]
	s.processes = slices.Delete(s.processes, i, i+1)
	killed := time.Now()
	victim.Kill()
	return killed
}

// even waits until every process leads its share. It looks seldom, so that
// looking costs nothing that is measured.
func (s *shared) even() {
	s.t.Helper()
	const query = `
		SELECT count(*) = $1::int AND max(n) - min(n) <= 1 AND sum(n) = $2::int
		FROM (SELECT count(*) AS n FROM %s WHERE ended_at IS NULL AND term > 0 GROUP BY node_id) AS shares`
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(2 * patience); ; {
		<-tick.C
		if value[bool](s.t, s.admin, fmt.Sprintf(query, s.quoted("terms")), len(s.processes), s.roles) {
			return
		}
		if time.Now().After(limit) {
			s.t.Fatal("the roles are not shared evenly")
		}
	}
}

// begun asks all processes when, after a moment, they began to lead roles.
func (s *shared) begun(since time.Time) []time.Duration {
	s.t.Helper()
	var all []time.Duration
	for _, p := range s.processes {
		var begun []int64
		p.query("begun", "begun", &begun)
		for _, at := range begun {
			if after := time.Duration(at - since.UnixNano()); after > 0 {
				all = append(all, after)
			}
		}
	}
	slices.Sort(all)
	return all
}

// percentile is the p-th percentile of what is sorted.
func percentile[T any](sorted []T, p int) T { return sorted[(len(sorted)-1)*p/100] }

func describe(sorted []time.Duration) string {
	round := func(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
	return fmt.Sprintf("%d roles: p50 %v, p99 %v, longest %v",
		len(sorted), round(percentile(sorted, 50)), round(percentile(sorted, 99)), round(sorted[len(sorted)-1]))
}

// Many roles on four processes: what they cost at rest, how soon the roles of a
// process that was killed are led again, and how long roles that move to a new
// process have no leader. The bounds show that notifications were enough, without
// polling; how long it takes on a quiet machine is in the page on placement.
//
// A full run, as on a release:
//
//	TENURE_TEST_SHARED_ROLES=10000 go test ./internal/acceptance -run TestSharedRolesAreTakenOverWithoutPolling -v
func TestSharedRolesAreTakenOverWithoutPolling(t *testing.T) {
	pgtest.Long(t)
	const (
		processes, rounds = 4, 2
		restBound         = 8.0 // statements a second
		rest              = 20 * time.Second
		failoverBound     = withoutPolling
		vacancyBound      = withoutPolling
	)
	roles := scaled("TENURE_TEST_SHARED_ROLES", 2000)
	s := newShared(t, roles, processes)

	connections := value[int](t, s.admin, `SELECT count(*) FROM pg_stat_activity WHERE application_name ~ '^tenure s\d+ (session|watch)$'`)
	others := value[int](t, s.admin, `SELECT count(*) FROM pg_stat_activity WHERE application_name ~ '^tenure ' AND application_name !~ '(session|watch)$'`)
	if connections != 2*processes {
		t.Errorf("%d processes have %d connections", processes, connections)
	}
	t.Logf("connections: %d, and %d for questions that close on their own", connections, others)
	s.awaitRest()
	before := s.statements()
	<-time.After(rest)
	rate := float64(s.statements()-before) / rest.Seconds()
	t.Logf("at rest: %.1f statements a second in all", rate)
	if rate >= restBound {
		t.Errorf("at rest: %.1f statements a second", rate)
	}
	if n := value[int](t, s.admin, `SELECT count(*) FROM pg_stat_activity WHERE application_name ~ '^tenure '`); n != 2*processes {
		t.Errorf("%d processes have %d connections at rest", processes, n)
	}

	for range rounds {
		killed := s.kill(0)
		s.even()
		took := s.begun(killed)
		t.Logf("killed: %s", describe(took))
		if len(took) != roles/processes {
			t.Errorf("%d roles were taken", len(took))
		}
		if p99 := percentile(took, 99); p99 > failoverBound {
			t.Errorf("led again after %v (p99)", p99)
		}

		s.start()
		s.even()
		joiner := s.processes[len(s.processes)-1]
		s.reportMoves(joiner, roles/processes, vacancyBound)
	}
	s.start()
	s.even()
	s.reportMoves(s.processes[len(s.processes)-1], roles/(processes+1), vacancyBound)
}

// reportMoves checks what moved to a process that came.
func (s *shared) reportMoves(joiner *process, share int, bound time.Duration) {
	s.t.Helper()
	const query = "SELECT vacant_ms FROM %s WHERE node_name = $1 AND ended_at IS NULL ORDER BY vacant_ms"
	rows, err := s.admin.Query(s.t.Context(), fmt.Sprintf(query, s.quoted("terms")), joiner.Name)
	if err != nil {
		s.t.Fatal(err)
	}
	vacant, err := pgx.CollectRows(rows, pgx.RowTo[*float64])
	if err != nil {
		s.t.Fatal(err)
	}
	var all []time.Duration
	for _, ms := range vacant {
		if ms == nil {
			s.t.Fatalf("a role that moved was lost, not handed over: %v", s.ends(joiner))
		}
		all = append(all, time.Duration(*ms*float64(time.Millisecond)))
	}
	s.t.Logf("moved to %s: without a leader: %s", joiner.Name, describe(all))
	if len(all) != share {
		s.t.Errorf("%d roles moved; the share is %d", len(all), share)
	}
	if p99 := percentile(all, 99); p99 > bound {
		s.t.Errorf("roles that moved had no leader for %v (p99)", p99)
	}
}

// ends counts how the terms ended before those of a process.
func (s *shared) ends(p *process) map[string]int {
	s.t.Helper()
	const query = `
		SELECT coalesce(jsonb_object_agg(end_reason, n), '{}')
		FROM (
			SELECT h.end_reason, count(*) AS n
			FROM %[1]s h JOIN %[2]s t ON t.role = h.role
			WHERE t.node_name = $1 AND t.ended_at IS NULL
				AND h.term = (SELECT max(term) FROM %[1]s b WHERE b.role = t.role AND b.term < t.term)
			GROUP BY h.end_reason
		) AS reasons`
	return value[map[string]int](s.t, s.admin, fmt.Sprintf(query, s.quoted("history"), s.quoted("terms")), p.Name)
}

// statements returns how many statements the processes have sent.
func (s *shared) statements() int64 {
	s.t.Helper()
	var sum int64
	for _, p := range s.processes {
		var counts map[string]int64
		p.query("statements", "statements", &counts)
		for _, n := range counts {
			sum += n
		}
	}
	return sum
}

// awaitRest waits until the processes do only their periodic work: hardly anything
// for two seconds in a row, and no connection for questions.
func (s *shared) awaitRest() {
	s.t.Helper()
	limit := time.Now().Add(2 * patience)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for quiet, last := 0, s.statements(); quiet < 2; {
		<-tick.C
		now := s.statements()
		if now-last <= int64(3*len(s.processes)) {
			quiet++
		} else {
			quiet = 0
		}
		last = now
		if time.Now().After(limit) {
			s.t.Fatal("the processes do not come to rest")
		}
	}
	eventually(s.t, s.admin, `SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name ~ '^tenure ' AND application_name !~ '(session|watch)$'`)
}
