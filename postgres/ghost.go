package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// ghost is an earlier session of the own node that the server may still keep.
// The node's row is that of the new session, so no other node can see that the
// old one is silent: this one ends it when the others would have.
type ghost struct {
	incarnation int32 // 0 if there is none
	due         time.Time
}

// findGhost reads the row of the node's last session, before the new one takes
// it over.
func (w *watch) findGhost(ctx context.Context, conn *pgx.Conn) error {
	s := w.session
	var left float64
	err := conn.QueryRow(ctx, s.backend.names.sql(readGhost), s.opening.Node.ID, s.opening.Timing.Margin.Milliseconds(), s.space).
		Scan(&w.ghost.incarnation, &left)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	w.ghost.due = time.Now().Add(fromMilliseconds(left))
	s.ghost = w.ghost
	return err
}

// dueNow returns the incarnation of a ghost whose time is over.
func (g ghost) dueNow() []int32 {
	if g.incarnation == 0 || time.Now().Before(g.due) {
		return noPairs
	}
	return []int32{g.incarnation}
}

// limit bounds one call of the watch so that the ghost is ended in time.
func (g *ghost) limit(period time.Duration) time.Duration {
	if g.incarnation == 0 {
		return period
	}
	return max(time.Millisecond, min(period, time.Until(g.due)))
}

// endGhost ends the ghost when its time is over.
func (w *watch) endGhost(conn *pgx.Conn) error {
	if w.ghost.incarnation == 0 || time.Now().Before(w.ghost.due) {
		return nil
	}
	w.ghost.due = time.Now().Add(reapPause)
	err := w.bounded(conn, callTimeout, stmtGhost, func(rows pgx.Rows) error {
		var (
			pid   int32
			ended bool
		)
		if err := rows.Scan(&pid, &ended); err != nil {
			return err
		}
		w.log.Warn("an earlier session of this node was ended", "incarnation", w.ghost.incarnation, "pid", pid, "signaled", ended)
		return nil
	}, w.session.space, w.ghost.incarnation)
	if hasCode(err, codeInsufficientPrivilege) {
		w.log.Error("an earlier session of this node may not be ended by this user", "error", err)
		err = nil
	}
	return err
}
