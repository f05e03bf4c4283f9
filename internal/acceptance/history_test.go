package acceptance_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// hold is a time in which one session held the role's lock, by the server's
// clock, as seen from outside: it took the lock after free and by from, and
// freed it after to and by gone.
type hold struct {
	pid                  int32
	free, from, to, gone time.Time
}

// observer looks again and again at who holds the lock of a role.
type observer struct {
	t     *testing.T
	stop  context.CancelFunc
	ended chan struct{}
	since time.Time // the first look
	holds []hold
	gaps  []children.Interval // between two looks that were far apart: the machine was busy
}

// holderOfKey is a query for the server session that holds the lock with a key, or 0. It is
// written for both forms of a key: N and A:B.
const holderOfKey = `coalesce((
    SELECT min(l.pid)
    FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.granted
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND CASE l.objsubid
            WHEN 1 THEN ((l.classid::bigint << 32) | l.objid::bigint)::text
            ELSE l.classid::int || ':' || l.objid::int
        END = `

const holdersOfRole = `SELECT clock_timestamp(), ` + holderOfKey + `$1), 0)`

// observe begins to look, on a separate connection, when the role has a row.
func (c *cluster) observe() *observer {
	c.t.Helper()
	conn := pgtest.Conn(c.t, c.dsn)
	eventually(c.t, conn, "SELECT EXISTS (SELECT FROM "+c.quoted("terms")+" WHERE role = $1)", role)
	key := value[string](c.t, conn, "SELECT lock_key FROM "+c.quoted("terms")+" WHERE role = $1", role)
	ctx, stop := context.WithCancel(context.Background())
	o := &observer{t: c.t, stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		o.run(ctx, conn, key)
	}()
	c.t.Cleanup(func() { o.close() })
	return o
}

func (o *observer) run(ctx context.Context, conn *pgx.Conn, key string) {
	const every = 2 * time.Millisecond
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var last time.Time
	for {
		var at time.Time
		var pid int32
		if err := conn.QueryRow(ctx, holdersOfRole, key).Scan(&at, &pid); err != nil {
			if ctx.Err() == nil {
				o.t.Errorf("looking at the lock: %v", err)
			}
			return
		}
		if o.since.IsZero() {
			o.since = at
		} else if at.Sub(last) > 5*every {
			o.gaps = append(o.gaps, children.Interval{From: last, To: at})
		}
		n := len(o.holds)
		if n > 0 && o.holds[n-1].gone.IsZero() {
			if o.holds[n-1].pid == pid {
				o.holds[n-1].to = at
			} else {
				o.holds[n-1].gone = at
			}
		}
		if pid != 0 && (n == 0 || !o.holds[n-1].gone.IsZero()) {
			o.holds = append(o.holds, hold{pid: pid, free: last, from: at, to: at})
		}
		last = at
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// busy returns how much of a time lay between looks that were far apart. A server process
// that ends frees its locks one by one, and a busy machine stops it in between as it
// stops the looks.
func (o *observer) busy(from, to time.Time) (total time.Duration) {
	for _, gap := range o.gaps {
		if gap.From.Before(to) && gap.To.After(from) {
			total += gap.To.Sub(gap.From)
		}
	}
	return total
}

// close ends the looking and returns what was seen.
func (o *observer) close() []hold {
	o.stop()
	<-o.ended
	return o.holds
}

// agree compares what was seen with the history: every term that a node led
// under is there, every term lies in a time in which the lock was held, and the
// last term of each such time ended when the lock was freed. An end that another
// node found is recorded with a time not before the lock was freed, nor after the
// next term began. A vacancy is the time between two terms. The observer may miss
// that a session frees a lock and immediately takes it again.
func (c *cluster) agree(o *observer) {
	c.t.Helper()
	const tolerance = 50 * time.Millisecond
	holds := o.close()
	backend, err := postgres.New(c.dsn, c.db)
	if err != nil {
		c.t.Fatal(err)
	}
	defer backend.Close()
	terms, err := backend.History(context.Background(), history.Query{Role: role, Limit: 1_000_000})
	if err != nil {
		c.t.Fatal(err)
	}
	slices.Reverse(terms)
	var recorded, found []time.Duration // how far off the ends are
	next := 0
	for i, h := range holds {
		if h.free.IsZero() { // it was held before the looking began
			continue
		}
		for next < len(terms) && terms[next].Began.Before(h.free) {
			next++
		}
		first := next
		// One that began after the last look that saw the hold may be the next
		// holder's.
		for next < len(terms) && !terms[next].Began.After(h.to) {
			next++
		}
		if first == next || h.gone.IsZero() {
			continue // the session ended before its term began, or is still open
		}
		last := terms[next-1]
		if last.Ended.IsZero() {
			c.t.Errorf("term %d is said to continue; its lock was freed at %v", last.Term, h.gone)
			continue
		}
		early, late := max(h.to.Sub(last.Ended)-o.busy(last.Ended, h.gone), 0), max(last.Ended.Sub(h.gone), 0)
		unclean := last.Reason == history.EndCrashed || last.Reason == history.EndLeaseExpired
		if unclean {
			found = append(found, max(early, late))
		} else {
			recorded = append(recorded, max(early, late))
		}
		if early > tolerance || late > tolerance && !unclean {
			for _, h := range holds[max(i-1, 0):min(i+3, len(holds))] {
				c.t.Logf("seen: %+v", h)
			}
			for _, term := range terms[max(next-3, 0):min(next+2, len(terms))] {
				c.t.Logf("recorded: %+v", term)
			}
			c.t.Errorf("term %d is recorded as ended (%s) at %v; its lock was freed between %v and %v (hold %d of %d; the looks were far apart for %v)",
				last.Term, last.Reason, last.Ended, h.to, h.gone, i, len(holds), o.busy(last.Ended, h.gone))
		}
	}
	// Before the first term of all no vacancy is known; that of every other fits
	// the end of the one before, so that none is missing.
	if len(terms) > 0 && terms[0].PrecedingVacancy >= 0 {
		c.t.Errorf("the first recorded term, %d, began after a vacancy of %v", terms[0].Term, terms[0].PrecedingVacancy)
	}
	for i := 1; i < len(terms); i++ {
		before, after := terms[i-1], terms[i]
		if vacant := after.Began.Sub(before.Ended); (after.PrecedingVacancy - vacant).Abs() > time.Millisecond {
			c.t.Errorf("before term %d the role is recorded as vacant for %v; its times show %v", after.Term, after.PrecedingVacancy, vacant)
		}
		switch {
		case before.Ended.IsZero() || before.Reason == "":
			c.t.Errorf("term %d has no end, and %d followed", before.Term, after.Term)
		case after.Term <= before.Term:
			c.t.Errorf("term %d is followed by %d", before.Term, after.Term)
		case after.Began.Before(before.Ended):
			c.t.Errorf("term %d began %v before %d ended", after.Term, before.Ended.Sub(after.Began), before.Term)
		}
	}
	reasons, told := map[tenure.EndReason]int{}, map[int64]uuid.UUID{}
	for _, t := range terms {
		reasons[t.Reason]++
		told[t.Term] = t.Node
		// The observer may have missed a term that was brief, or whose session was
		// cut immediately.
		lasted := t.Ended.Sub(t.Began) > tolerance && t.Reason != history.EndCrashed
		if t.Began.After(o.since) && lasted && !slices.ContainsFunc(holds, func(h hold) bool {
			return !t.Began.Before(h.free) && (h.gone.IsZero() || !t.Began.After(h.gone))
		}) {
			c.t.Errorf("term %d is recorded to have begun at %v, when the lock was not seen held", t.Term, t.Began)
		}
	}
	for _, led := range c.checks.terms() {
		if told[led.Number()] != led.NodeID() {
			c.t.Errorf("term %d of %v is recorded for %v", led.Number(), led.NodeID(), told[led.Number()])
		}
	}
	c.t.Logf("%d terms, %d times that the lock was seen held; %v", len(terms), len(holds), reasons)
	for what, off := range map[string][]time.Duration{"recorded by the leader": recorded, "found by others": found} {
		if slices.Sort(off); len(off) > 0 {
			c.t.Logf("ends %s are off by %v (median), %v (of 95%%), %v (most)", what, off[len(off)/2], off[len(off)*95/100], off[len(off)-1])
		}
	}
}
