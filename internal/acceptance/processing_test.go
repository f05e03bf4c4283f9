package acceptance_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/sandbox"
	"github.com/exactly-one/tenure/view"
)

// processedEvents is how many events are committed, at least.
func processedEvents() int {
	if n, err := strconv.Atoi(os.Getenv("TENURE_TEST_EVENTS")); err == nil {
		return n
	}
	return 6_000
}

// Many writers write concurrently, wait at random and roll back, while the leaders
// of two views are killed, stopped and cut off: every event that was committed is
// applied exactly once, and those of a stream in their order.
//
// A full run, as on a release:
//
//	TENURE_TEST_EVENTS=1000000 go test ./internal/acceptance -run TestViewsApplyEventsOnceUnderFaults -v -timeout 0
func TestViewsApplyEventsOnceUnderFaults(t *testing.T) {
	pgtest.Long(t)
	wanted := processedEvents()
	server, c := newServer(t, pgtest.Options{Settings: map[string]string{"max_connections": "200"}})
	c.migrate()
	admin := server.Conn(t)
	createViews(c, admin)
	p := &projection{cluster: c, address: address(server), admin: admin, random: newRandom(t)}
	for range p.members {
		p.spawn()
	}
	begun := time.Now()
	writers := startWriters(t, c, wanted)
	const leastFaults = 4
	faults := map[string]int{}
	for done := false; !done || len(p.strikes) < leastFaults; done = p.done(writers) {
		faults[p.strike()]++
	}
	committed := writers.wait()
	p.examine(committed)
	took := time.Since(begun)
	t.Logf("%d events were applied twice over %d faults %v in %v; the role was vacant for at most %v",
		committed, len(p.strikes), faults, took.Round(time.Second), p.longest.Round(time.Millisecond))
}

func newRandom(t *testing.T) *rand.Rand {
	chosen := *seed
	if chosen == 0 {
		chosen = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with -acceptance-seed=%d", chosen)
	return rand.New(rand.NewPCG(chosen, 0))
}

// projection is processes that project, each behind a separate wire.
type projection struct {
	*cluster
	address string
	admin   *pgx.Conn
	random  *rand.Rand
	members [3]*projecting
	born    int
	strikes []string
	longest time.Duration
	sum     int       // of what was applied
	moved   time.Time // when that was seen to change
}

type projecting struct {
	*process
	wire *faultwire.Proxy
}

// spawn starts a process in every place that is empty.
func (p *projection) spawn() {
	p.t.Helper()
	for i, m := range p.members {
		if m != nil {
			continue
		}
		wire, err := faultwire.Start(p.address)
		if err != nil {
			p.t.Fatal(err)
		}
		p.t.Cleanup(func() { _ = wire.Close() }) // after the process was killed
		dsn, err := wire.DSN(p.dsn)
		if err != nil {
			p.t.Fatal(err)
		}
		p.born++
		o := order{DSN: dsn, Schema: p.schema, Name: fmt.Sprintf("projects%d", p.born), Lease: lease}
		p.members[i] = &projecting{p.cluster.spawn(childProjects, o), wire}
		return
	}
}

// leader waits for a term after another and returns it and its leader's place.
func (p *projection) leader(last int64) (int64, int) {
	p.t.Helper()
	const leading = " WHERE role = $1 AND term > $2 AND ended_at IS NULL"
	role := view.Role().Name()
	eventually(p.t, p.admin, "SELECT count(*) = 1 FROM "+p.quoted("terms")+leading, role, last)
	var term int64
	var name string
	err := p.admin.QueryRow(p.t.Context(), "SELECT term, node_name FROM "+p.quoted("terms")+" WHERE role = $1", role).Scan(&term, &name)
	if err != nil {
		p.t.Fatal(err)
	}
	for i, m := range p.members {
		if m.Name == name {
			return term, i
		}
	}
	p.t.Fatalf("no node is called %s", name)
	return 0, 0
}

// strike does something to the leader, at a random moment, and returns what when
// another leads and everything is as it was.
func (p *projection) strike() string {
	p.t.Helper()
	term, i := p.leader(0)
	<-time.After(time.Duration(p.random.Int64N(int64(lease / 2))))
	victim := p.members[i]
	begun := time.Now()
	next := func() {
		p.leader(term)
		p.longest = max(p.longest, time.Since(begun))
	}
	kinds := []string{"killed", "stopped", "cut off", "lost every connection"}
	kind := kinds[len(p.strikes)%len(kinds)]
	p.strikes = append(p.strikes, kind)
	switch kind {
	case "killed":
		victim.Kill()
		next()
		p.members[i] = nil
		p.spawn()
	case "stopped":
		victim.signal(sandbox.PauseSignal)
		next()
		victim.signal(sandbox.ResumeSignal)
	case "cut off":
		victim.wire.Stall()
		next()
		victim.wire.Resume() // what it had sent arrives now
	case "lost every connection":
		for _, conn := range victim.wire.Connections() {
			conn.Cut()
		}
		next()
	}
	return kind
}

// done reports whether everything that was written is applied, or will never be.
func (p *projection) done(w *writers) bool {
	p.t.Helper()
	committed, over := w.progress()
	single, batch := p.applied(viewSingle), p.applied(viewBatch)
	if sum := single + batch; sum != p.sum {
		p.sum, p.moved = sum, time.Now()
	}
	return over && (single >= committed && batch >= committed || time.Since(p.moved) > patience)
}

func (p *projection) applied(name string) int {
	p.t.Helper()
	return value[int](p.t, p.admin, "SELECT count(*) FROM "+pgx.Identifier{p.schema, name}.Sanitize())
}

// examine compares what was applied with what was committed.
func (p *projection) examine(committed int) {
	p.t.Helper()
	if logged := value[int](p.t, p.admin, "SELECT count(*) FROM "+p.quoted("events")); logged != committed {
		p.t.Fatalf("the log has %d events, but %d were committed", logged, committed)
	}
	for _, name := range []string{viewSingle, viewBatch} {
		table := pgx.Identifier{p.schema, name}.Sanitize()
		if n := p.applied(name); n != committed {
			p.t.Errorf("%s: %d events were applied, %d committed", name, n, committed)
		}
		const strangers = `
			SELECT count(*)
			FROM %s v
			FULL JOIN %s e ON v.transaction_id = e.transaction_id::text AND v.position = e.position
			WHERE v.position IS NULL OR e.position IS NULL`
		if n := value[int](p.t, p.admin, fmt.Sprintf(strangers, table, p.quoted("events"))); n != 0 {
			p.t.Errorf("%s: %d events were applied without being in the log, or are in the log without being applied", name, n)
		}
		const disorder = `
			SELECT count(*)
			FROM (SELECT in_stream, row_number() OVER (PARTITION BY stream ORDER BY number) AS place FROM %s) applied
			WHERE in_stream <> place`
		if n := value[int](p.t, p.admin, fmt.Sprintf(disorder, table)); n != 0 {
			p.t.Errorf("%s: %d events were applied out of the order of their stream, or twice", name, n)
		}
	}
}
