package acceptance_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/children"
)

// pace is how often a lookout looks.
const pace = 10 * time.Millisecond

// change is a fact that one look showed and the look before did not. It came about
// between the begin of the look before and the end of this one, by the server's clock.
type change struct {
	children.Interval
	what, value string
}

// until returns how long it may have been from one change to another.
func (c change) until(next change) span {
	return span{max(0, next.From.Sub(c.To)), max(0, next.To.Sub(c.From))}
}

// span is a duration that is known with a least and a most value.
type span struct{ least, most time.Duration }

func (s span) String() string { return fmt.Sprintf("%v to %v", s.least, s.most) }

func (s span) middle() time.Duration { return (s.least + s.most) / 2 }

// off returns how far a duration is from the span: negative if it is too short, and 0
// within it.
func (s span) off(d time.Duration) time.Duration {
	switch {
	case d < s.least:
		return d - s.least
	case d > s.most:
		return d - s.most
	default:
		return 0
	}
}

// lookout looks at an installation from outside, again and again: who holds the lock
// of each role, the term of each role, and the last heartbeat and the session of each
// node that lives. It uses nothing that a fault recorded.
type lookout struct {
	t        *testing.T
	dsn, sql string
	stop     context.CancelFunc
	ended    chan struct{}

	mu      sync.Mutex
	facts   map[string]string
	changes []change
	late    []late
	broken  time.Time // when the last look began before the server was down
}

// waits is for how long the machine delayed the parties.
type waits struct{ observer, server, node time.Duration }

func (w waits) String() string {
	return fmt.Sprintf("the observer waited %v for a processor and %v for the server, and a node %v for a processor", w.observer, w.server, w.node)
}

// late is a look that was late.
type late struct {
	children.Interval
	waits
}

// lookFrom begins to look, on a separate connection, until the end of the test. While the
// server is down, it sees nothing.
func (c *cluster) lookFrom(dsn string) *lookout {
	ctx, stop := context.WithCancel(context.Background())
	l := &lookout{
		t: c.t, dsn: dsn, stop: stop, ended: make(chan struct{}), facts: map[string]string{},
		sql: `
SELECT statement_timestamp(), clock_timestamp(), what, value
FROM (
    SELECT 'lock ' || t.role AS what, ` + holderOfKey + `t.lock_key), 0)::text AS value FROM ` + c.quoted("terms") + ` t
    UNION ALL
    SELECT 'term ' || role, term::text FROM ` + c.quoted("terms") + `
    UNION ALL
    SELECT 'beat ' || name, extract(epoch FROM last_heartbeat)::text FROM ` + c.quoted("nodes") + ` WHERE status <> 'dead'
    UNION ALL
    SELECT 'session ' || name, incarnation::text FROM ` + c.quoted("nodes") + ` WHERE status <> 'dead'
) facts`,
	}
	go func() {
		defer close(l.ended)
		l.run(ctx)
	}()
	c.t.Cleanup(func() {
		stop()
		<-l.ended
	})
	return l
}

func (l *lookout) run(ctx context.Context) {
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close(context.WithoutCancel(ctx)) // the test is over
		}
	}()
	var last time.Time // when the look before began
	next := time.Now()
	for ctx.Err() == nil {
		began := time.Now()
		if at, err := l.lookOnce(ctx, &conn, last); err == nil {
			last = at
			l.note(late{children.Interval{From: next, To: time.Now()}, waits{observer: max(0, began.Sub(next)), server: time.Since(began)}})
		} else {
			l.noteBroken(last)
		}
		next = time.Now().Add(pace)
		select {
		case <-time.After(pace):
		case <-ctx.Done():
		}
	}
}

// lookOnce looks, on a new connection if there is none, and returns when it began.
func (l *lookout) lookOnce(ctx context.Context, conn **pgx.Conn, last time.Time) (began time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if *conn == nil {
		connecting, done := context.WithTimeout(ctx, time.Second)
		*conn, err = pgx.Connect(connecting, l.dsn)
		done()
		if err != nil {
			*conn = nil
			return began, err
		}
	}
	var at time.Time
	var what, value string
	seen := map[string]string{}
	rows, _ := (*conn).Query(ctx, l.sql) // ForEachRow returns the error
	_, err = pgx.ForEachRow(rows, []any{&began, &at, &what, &value}, func() error {
		seen[what] = value
		return nil
	})
	if err != nil {
		_ = (*conn).Close(ctx) // it is broken
		*conn = nil
		return began, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for what, value := range seen {
		if l.facts[what] != value {
			l.facts[what] = value
			l.changes = append(l.changes, change{children.Interval{From: last, To: at}, what, value})
		}
	}
	return began, nil
}

func (l *lookout) note(look late) {
	if look.Length() < pace {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = append(l.late, look)
}

func (l *lookout) noteBroken(last time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = last
}

// blind returns the time between the last look and a moment, if the server went down in
// between.
func (l *lookout) blind(until time.Time) (children.Interval, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return children.Interval{From: l.broken, To: until}, !l.broken.IsZero() && l.broken.Before(until)
}

// await returns the change to a fact for which a condition holds, once it was seen.
func (l *lookout) await(what string, holds func(change) bool) (c change) {
	l.t.Helper()
	err := children.Until(l.t.Context(), patience, pace, func() error {
		var found bool
		if c, found = l.last(what, holds); !found {
			return fmt.Errorf("the observer has not seen %s change", what)
		}
		return nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

// last returns the last change of a fact for which a condition holds. A name that ends
// in a space means all facts whose names begin so.
func (l *lookout) last(what string, holds func(change) bool) (change, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range slices.Backward(l.changes) {
		if (c.what == what || strings.HasSuffix(what, " ") && strings.HasPrefix(c.what, what)) && holds(c) {
			return c, true
		}
	}
	return change{}, false
}

// first returns the first change since a moment, of a fact as [lookout.last] names it.
func (l *lookout) first(what string, since time.Time) (found change, ok bool) {
	_, _ = l.last(what, func(c change) bool {
		if c.To.After(since) {
			found, ok = c, true
		}
		return c.To.Before(since)
	})
	return found, ok
}

// released returns the change with which the lock of a role became free before a term
// began. The lock may have been acquired again before the next look.
func (l *lookout) released(role string, next change) (change, bool) {
	acquired, found := l.last("lock "+role, func(c change) bool { return !c.To.After(next.To) })
	if !found {
		return change{}, false
	}
	free, found := l.last("lock "+role, func(c change) bool { return c.To.Before(acquired.To) })
	if found && free.value == "0" {
		return free, true
	}
	return acquired, found
}

// waited returns the longest times in an interval for which the observer was not
// scheduled, the server did not answer, and a node was not scheduled.
func (l *lookout) waited(during children.Interval, nodes ...*process) (w waits) {
	for _, node := range nodes {
		w.node = max(w.node, node.Gap(during))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, late := range l.late {
		if late.Shared(during) > 0 {
			w.observer, w.server = max(w.observer, late.observer), max(w.server, late.server)
		}
	}
	return w
}
