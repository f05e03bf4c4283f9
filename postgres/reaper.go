package postgres

import (
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/postgres/internal/link"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
)

// The server ends a session after one lease of silence, but only if it counts the session
// as idle. Another node terminates the rest: a session without a write for a lease and a
// margin, by the database's clock, has no trust left, and ended trust is never revived.

// reaped is a row of the statement.
type reaped struct {
	incarnation int32
	node        string
	pid         int32
	ended       bool
}

func scanReaped(log *slog.Logger) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var r reaped
		if err := rows.Scan(&r.incarnation, &r.node, &r.pid, &r.ended); err != nil {
			return err
		}
		log.Warn("a silent node's session was ended", "silent_node", r.node, "incarnation", r.incarnation, "pid", r.pid, "signaled", r.ended)
		return nil
	}
}

// reap terminates silent sessions, over the watch connection.
func (w *watch) reap(conn *pgx.Conn) error {
	err := w.end(conn, nil)
	if err == nil {
		w.pause(reapPause)
	}
	return err
}

// end terminates silent sessions, and the given sessions without a row.
func (w *watch) end(conn *pgx.Conn, strangers []int32) error {
	s := w.session
	err := w.bounded(conn, callTimeout, stmtReap, scanReaped(w.log),
		s.opening.Node.ID, s.opening.Timing.Margin.Milliseconds(), s.space, append(noPairs, strangers...))
	if sqlstate.Has(err, sqlstate.InsufficientPrivilege) {
		w.log.Error("a silent node's session may not be ended by this user", "error", err,
			"advice", "GRANT the role of the other node's user to this user")
		err = nil
	}
	return err
}

// reapIfWatchDown terminates silent sessions over the session connection while the
// watch connection is down, once per check interval.
func (s *session) reapIfWatchDown() error {
	if !s.watch.down.Load() {
		return nil
	}
	now := s.opening.Clock.Now().Mono
	if s.reapedAt > 0 && now-s.reapedAt < s.opening.Timing.CheckInterval {
		return nil
	}
	s.reapedAt = max(1, now)
	return s.reap()
}

// reapIfSilent does the same after a heartbeat has seen a silent node: the watch meant to
// terminate the node's session may be silent itself, unnoticed so far. It is called after
// the heartbeat has been counted, so as not to delay it.
func (s *session) reapIfSilent() error {
	due := len(s.staleSession.dueNow()) > 0
	if !s.silenceSeen && !due {
		return nil
	}
	s.silenceSeen = false
	return s.reap()
}

// reap terminates silent sessions, and an earlier one of this node when it is due.
func (s *session) reap() error {
	ended := 0
	own := s.staleSession.dueNow()
	if err := s.query(stmtCorrect, nil); err != nil {
		if len(own) > 0 {
			s.staleSession.retry(true, s.opening.Timing.RefreshInterval)
		}
		return lostOnly(err)
	}
	scan := scanReaped(s.log)
	err := s.query(stmtReap, func(rows pgx.Rows) error {
		ended++
		return scan(rows)
	}, s.opening.Node.ID, s.opening.Timing.Margin.Milliseconds(), s.space, own)
	if len(own) > 0 {
		s.staleSession.retry(ended > 0 || err != nil, s.opening.Timing.RefreshInterval)
	}
	if err != nil {
		s.log.Warn("looking for silent nodes failed", "error", err)
		return lostOnly(err)
	}
	if ended == 0 {
		return nil
	}
	// The locks will be free in a moment, and perhaps no watch will report it.
	s.listener.Announce()
	return lostOnly(s.query(stmtReleased, nil, s.backend.names.ElectionsChannel()))
}

// endSilence ends the session of a silent node. It also notifies the other members: if
// the session does not end, no death is reported.
func (w *watch) endSilence(conn *pgx.Conn) error {
	reported := w.reportNodesAgain()
	err := w.reap(conn)
	if err == nil && reported {
		err = w.bounded(conn, callTimeout, stmtNotify, nil, w.session.backend.names.NodesChannel(), link.AnyNode)
	}
	return err
}
