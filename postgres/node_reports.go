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

// reportMissedMove reports a change if the membership has moved since an earlier heartbeat,
// and no notification has arrived since that was sent: it may have been lost.
func (s *session) reportMissedMove(membership int64, sent time.Time) {
	earlier := s.earlier
	s.earlier = membershipRead{membership, sent}
	if earlier.at.IsZero() || membership == earlier.membership {
		return
	}
	if last := s.listener.received.Load(); last == nil || last.Before(earlier.at) {
		s.listener.announceAnyNode()
	}
}

// membershipRead is the membership as of a heartbeat.
type membershipRead struct {
	membership int64
	at         time.Time // when the heartbeat was sent
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
