package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/postgres/internal/link"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
)

// staleSession is an earlier session of this node, possibly still kept by the server. The
// node's row belongs to the new session, so no other node can see the silence of the old
// one. This node terminates it when the reaper would have done so.
type staleSession struct {
	incarnation int32 // 0 if there is none
	due         time.Time
}

// findStaleSession reads the row of the node's last session, before the new one takes
// it over.
func (w *watch) findStaleSession(ctx context.Context, conn link.Connection) error {
	s := w.session
	var left float64
	stale := s.staleSessionCall()
	err := conn.QueryRow(ctx, stale.SQL, stale.Args...).
		Scan(&w.staleSession.incarnation, &left)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	w.staleSession.due = time.Now().Add(link.FromMilliseconds(left))
	s.staleSession = w.staleSession
	return err
}

// staleSessionCall is the statement of findStaleSession.
func (s *session) staleSessionCall() link.Call {
	return link.Call{SQL: s.backend.names.SQL(readStaleSession), Args: []any{s.opening.Node.ID, s.opening.Timing.Margin.Milliseconds(), s.space}}
}

// dueNow returns the incarnation of a stale session if it is due.
func (e staleSession) dueNow() []int32 {
	if e.incarnation == 0 || time.Now().Before(e.due) {
		return noPairs
	}
	return []int32{e.incarnation}
}

// retry sets when to terminate the session again; it has ended if it was not found.
func (e *staleSession) retry(found bool, pause time.Duration) {
	if !found {
		*e = staleSession{}
		return
	}
	e.due = time.Now().Add(pause)
}

// limit bounds one call of the watch, so as to end the stale session in time.
func (e *staleSession) limit(period time.Duration) time.Duration {
	if e.incarnation == 0 {
		return period
	}
	return max(time.Millisecond, min(period, time.Until(e.due)))
}

// endStaleSession terminates the stale session when it is due.
func (w *watch) endStaleSession(conn *pgx.Conn) error {
	if w.staleSession.incarnation == 0 || time.Now().Before(w.staleSession.due) {
		return nil
	}
	w.staleSession.due = time.Now().Add(reapPause)
	err := w.bounded(conn, callTimeout, stmtStaleSession, func(rows pgx.Rows) error {
		var (
			pid   int32
			ended bool
		)
		if err := rows.Scan(&pid, &ended); err != nil {
			return err
		}
		w.log.Warn("an earlier session of this node was ended", "incarnation", w.staleSession.incarnation, "pid", pid, "signaled", ended)
		return nil
	}, w.session.space, w.staleSession.incarnation)
	if sqlstate.Has(err, sqlstate.InsufficientPrivilege) {
		w.log.Error("an earlier session of this node may not be ended by this user", "error", err)
		err = nil
	}
	return err
}
