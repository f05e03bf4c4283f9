package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
)

// heartbeatAnswer is the answer to a heartbeat.
type heartbeatAnswer struct {
	found        bool // the node's row belongs to this session
	incarnation  string
	same         bool  // the installation
	pending      bool  // there are requests
	locks        []int // if they were counted: of this session, of the sessions of all nodes
	leadersEnded bool
	releases     int64
	membership   int64
	silence      bool    // of a node before this one in the ring
	ended        *string // a role whose term another program has ended
}

// maxCheckedTerms is how many terms a heartbeat checks. Of more, each one checks others.
const maxCheckedTerms = 32

// someLedRoles returns led roles, others each time.
func (s *session) someLedRoles() []string {
	roles := make([]string, 0, min(len(s.heldRoles), maxCheckedTerms))
	for name, held := range s.heldRoles {
		if len(roles) == maxCheckedTerms {
			break
		}
		if held.term > 0 {
			roles = append(roles, name)
		}
	}
	return roles
}

// auditBeats is the interval, in heartbeats, at which a session with roles counts its
// locks: another program may run pg_advisory_unlock_all on the session. The interval is
// long, since pg_locks stops the whole lock table. Without roles there is nothing to
// protect, and other nodes find the node lock free.
const auditBeats = 8

// Heartbeat implements [tenure.Session].
func (s *session) Heartbeat(load tenure.Load) (requestsPending bool, err error) {
	s.beats++
	counting := s.beats%auditBeats == 0 && len(s.heldRoles) > 0

	var a heartbeatAnswer
	sent := time.Now()
	err = s.query(stmtHeartbeat, func(rows pgx.Rows) error {
		a.found = true
		return rows.Scan(&a.incarnation, &a.same, &a.pending, &a.locks, &a.leadersEnded, &a.releases, &a.membership, &a.silence, &a.ended)
	}, s.opening.Node.ID, s.incarnation, load.Connections, load.Jobs, load.CPU, load.Memory, counting, load.InFlight, s.installation,
		s.space, s.elsewhere.sessions, s.opening.Timing.Margin.Milliseconds(), s.someLedRoles())
	if sqlstate.Has(err, sqlstate.UndefinedTable) || sqlstate.Has(err, sqlstate.InvalidSchema) {
		return false, superseded("the schema was removed: %v", err)
	}
	if err != nil {
		return false, err
	}
	if err := s.warningAsError(stmtHeartbeat); err != nil {
		return false, err
	}
	if err := s.checkAnswer(a, counting); err != nil {
		return false, err
	}
	s.backend.recent.Flushed(s.opening.Node.ID)
	s.silenceSeen = a.silence
	s.reportMissedMove(a.membership, sent)
	if a.pending {
		s.listener.requests.Store(true)
	}
	if s.elsewhere.beat(s.opening.Clock.Now().Mono, a.releases) || a.leadersEnded {
		s.listener.Announce()
	}
	if counting {
		s.table.count(max(s.table.used, a.locks[1]), a.locks[1], s.opening.Clock.Now().Mono)
	}
	return a.pending, nil
}

// checkAnswer returns an error if the session has lost something it relies on: its row,
// the installation, its incarnation, a term or its locks. counting says whether the
// heartbeat counted locks.
func (s *session) checkAnswer(a heartbeatAnswer, counting bool) error {
	switch {
	case !a.found:
		return superseded("the node has a newer session or was found dead")
	case !a.same:
		return superseded("the installation has another id than when the session opened")
	case a.incarnation != fmt.Sprint(s.incarnation):
		return superseded("another program has reset the session")
	case a.ended != nil:
		return superseded("another program has ended the term of %q", *a.ended)
	case counting && len(a.locks) != 2: // an honest server counts both
		return fmt.Errorf("%s: the server counted %d kinds of locks instead of 2", stmtHeartbeat, len(a.locks))
	case counting && a.locks[0] != len(s.keys):
		return superseded("the session holds %d locks instead of %d", a.locks[0], len(s.keys))
	}
	return nil
}

// Wait implements [tenure.Session]. It only receives, so nothing restarts the server's
// idle timer, unless the watch connection went down or was restored, another node is
// silent, or the watch must see a new node.
func (s *session) Wait(ctx context.Context) (bool, error) {
	if err := s.reportWatchDown(); err != nil {
		return false, err
	}
	if err := s.reapIfSilent(); err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.listener.Await(cancel)
	defer s.listener.Await(nil)
	for {
		if err := s.wakeWatch(); err != nil {
			return false, err
		}
		// A pgx connection stays usable after no deadline except the end of this context:
		// it ends the read and changes nothing else.
		err := s.conn.PgConn().WaitForNotification(ctx)
		switch {
		case s.conn.IsClosed():
			return false, lost("wait", err)
		case s.listener.Take():
			s.woken = true
			return true, nil
		case ctx.Err() != nil:
			return false, nil
		case err != nil:
			return false, lost("wait", err)
		}
	}
}

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
