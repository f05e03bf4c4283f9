package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/openlimit"
	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/internal/wakeup"
	"github.com/exactly-one/tenure/postgres/internal/link"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
)

// watch is the second connection of a node. It waits for the death of the node's
// predecessor in the ring, and of unwatched earlier nodes. It holds no lock needed by
// another session, so it may be closed at any time. It reconnects after a loss.
type watch struct {
	session      *session
	log          *slog.Logger
	seen         int64 // the membership as of the last call
	staleSession staleSession
	outside      outside
	reportedAt   time.Time // when reportNodesAgain last reported
	waited       bool      // this connection has waited for the end of a session
	silent       int32     // the incarnation whose session this node ended most recently
	waking       watchWaking
	down         atomic.Bool

	stop     chan struct{}
	stopOnce sync.Once
	done     chan struct{}
	group    *wakeup.Group

	mu      sync.Mutex
	ended   bool
	network net.Conn // of the current connection
}

func newWatch(s *session) *watch {
	return &watch{
		session: s,
		log:     s.log,
		seen:    -1,
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
		group:   &s.backend.running,
	}
}

// start begins to watch on a ready connection.
func (w *watch) start(conn *pgx.Conn) {
	w.group.Add(1)
	go func() { // exits when the watch ends; w.group waits for it
		defer w.group.Done()
		defer close(w.done)
		w.run(conn)
	}()
}

// abort ends the watch without waiting for it.
func (w *watch) abort() {
	w.stopOnce.Do(func() { close(w.stop) })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if w.network != nil {
		_ = w.network.Close()
	}
}

// leave ends the watch and waits for it.
func (w *watch) leave() {
	w.abort()
	<-w.done
}

// adopt registers a connection for abort to close. It returns false after an abort.
func (w *watch) adopt(conn *pgx.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.network = link.Raw(conn)
	return !w.ended
}

func (w *watch) run(conn *pgx.Conn) {
	const first, longest = 10 * time.Millisecond, 2 * time.Second
	delay := first
	for {
		if conn != nil {
			opened := time.Now()
			err := w.serve(conn)
			link.Discard(conn)
			if time.Since(opened) > longest { // not one that always fails immediately
				delay = first
			}
			if w.stopped() {
				return
			}
			w.session.backend.counters.watchFailures.Add(1)
			w.log.Warn("the watch connection failed; until it is back, the next node in the ring takes over its watch", "error", err)
			w.setWatchDown(true)
		}
		if !w.pause(delay) {
			return
		}
		delay = min(2*delay, longest)
		var err error
		if conn, err = w.reconnect(); err != nil {
			w.log.Debug("opening a new watch connection failed", "error", err)
			w.reportNodesAgain()
			continue
		}
		w.setWatchDown(false)
	}
}

// setWatchDown records whether the watch connection is down and wakes the session to
// report it. Without the watch a node can become silent unnoticed, so any node may have
// changed.
func (w *watch) setWatchDown(down bool) {
	w.down.Store(down)
	w.session.listener.changedNodes.Note(link.AnyNode)
	w.session.listener.Announce()
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

// serve watches until the connection fails or the watch is stopped.
func (w *watch) serve(conn *pgx.Conn) error {
	if !w.adopt(conn) {
		return net.ErrClosed
	}
	w.waited = false // what happened without a connection was not seen
	if err := w.recordEarlierDeaths(conn); err != nil {
		return err
	}
	for {
		found, err := w.call(conn)
		if err != nil {
			return err
		}
		switch found.event {
		case "died":
			err = w.recordDeath(conn, found.incarnation, found.seenAt())
		case "silent":
			err = w.endSilence(conn)
		case "alone":
			w.waitForMember()
		}
		if err == nil {
			err = w.endStaleSession(conn)
		}
		if err == nil && found.event != "died" { // a death must be recorded first
			err = w.lookOutside(conn)
			if sqlstate.Has(err, sqlstate.LockNotAvailable) { // a migration holds the table: the next call reports it
				err = nil
			}
		}
		if err != nil {
			return err
		}
		if w.stopped() {
			return nil
		}
	}
}

// finding is the result of one call of the watch function.
type finding struct {
	event       string
	incarnation int32
	at          time.Time // when the call ended, by the database's clock
	seen        bool      // the watch was waiting when the event happened
}

// seenAt is when the watch saw the event, or nil.
func (f finding) seenAt() *time.Time {
	if !f.seen {
		return nil
	}
	return &f.at
}

// call waits in the database for something to happen to the predecessor.
func (w *watch) call(conn *pgx.Conn) (finding, error) {
	s := w.session
	s.backend.counters.watchCalls.Add(1)
	period := w.limit()
	var (
		found      finding
		membership int64
		waited     bool
	)
	network := link.Raw(conn)
	stop := s.silence.Expect(w.silence(), func() { _ = network.Close() })
	defer stop()
	w.waking.begin(conn.PgConn().PID())
	err := w.bounded(conn, period+link.CloseTimeout, stmtWatch, func(rows pgx.Rows) error {
		return rows.Scan(&found.event, &found.incarnation, &membership, &waited, &found.at)
	}, s.incarnation, w.staleSession.incarnation, s.space, w.seen, period.Milliseconds(), s.opening.Timing.Margin.Milliseconds())
	if w.waking.end() && sqlstate.Has(err, sqlstate.QueryCanceled) { // outside of the blocks that catch it
		return finding{event: "canceled"}, nil
	}
	if err == nil {
		w.seen = membership
		w.waited = w.waited || waited
		found.seen = w.waited || found.incarnation == w.silent
		if found.event == "silent" {
			w.silent = found.incarnation
		}
	}
	return found, err
}

// recordDeath marks a node dead as of noticed, or as of now if the watch did not see the
// death. It wakes this node's session first, which then need not wait for the server's
// notification.
func (w *watch) recordDeath(conn *pgx.Conn, incarnation int32, noticed *time.Time) error {
	s := w.session
	noticed = s.deaths.Add(incarnation, noticed) // before the session is woken
	head := time.NewTimer(headStart)
	defer head.Stop()
	select {
	case <-s.listener.AnnounceAndTrack():
	case <-head.C:
	case <-w.stop:
	}
	channel := s.backend.names.ElectionsChannel()
	if incarnation == w.staleSession.incarnation { // this node has another session now
		w.staleSession = staleSession{}
		s.deaths.Recorded(incarnation)
		return w.bounded(conn, callTimeout, stmtReleased, nil, channel)
	}
	var name string
	found, silent := false, true
	err := w.bounded(conn, callTimeout, stmtDead, func(rows pgx.Rows) error {
		found = true
		return rows.Scan(&name, &silent, nil)
	}, incarnation, channel, noticed)
	if err != nil {
		return err
	}
	if silent { // nodes that it watched may have died long ago
		w.waited = false
	}
	s.deaths.Recorded(incarnation)
	if found {
		w.log.Info("a node died", "dead_node", name, "incarnation", incarnation)
	}
	return w.bounded(conn, callTimeout, stmtNext, nil)
}

// recordEarlierDeaths records the deaths noticed on an earlier, failed connection. Other
// nodes may have recorded them already, and then no call of the watch function returns
// them again.
func (w *watch) recordEarlierDeaths(conn *pgx.Conn) error {
	dead, noticed := w.session.deaths.Arguments()
	for i, incarnation := range dead {
		if err := w.recordDeath(conn, incarnation, noticed[i]); err != nil {
			return err
		}
	}
	return nil
}

// headStart is the longest of two waits:
//
//   - of a watch after a death, until its own node has tried the roles, before it
//     notifies other nodes: their attempts would slow this node down;
//   - of a node after a release, before it leaves.
const headStart = 5 * time.Millisecond

// reapPause is the minimum time between two attempts to terminate a session: more signals
// do not speed up a session without an immediate reaction.
const reapPause = 200 * time.Millisecond

// waitForMember waits until another node may have joined.
func (w *watch) waitForMember() {
	timer := time.NewTimer(w.limit())
	defer timer.Stop()
	select {
	case <-w.stop:
	case <-timer.C:
	case <-w.session.listener.moved:
	}
}

// callTimeout bounds the short calls of the watch connection.
const callTimeout = 5 * time.Second

// silence is how long the watch connection may receive nothing during a call. A
// connection lost without an error must be noticed within a lease: the leader may have
// become silent at the same time.
func (w *watch) silence() time.Duration {
	const least = 500 * time.Millisecond // the function sends a message ten times per second at most
	return max(least, w.session.opening.Timing.Lease-w.session.opening.Timing.Margin)
}

// bounded runs a statement and closes the connection if it takes too long. On the
// watch connection, closing frees no role's lock.
func (w *watch) bounded(conn *pgx.Conn, limit time.Duration, name link.Statement, scan func(pgx.Rows) error, args ...any) error {
	network := link.Raw(conn)
	if limit == callTimeout {
		limit = min(limit, w.silence())
	}
	timer := time.AfterFunc(limit, func() { _ = network.Close() })
	defer timer.Stop()
	err := link.ForEach(conn, name, scan, args...)
	if err == nil {
		err = pgdial.Idle(conn.PgConn())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// reconnect opens a new watch connection. It must reach the same server as the
// session.
func (w *watch) reconnect() (*pgx.Conn, error) {
	s := w.session
	// The dialer bounds the connection itself.
	ctx, cancel := context.WithTimeout(context.Background(), openlimit.Session.Most)
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	w.group.Add(1)
	go func() { // exits with this function; w.group waits for it
		defer w.group.Done()
		select {
		case <-w.stop:
			cancel()
		case <-stop:
		}
	}()
	conn, err := s.backend.connect.Dial(ctx, pgdial.Watch, s.opening.Node.Name+" watch", s.silence)
	if err != nil {
		return nil, err
	}
	preparing, end := context.WithTimeout(ctx, callTimeout)
	defer end()
	if err := w.prepare(preparing, conn); err != nil {
		link.Discard(conn)
		return nil, err
	}
	return conn, nil
}

func (w *watch) prepare(ctx context.Context, conn *pgx.Conn) error {
	s := w.session
	if err := s.checkServer(ctx, conn); err != nil {
		return err
	}
	return prepareWatch(ctx, s.backend.names, conn)
}

func (w *watch) stopped() bool {
	return wakeup.Closed(w.stop)
}

// pause waits. It returns false if the watch is stopped during the wait.
func (w *watch) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.stop:
		return false
	case <-timer.C:
		return true
	}
}
