package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/postgres/internal/link"
)

// The watch function sees the nodes of the ring: nodes not marked as dead. Two kinds of
// sessions hold locks outside the ring:
//
//   - The server keeps the session of a node marked as dead. The node's row contains the
//     latest end of its trust.
//   - A session has lost its row: the row was deleted, or a later session of the node
//     has taken it over. No heartbeat of such a session is acknowledged. So its trust
//     ends within a lease from when the watch sees it.

// strangerGrace is the minimum time before a session without a row is terminated: a
// joining session acquires its lock before it writes its row.
const strangerGrace = 15 * time.Second

// outside is the knowledge of a watch about sessions outside the ring.
type outside struct {
	due       time.Time           // when to end the session of a node marked as dead; zero if there is none
	strangers map[int32]time.Time // by incarnation: when one without a row may be ended
	count     time.Time           // when to look for strangers again
}

// limit bounds one call of the watch, so as to end sessions outside the ring in time.
func (o *outside) limit(period time.Duration) time.Duration {
	period = min(period, time.Until(o.count))
	for _, due := range o.strangers {
		period = min(period, time.Until(due))
	}
	if !o.due.IsZero() {
		period = min(period, time.Until(o.due))
	}
	return max(time.Millisecond, period)
}

// limit bounds one call of the watch function.
func (w *watch) limit() time.Duration {
	return w.outside.limit(w.staleSession.limit(w.session.backend.config.WatchPeriod))
}

// lookOutside looks for sessions outside the ring and terminates them when their time is
// over. It looks for sessions without a row once per period, since reading pg_locks stops
// the server's lock table for a moment.
func (w *watch) lookOutside(conn *pgx.Conn) error {
	o := &w.outside
	known := !o.due.IsZero()
	held, left, err := w.readOutside(conn)
	if err != nil {
		return err
	}
	now := time.Now()
	o.due = time.Time{}
	if held {
		o.due = now.Add(max(left, time.Millisecond))
	}
	var over []int32
	for incarnation, due := range o.strangers {
		if !now.Before(due) {
			over = append(over, incarnation)
			o.strangers[incarnation] = now.Add(w.session.opening.Timing.CheckInterval)
		}
	}
	switch {
	case held && left <= 0, len(over) > 0:
		if err := w.end(conn, over); err != nil {
			return err
		}
		o.due = time.Now().Add(reapPause)
	case known && !held: // its roles are free
		return w.announceVacant(conn)
	}
	return nil
}

// readOutside reports whether the server still keeps the session of a node marked as
// dead, and how long the watch must wait before it ends the first one. If it is time, it
// also looks for sessions without a row.
func (w *watch) readOutside(conn *pgx.Conn) (held bool, left time.Duration, err error) {
	s, o := w.session, &w.outside
	name, found := stmtDeadHeld, map[int32]time.Time(nil)
	now := time.Now()
	if !now.Before(o.count) || len(o.strangers) > 0 {
		o.count = now.Add(s.backend.config.WatchPeriod)
		name, found = stmtOutside, map[int32]time.Time{}
	}
	args := []any{s.opening.Node.ID, s.opening.Timing.Margin.Milliseconds(), s.space}
	if found != nil {
		args = append(args, s.incarnation)
	}
	var ms float64
	err = w.bounded(conn, callTimeout, name, func(rows pgx.Rows) error {
		if found == nil {
			return rows.Scan(&ms, &held)
		}
		var (
			incarnation int32 // 0 for none
			lease       int64
		)
		err := rows.Scan(&ms, &held, &incarnation, &lease)
		if err == nil && incarnation != 0 {
			found[incarnation] = w.strangerDue(incarnation, link.FromMilliseconds(float64(lease)), time.Now()) // not before the row was missing
		}
		return err
	}, args...)
	if err == nil && found != nil {
		o.strangers = found
	}
	return held, link.FromMilliseconds(ms), err
}

// strangerDue returns when a session without a row may be ended.
func (w *watch) strangerDue(incarnation int32, lease time.Duration, now time.Time) time.Time {
	if due, known := w.outside.strangers[incarnation]; known {
		return due
	}
	timing := w.session.opening.Timing
	return now.Add(max(max(lease, timing.Lease)+timing.Margin, strangerGrace))
}

// announceVacant makes this node and the others try to acquire roles.
func (w *watch) announceVacant(conn *pgx.Conn) error {
	w.session.listener.Announce()
	return w.bounded(conn, callTimeout, stmtReleased, nil, w.session.backend.names.ElectionsChannel())
}
