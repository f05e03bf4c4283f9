package postgres

import (
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// The server ends a session that was silent for a lease, but only if it counts
// it as idle. What is left, a standby ends: a session that has not written for a
// lease and a margin, by the database's clock, has no trust left, and trust that
// has ended is never revived.

// reaped is what the statement found.
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

// reapPause is the least time between two attempts to end a session: one that
// does not react at once is not helped by more signals.
const reapPause = 200 * time.Millisecond

// reap ends silent sessions on the watch connection.
func (w *watch) reap(conn *pgx.Conn) error {
	err := w.end(conn, nil)
	if err == nil {
		w.pause(reapPause)
	}
	return err
}

// end ends silent sessions, and those without a row that are named.
func (w *watch) end(conn *pgx.Conn, strangers []int32) error {
	s := w.session
	err := w.bounded(conn, callTimeout, stmtReap, scanReaped(w.log),
		s.opening.Node.ID, s.opening.Timing.Margin.Milliseconds(), s.space, append(noPairs, strangers...))
	if hasCode(err, codeInsufficientPrivilege) {
		w.log.Error("a silent node's session may not be ended by this user", "error", err,
			"advice", "GRANT the role of the other node's user to this user")
		err = nil
	}
	return err
}

// reapIfWatchDown does the same on the session connection while the watch connection
// is down, once per check interval, and ends an earlier session of this node.
func (s *session) reapIfWatchDown() error {
	if !s.watch.down.Load() {
		return nil
	}
	now := s.opening.Clock.Now().Mono
	if s.reapedAt > 0 && now-s.reapedAt < s.opening.Timing.CheckInterval {
		return nil
	}
	s.reapedAt = max(1, now)
	ended := 0
	scan := scanReaped(s.log)
	err := s.query(stmtReap, func(rows pgx.Rows) error {
		ended++
		return scan(rows)
	}, s.opening.Node.ID, s.opening.Timing.Margin.Milliseconds(), s.space, s.staleSession.dueNow())
	if err != nil {
		s.log.Warn("looking for silent nodes failed", "error", err)
		return lostOnly(err)
	}
	if ended == 0 {
		return nil
	}
	// The locks come free in a moment, and no watch may be there to tell of it.
	s.listener.announce()
	return lostOnly(s.query(stmtNotify, nil, s.backend.names.channel()))
}
