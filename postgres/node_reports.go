package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/postgres/internal/link"
)

// Members read the registry of nodes only when a session reports a possible change. Every
// statement with a change of a node's status or description is followed by a
// notification. The watch covers everything else.

// ReportsNodeChanges returns true: sessions report every change of the registry of nodes,
// apart from loads and heartbeats. See cluster.Store.
func (*Backend) ReportsNodeChanges() bool { return true }

// notificationDelay is how long after its notification a watch may report a move of the
// membership: it checks between attempts of at most 2 s, and reports half a second later.
const notificationDelay = 3500 * time.Millisecond

// reportMissedMove reports a change if the membership has moved and no notification
// has arrived: it may have been lost.
func (w *watch) reportMissedMove(membership int64) {
	if w.seen < 0 || membership == w.seen {
		return
	}
	listener := w.session.listener
	if last := listener.received.Load(); last == nil || time.Since(*last) > notificationDelay {
		listener.announceAnyNode()
	}
}

// reportNodesAgain reports a change, at most once per check interval, and returns whether
// it did. It is called while a node can become silent without a notification: while the
// watch connection is down, and while a silent node's session does not end.
func (w *watch) reportNodesAgain() bool {
	now := time.Now()
	if now.Sub(w.reportedAt) < w.session.opening.Timing.CheckInterval {
		return false
	}
	w.reportedAt = now
	w.session.listener.announceAnyNode()
	return true
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
