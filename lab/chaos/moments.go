//go:build linux

package main

import (
	"bufio"
	"context"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/steplog"
	"github.com/exactly-one/tenure/internal/steps"
	"github.com/exactly-one/tenure/lab/chaos/record"
)

const (
	// locksInterval is how long the observer of the locks rests.
	locksInterval = 100 * time.Millisecond
	// looksBefore are the looks before the end of a session that may have seen it.
	looksBefore = 3
)

// look is what an observer saw of the server's locks at one moment between two times.
type look struct {
	from, to int64            // of CLOCK_MONOTONIC
	clock    int64            // of the server, in nanoseconds since 1970
	locks    map[string]int64 // by role: the session that has the lock
	sessions map[int]int64    // by process
}

// readLocks has a row for each lock of a session, and its role or an empty text. Sessions
// have the only locks with a node's number, of the space that the nodes' rows show.
const readLocks = `
WITH locks AS MATERIALIZED (
	SELECT pid, classid, objid::bigint AS objid, objsubid, CASE objsubid
		WHEN 1 THEN ((classid::bigint << 32) | objid::bigint)::text
		ELSE classid::int || ':' || objid::int END AS key
	FROM pg_locks
	WHERE locktype = 'advisory' AND granted AND mode = 'ExclusiveLock'
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
), sessions AS MATERIALIZED (
	SELECT pid, objid FROM locks
	WHERE objsubid = 2 AND classid IN (SELECT l.classid FROM locks l JOIN tenure_nodes n ON n.pid = l.pid AND n.incarnation = l.objid AND l.objsubid = 2)
)
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, s.pid, s.objid, coalesce(t.role, '')
FROM sessions s
LEFT JOIN locks l ON l.pid = s.pid
LEFT JOIN tenure_terms t ON t.lock_key = l.key`

// observe looks at the server's locks again and again.
func (b *bed) observe(ctx context.Context) {
	for pause(ctx, locksInterval) == nil {
		_ = b.asAdmin(ctx, func(conn *pgx.Conn) error { // without a server there is nothing to see
			for ctx.Err() == nil {
				seen, err := lookAtLocks(ctx, conn)
				if err != nil {
					return err
				}
				b.mu.Lock()
				b.looks = append(b.looks, seen)
				b.mu.Unlock()
				_ = pause(ctx, locksInterval)
			}
			return nil
		})
	}
}

func lookAtLocks(ctx context.Context, conn *pgx.Conn) (look, error) {
	limited, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	l := look{from: record.Now(), locks: map[string]int64{}, sessions: map[int]int64{}}
	rows, err := conn.Query(limited, readLocks)
	if err != nil {
		return l, err
	}
	var pid int
	var session, micros int64
	var role string
	_, err = pgx.ForEachRow(rows, []any{&micros, &pid, &session, &role}, func() error {
		l.clock = micros * 1000
		l.sessions[pid] = session
		if role != "" {
			l.locks[role] = session
		}
		return nil
	})
	l.to = record.Now()
	return l, err
}

// begin is a term that the tables have at the end.
type begin struct {
	Role          string
	Term, Session int64
	At            int64 // of the server's clock, in microseconds since 1970
}

const allBegins = `
SELECT role, term, incarnation, (extract(epoch FROM acquired_at) * 1000000)::bigint
FROM (SELECT role, term, incarnation, acquired_at FROM tenure_history UNION SELECT role, term, incarnation, acquired_at FROM tenure_terms) t
WHERE acquired_at IS NOT NULL`

// epoch is a time in which the server's clock is ahead of CLOCK_MONOTONIC by the same amount,
// between low and high.
type epoch struct {
	from, to  int64
	low, high int64
}

// epochs are those of the looks. Each look bounds the difference of the clocks.
func epochs(looks []look) (all []epoch) {
	for _, l := range looks {
		if l.clock == 0 {
			continue
		}
		low, high := l.clock-l.to, l.clock-l.from
		if n := len(all); n > 0 && low <= all[n-1].high && high >= all[n-1].low {
			e := &all[n-1]
			e.to, e.low, e.high = l.to, max(e.low, low), min(e.high, high)
			continue
		}
		all = append(all, epoch{from: l.from, to: l.to, low: low, high: high})
	}
	return all
}

// when returns the earliest and the latest time at which the server's clock showed a time;
// false if that is not certain: then 0, or the first of several times. edge is how far beyond
// the first and the last look an epoch counts. Between two looks, the clock may have been set
// at any time, so both epochs count there.
func when(all []epoch, clock, edge int64) (from, to int64, ok bool) {
	for i, e := range all {
		f, t := clock-e.high, clock-e.low
		first, last := e.from-edge, e.to+edge
		if i > 0 {
			first = all[i-1].to
		}
		if i+1 < len(all) {
			last = all[i+1].from
		}
		if f < first || t > last {
			continue
		}
		if ok {
			return from, to, false // the clock showed it twice
		}
		from, to, ok = f, t, true
	}
	return from, to, ok
}

// logLine is not anchored: on a full disk a line may end before its message, without a line end.
var logLine = regexp.MustCompile(`(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) GMT \[(\d+)\] (.*)$`)

// ending is what the log says of the end of a server process, or of the server.
type ending struct {
	clock int64 // of the server, in nanoseconds since 1970; up to a millisecond early
	pid   int
	kind  steps.Kind
}

// readEndings reads the log of a server.
func readEndings(log io.Reader) (all []ending) {
	failed := map[int]bool{} // processes whose end was said
	stopping := false
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		parts := logLine.FindStringSubmatch(lines.Text())
		if parts == nil {
			continue
		}
		at, _ := time.Parse("2006-01-02 15:04:05.000", parts[1]) // the server writes it
		pid, _ := strconv.Atoi(parts[2])
		says := func(text string) bool { return strings.Contains(parts[3], text) }
		var kind steps.Kind
		switch {
		case says("shutdown request"):
			stopping = true
		case says("LOG:  database system was shut down at"):
			kind = steps.Stops
		case says("LOG:  database system was interrupted"), says("LOG:  database system shutdown was interrupted"):
			kind = steps.Crashes
		case says("LOG:  database system is ready to accept connections"):
			kind, stopping = steps.Starts, false
			clear(failed)
		default:
			kind, failed[pid] = sessionEnding(says, stopping, failed[pid])
		}
		if kind != "" {
			all = append(all, ending{clock: at.UnixNano(), pid: pid, kind: kind})
		}
	}
	return all
}

// sessionEnding returns the end of a session that a line says, if it does, and whether the end
// of its process is said.
func sessionEnding(says func(text string) bool, stopping, failed bool) (kind steps.Kind, said bool) {
	ordered := says("FATAL:  terminating connection due to administrator command")
	switch {
	case stopping && ordered:
		return steps.Kills, failed // one after another: the processes that are left may get its locks
	case stopping:
		return "", failed
	case says("FATAL:  terminating connection due to idle-session timeout"):
		return steps.IdleEnds, true
	case ordered:
		return steps.Reaps, true
	case says("unexpected postmaster exit"):
		return steps.Kills, true // the processes that are left may get its locks
	case says("because of crash of another server process"):
		return "", true
	case says("LOG:  disconnection: session time") && !failed:
		return steps.Ends, false
	case says("LOG:  disconnection: session time"):
		return "", false
	}
	return "", failed
}

// moments returns what was seen of the server as steps, and how many begins and ends have no
// certain time. Begins and ends are late: a node that ends a term has done so before.
func (b *bed) moments() (history []steps.Step, unseen int, err error) {
	const edge = int64(time.Second)
	all := epochs(b.looks)
	for _, l := range b.looks {
		history = append(history, steps.Step{Kind: steps.Sees, At: time.Duration(l.to), By: time.Duration(l.to - l.from), Locks: l.locks})
	}
	for _, t := range b.begins {
		// The number has the milliseconds of the begin, unless a clock was set.
		_, at, ok := when(all, t.At*1000, edge)
		if !ok || t.Term != t.At/1000 {
			unseen++
			continue
		}
		history = append(history, steps.Step{Kind: steps.Begins, At: time.Duration(at), Role: t.Role, Term: t.Term, Session: t.Session})
	}
	if b.server == nil {
		return history, unseen, nil
	}
	log, err := os.Open(b.server.LogPath())
	if err != nil {
		return nil, 0, err
	}
	defer log.Close()
	for _, e := range readEndings(log) {
		_, at, ok := when(all, e.clock+int64(time.Millisecond), int64(time.Minute))
		s, known := b.moment(e, time.Duration(at))
		switch {
		case !known:
		case !ok && s.Session != 0:
			unseen++
		case at != 0: // a life of the server ends, if only at about this time
			history = append(history, s)
		}
	}
	return history, unseen, nil
}

// moment returns the step of an end; false if it is no session's.
func (b *bed) moment(e ending, at time.Duration) (steps.Step, bool) {
	s := steps.Step{Kind: e.kind, At: at}
	switch e.kind {
	case steps.Starts, steps.Stops, steps.Crashes:
		return s, true
	}
	before := 0 // looks: an earlier process may have had the same number
	for _, l := range slices.Backward(b.looks) {
		if time.Duration(l.from) > at {
			continue
		}
		if before++; l.sessions[e.pid] != 0 || before == looksBefore {
			s.Session = l.sessions[e.pid]
			break
		}
	}
	if s.Session == 0 {
		return s, false
	}
	if s.Kind == steps.Kills || b.during(at, "terminate-sessions", "reset") {
		s.Kind = steps.Kills
		s.At -= time.Millisecond + steplog.CloseEnough // what follows is excused
	}
	return s, true
}

// during reports whether a fault was made less than a second before.
func (b *bed) during(at time.Duration, kinds ...string) bool {
	return slices.ContainsFunc(b.history.Faults, func(f record.Fault) bool {
		return slices.Contains(kinds, f.Kind) && time.Duration(f.From) <= at && at <= time.Duration(f.To)+time.Second
	})
}

// withoutDead drops the ends of sessions whose process had ended, which the run records
// afterwards.
func withoutDead(history []steps.Step) []steps.Step {
	lastStep, owner, died := map[string]time.Duration{}, map[int64]string{}, map[string]bool{}
	for _, s := range history {
		switch {
		case s.Kind == steps.Dies:
			died[s.Node] = true
		case s.Node != "":
			owner[s.Session] = s.Node
			lastStep[s.Node] = max(lastStep[s.Node], s.At)
		}
	}
	for i, s := range history { // the run waits for the end of a process that it kills
		if s.Kind == steps.Dies {
			history[i].At = min(s.At, lastStep[s.Node]+1)
		}
	}
	return slices.DeleteFunc(history, func(s steps.Step) bool {
		node := owner[s.Session]
		return s.Kind == steps.Ends && died[node] && lastStep[node] < s.At
	})
}

// summary counts what was judged of the server.
func summary(seen map[steps.Kind]int) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(seen)) {
		parts = append(parts, strconv.Itoa(seen[kind])+" × "+string(kind))
	}
	return strings.Join(parts, ", ")
}
