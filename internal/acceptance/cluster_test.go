package acceptance_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

var clusterRounds = flag.Int("cluster-rounds", scaled("TENURE_TEST_CLUSTER_ROUNDS", 12), "how many rounds TestMembersOfLargeClusterAgree runs")

const (
	residents    = 50 // members in the process of the test
	separate     = 8  // members in separate processes
	clusterRoles = 3

	// withoutPolling is less than the interval at which members poll: what takes
	// less time came by notification. On an otherwise idle machine it takes less
	// than a second until every member knows of everything.
	withoutPolling = 4 * time.Second
)

// A large cluster, in which members join, leave, drain and come back, and processes
// are killed, several at the same time. After each round every member knows of
// every other, and the invariants hold all the time.
//
// A full run, as on a release:
//
//	TENURE_TEST_CLUSTER_ROUNDS=500 go test ./internal/acceptance -run TestMembersOfLargeClusterAgree -v -timeout 0
func TestMembersOfLargeClusterAgree(t *testing.T) {
	pgtest.Long(t)
	f := newFleet(t)
	f.start()
	f.converge(patience)
	for round := range *clusterRounds {
		f.round(round)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	f.examine()
	f.deaths.report(t, f.slowest)
}

// fleet is a large cluster.
type fleet struct {
	*cluster
	server   *pgtest.Server
	admin    *pgx.Conn
	pool     *pgxpool.Pool // of the leaders' work
	backend  *postgres.Backend
	log      *slog.Logger
	random   *rand.Rand
	checkers []*checker // for each role
	deaths   deaths
	slowest  time.Duration // of all convergences

	residents []*resident // nil where one has left
	draining  map[*resident]bool
	children  []*child // nil where one was killed
	births    int
}

// child is a member in a separate process.
type child struct {
	*process
	node string // its id
}

func newFleet(t *testing.T) *fleet {
	chosen := *seed
	if chosen == 0 {
		chosen = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with -acceptance-seed=%d", chosen)
	server, c := newServer(t, pgtest.Options{Settings: map[string]string{
		"max_connections": "400", "track_commit_timestamp": "on",
	}})
	c.config = tenure.Config{} // the default: only notifications are fast enough
	c.migrate()
	f := &fleet{
		cluster: c, server: server, admin: server.Conn(t), pool: server.Pool(t), random: rand.New(rand.NewPCG(chosen, 0)),
		log:      slog.New(slog.NewTextHandler(&logWriter{t: t}, &slog.HandlerOptions{Level: slog.LevelError})),
		checkers: []*checker{c.checks}, deaths: deaths{killed: map[string]death{}},
		residents: make([]*resident, residents), draining: map[*resident]bool{}, children: make([]*child, separate),
	}
	for range clusterRoles - 1 {
		f.checkers = append(f.checkers, newChecker(t))
	}
	var err error
	if f.backend, err = postgres.New(c.dsn, c.db); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.backend.Close)
	execute(t, f.admin, "CREATE TABLE ledger (id bigserial, role text, term bigint)")
	t.Cleanup(f.stop)
	return f
}

// start starts everybody who is not there.
func (f *fleet) start() {
	var group sync.WaitGroup
	defer group.Wait()
	for i, r := range f.residents {
		if r == nil {
			name := f.name("resident")
			group.Go(func() { f.residents[i] = f.settle(name) })
		}
	}
	if f.births == residents {
		group.Wait() // so that residents lead first: the checkers know only their terms
	}
	for i, c := range f.children {
		if c == nil {
			p := f.spawn(childMember, order{DSN: f.dsn, Schema: f.schema, Name: f.name("child"), Lease: 10 * time.Second, Roles: clusterRoles})
			c := &child{process: p}
			if err := json.Unmarshal(p.await("ready", time.Time{}).Data, &c.node); err != nil {
				f.t.Fatal(err)
			}
			f.children[i] = c
		}
	}
}

// name returns a name that no node has had.
func (f *fleet) name(kind string) string {
	f.births++
	return kind + strconv.Itoa(f.births)
}

// stop has everybody leave.
func (f *fleet) stop() {
	var group sync.WaitGroup
	defer group.Wait()
	for _, r := range f.residents {
		if r != nil {
			group.Go(func() { f.leave(r) })
		}
	}
}

// round makes something happen to several members at the same time.
func (f *fleet) round(number int) {
	var group sync.WaitGroup
	kills, leaves, drains := f.random.IntN(4), f.random.IntN(5), f.random.IntN(5)
	joins := f.random.IntN(2) == 0
	if number%10 == 0 {
		group.Go(f.forgetDead)
	}
	for range kills {
		i := f.random.IntN(separate)
		if c := f.children[i]; c != nil {
			f.children[i] = nil
			group.Go(func() { f.deaths.kill(c.process, c.node, joins) })
		}
	}
	for _, i := range f.random.Perm(residents)[:leaves+drains] {
		r := f.residents[i]
		switch {
		case r == nil:
		case leaves > 0:
			leaves--
			f.residents[i] = nil
			delete(f.draining, r)
			group.Go(func() { f.leave(r) })
		case f.draining[r]:
			delete(f.draining, r)
			group.Go(func() { f.serve(r) })
		default:
			f.draining[r] = true
			group.Go(func() { f.drain(r) })
		}
	}
	for i := range clusterRoles {
		if f.random.IntN(3) == 0 {
			group.Go(func() { f.depose(roleName(i)) })
		}
	}
	if joins {
		f.start()
	}
	group.Wait()
	f.converge(withoutPolling)
	f.check()
}

func (f *fleet) forgetDead() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := f.backend.ForgetDead(ctx, 0); err != nil {
		f.t.Error(err)
	}
}

// depose asks the leader of a role, if there is one, to step down.
func (f *fleet) depose(role string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := f.backend.Request(ctx, tenure.Request{Kind: tenure.RequestStepDown, Role: role, By: "test"})
	if err != nil && !errors.Is(err, tenure.ErrNoLeader) {
		f.t.Error(err)
	}
}

func (f *fleet) drain(r *resident) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.Drain(ctx); err != nil {
		f.t.Errorf("%s drains: %v", r.name, err)
	}
}

func (f *fleet) serve(r *resident) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.Undrain(ctx); err != nil {
		f.t.Errorf("%s comes back: %v", r.name, err)
	}
}

// converge waits until every member knows of every other what is so.
func (f *fleet) converge(within time.Duration) {
	f.t.Helper()
	begun, truth := time.Now(), f.truth()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	agree := func(name string, known func() statuses) {
		for {
			difference := compare(known(), truth)
			took := time.Since(begun)
			switch {
			case difference == "":
				f.slowest = max(f.slowest, took)
				return
			case took > within:
				f.t.Errorf("after %v %s takes %s", took.Round(time.Millisecond), name, difference)
				return
			}
			<-tick.C
		}
	}
	for _, r := range f.residents {
		if r != nil {
			agree(r.name, func() statuses { return statusesOf(r.Nodes()) })
		}
	}
	for _, c := range f.children {
		if c != nil {
			agree(c.Name, func() (known statuses) {
				c.query("", "knows", &known)
				return known
			})
		}
	}
}

// truth is what every member should know.
func (f *fleet) truth() statuses {
	truth := statuses{}
	for _, r := range f.residents {
		if r != nil {
			truth[r.ID().String()] = statusOf(tenure.StatusActive, false)
			if f.draining[r] {
				truth[r.ID().String()] = statusOf(tenure.StatusDraining, true)
			}
		}
	}
	for _, c := range f.children {
		if c != nil {
			truth[c.node] = statusOf(tenure.StatusActive, false)
		}
	}
	return truth
}

// compare returns the first difference.
func compare(known, truth statuses) string {
	for id, status := range truth {
		if known[id] != status {
			return fmt.Sprintf("%s for %q; it is %q", id, known[id], status)
		}
	}
	for id, status := range known {
		if truth[id] == "" {
			return fmt.Sprintf("%s for %q; it is gone", id, status)
		}
	}
	return ""
}

// check checks what must hold at the end of every round, in addition to what the
// checkers of the roles check all the time.
func (f *fleet) check() {
	f.t.Helper()
	for r := range f.draining {
		if r.leads() {
			f.t.Errorf("%s is drained and leads", r.name)
		}
	}
	// Invariant 7. Those in service are the ones who lead.
	eventually(f.t, f.admin, `
		SELECT count(*) = $1
		FROM `+f.quoted("terms")+` t JOIN `+f.quoted("nodes")+` n ON n.id = t.node_id AND n.incarnation = t.incarnation
		WHERE t.ended_at IS NULL AND n.status = 'active'`, clusterRoles)
	// Invariant 6.
	const horizon = `
		SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float8
		FROM pg_stat_activity
		WHERE backend_xmin IS NOT NULL AND application_name LIKE 'tenure%'`
	if age := value[float64](f.t, f.admin, horizon); age > 31 {
		f.t.Errorf("Invariant 6: a connection has held back the vacuum horizon for %.1f s", age)
	}
	// Invariant 8.
	const connections = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tenure %'"
	if n := value[int](f.t, f.admin, connections); n > 3*(residents+separate) {
		f.t.Errorf("Invariant 8: %d connections for at most %d nodes", n, residents+separate)
	}
}

// examine checks the record of all rounds.
func (f *fleet) examine() {
	f.t.Helper()
	// Invariants 1 and 2, also for the processes, of which the checkers know
	// nothing.
	const falls = `
		FROM (
			SELECT acquired_at < lag(ended_at) OVER w OR term <= lag(term) OVER w AS early
			FROM %s WINDOW w AS (PARTITION BY role ORDER BY acquired_at, term)
		) h
		WHERE early`
	if n := value[int](f.t, f.admin, "SELECT count(*) "+fmt.Sprintf(falls, f.quoted("history"))); n > 0 {
		f.t.Errorf("%d terms began before the last one had ended", n)
	}
	// Invariant 3.
	written := value[int](f.t, f.admin, "SELECT count(*) FROM ledger")
	late := value[int](f.t, f.admin, `
		SELECT count(*)
		FROM (
			SELECT term < max(term) OVER (PARTITION BY role ORDER BY pg_xact_commit_timestamp(xmin) ROWS UNBOUNDED PRECEDING) AS late
			FROM ledger
		) l
		WHERE late`)
	if written == 0 || late > 0 {
		f.t.Errorf("Invariant 3: %d of %d fenced transactions committed after the next term had begun", late, written)
	}
	for i, checks := range f.checkers {
		f.t.Logf("%s: %d terms seen", roleName(i), len(checks.terms()))
	}
	f.t.Logf("%d fenced transactions", written)
}

// report says how soon deaths were seen, and holds it to a bound.
func (d *deaths) report(t *testing.T, slowest time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t.Logf("all members agreed after at most %v", slowest.Round(time.Millisecond))
	if len(d.took)+len(d.amid) == 0 {
		t.Error("no node has seen a death")
	}
	t.Logf("%d processes were killed", len(d.killed))
	for _, kind := range []struct {
		when string
		took []time.Duration
	}{{"while no process started", d.took}, {"while others started", d.amid}} {
		if len(kind.took) == 0 {
			continue
		}
		slices.Sort(kind.took)
		at := func(part float64) time.Duration {
			return kind.took[int(part*float64(len(kind.took)-1))].Round(100 * time.Microsecond)
		}
		t.Logf("%s, deaths were seen %d times: p50 %v, p90 %v, p99 %v, last %v", kind.when, len(kind.took), at(0.5), at(0.9), at(0.99), at(1))
		if p99 := at(0.99); p99 > withoutPolling {
			t.Errorf("%s, deaths were seen after %v (p99)", kind.when, p99)
		}
	}
}
