package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// session is one incarnation of a node: a row with a lease, renewed by heartbeats. It
// keeps no connection, so a broken one costs only the statement in progress. One goroutine
// calls its methods, except Abort.
type session struct {
	backend     *Backend
	options     tenure.SessionOptions
	log         *slog.Logger
	incarnation int64

	ctx    context.Context // ends with Abort
	cancel context.CancelFunc

	knownRoles  map[string]struct{} // roles that have a row
	unconfirmed map[string]struct{} // roles that may have been acquired: the commit was not acknowledged
	leaderNames map[string]string   // of the roles of the present attempt, see tenure.AcquireRequest.NodeName
	lastTerms   map[string]int64    // the last term of each role before this session tried to acquire it

	mu sync.Mutex
	// Guarded by mu.
	closing map[string]struct{} // roles whose last term is being closed

	file   *sqldb.File // on SQLite
	server string      // that this session belongs to: another server can lack its terms
	pinned bool        // the server is one of several that accept writes; see [session.adoptServer]

	batches  batcher
	lastPoll pollResult
	nextPoll time.Duration // on the node's monotonic clock
}

var _ tenure.Session = (*session)(nil)

// keepSessions is how long the row of an ended session is at least kept, for the history
// of its roles.
const keepSessions = 24 * time.Hour

// Open implements [tenure.Backend].
func (b *Backend) Open(ctx context.Context, options tenure.SessionOptions) (tenure.Session, error) {
	if err := b.ensureReady(ctx); err != nil {
		return nil, err
	}
	s := &session{
		backend: b, options: options, log: options.Logger,
		knownRoles: map[string]struct{}{}, unconfirmed: map[string]struct{}{}, lastTerms: map[string]int64{}, closing: map[string]struct{}{},
	}
	s.batches = batcher{size: firstBatch, now: s.now}
	node, published, lease := options.Node, options.Description, options.Timing.Lease.Microseconds()
	labels, err := encodeLabels(published.Labels)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, max(options.Timing.RefreshInterval, minTimeout))
	defer cancel()
	if err := b.correctLeases(ctx); err != nil {
		return nil, err
	}
	err = b.db.InTxThen(ctx, "open a session", func(ctx context.Context, on sqldb.Querier) error {
		if err := b.lockMode(ctx, on); err != nil {
			return err
		}
		if err := sqldb.Exec(ctx, on, b.sql(supersedeQuery), node.ID.String()); err != nil {
			return err
		}
		if err := b.pruneSessions(ctx, on); err != nil {
			return err
		}
		if err := sqldb.Exec(ctx, on, b.sql(nextIncarnationQuery)); err != nil {
			return err
		}
		if err := s.adoptServer(ctx, on); err != nil {
			return err
		}
		if options.UniqueName {
			if err := b.checkName(ctx, on, node); err != nil {
				return err
			}
		}
		if err := sqldb.Exec(ctx, on, b.sql(insertSessionQuery), node.ID.String(), node.Name, node.Host,
			published.Address, published.HTTPPort, published.GRPCPort, labels, lease, lease); err != nil {
			return err
		}
		return sqldb.ForEach(ctx, on, b.sql(incarnationQuery), func(rows *sql.Rows) error {
			return rows.Scan(&s.incarnation, &s.lastPoll.vacancies, &s.lastPoll.terms, &s.server)
		})
	}, s.findFile)
	if err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if b.config.KeepHistory > 0 {
		b.running.Go(s.prune)
	}
	return s, nil
}

// checkName returns an error if another node with a live lease has the same name. Opening
// a session locks the row of counters, so no other session opens at the same time.
func (b *Backend) checkName(ctx context.Context, on sqldb.Querier, node tenure.NodeInfo) error {
	var nameTaken error
	err := sqldb.ForEach(ctx, on, b.sql(namesakesQuery), func(rows *sql.Rows) error {
		var (
			id, name, host string
			left           int64
		)
		if err := rows.Scan(&id, &name, &host, &left); err != nil {
			return err
		}
		if name == node.Name { // MySQL also treats some different names as equal
			nameTaken = fmt.Errorf("%w: %q is the name of node %s on %s, whose lease expires in %v: stop that node, wait, or choose another name",
				tenure.ErrNameTaken, name, id, host, microseconds(left).Round(time.Millisecond))
		}
		return nil
	}, node.Name, node.ID.String())
	return errors.Join(nameTaken, err)
}

// Incarnation implements [tenure.Session].
func (s *session) Incarnation() int64 { return s.incarnation }

// checkSendable returns an error after trust has ended or the session was aborted.
func (s *session) checkSendable() error {
	switch {
	case s.ctx.Err() != nil:
		return fmt.Errorf("%w: the session was aborted", tenure.ErrSessionLost)
	case !s.options.MaySend():
		return fmt.Errorf("%w: trust has ended, so nothing is sent", tenure.ErrSessionLost)
	}
	return nil
}

// minTimeout is the shortest time limit of a call, for very short leases.
const minTimeout = 20 * time.Millisecond

// withTimeout returns the context of one call. One goroutine of the engine makes all
// calls, so each must end in time for the next heartbeat.
func (s *session) withTimeout(limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.ctx, max(limit, minTimeout))
}

// callError adds tenure.ErrSessionLost to the error of a call if the session was
// aborted during the call.
func (s *session) callError(err error) error {
	if err != nil && s.ctx.Err() != nil {
		return errors.Join(s.checkSendable(), err)
	}
	return err
}

// Heartbeat implements [tenure.Session].
func (s *session) Heartbeat(load tenure.Load) (requestsPending bool, err error) {
	if err := s.checkSendable(); err != nil {
		return false, err
	}
	own, err := s.renewLease(load)
	if err != nil {
		return false, s.callError(s.tablesGone(err))
	}
	if own == 0 {
		return false, errSessionEnded()
	}
	ctx, cancel := s.withTimeout(s.options.Timing.RefreshInterval)
	defer cancel()
	if err := s.checkServer(ctx); err != nil {
		return false, s.callError(err)
	}
	if err := s.releaseUnconfirmed(ctx); err != nil {
		s.log.Warn("cannot release roles that this node does not lead", "error", err)
	}
	waiting := 0
	err = s.backend.db.Read(ctx, "check for requests", func(ctx context.Context, on sqldb.Querier) error {
		return sqldb.ForEach(ctx, on, s.backend.sql(countRequestsQuery), func(rows *sql.Rows) error { return rows.Scan(&waiting) }, s.incarnation)
	})
	if err != nil { // the heartbeat was acknowledged; the next one checks again
		s.log.Warn("cannot check for requests", "error", err)
	}
	return waiting > 0, nil
}

func errSessionEnded() error {
	return fmt.Errorf("%w: the node has a newer session, its lease has expired, or another database server responds", tenure.ErrSuperseded)
}

// tablesGone adds tenure.ErrSuperseded to an error about missing tables: the next node
// creates new tables without a row of this session, and leads. If the path has another
// file, the error names it instead.
func (s *session) tablesGone(err error) error {
	if !errors.Is(err, dberr.ErrSchema) {
		return err
	}
	if replaced := s.file.Check(); replaced != nil {
		return fmt.Errorf("%w: %w", replaced, err)
	}
	return fmt.Errorf("%w: the tables were removed while the node was running: %w", tenure.ErrSuperseded, err)
}

// renewLease renews the lease and returns how many sessions were renewed: 1, or 0 if
// this one has ended. It times out early enough for a retry on another connection.
func (s *session) renewLease(load tenure.Load) (own int64, err error) {
	ctx, cancel := s.withTimeout(s.options.Timing.RefreshInterval)
	defer cancel()
	beat := func(ctx context.Context, on sqldb.Querier) error {
		result, err := on.ExecContext(ctx, s.backend.sql(heartbeatQuery),
			load.Connections, load.Jobs, load.CPU, load.Memory, s.incarnation, s.options.Node.ID.String(), s.server)
		if err != nil {
			return err
		}
		own, err = result.RowsAffected()
		return err
	}
	if s.backend.db.Dialect == sqldb.SQLite {
		err = s.backend.db.InTxThen(ctx, "heartbeat", beat, s.sameFile)
	} else {
		err = s.backend.write(ctx, "heartbeat", beat)
	}
	return own, err
}

// sameFile returns an error unless a connection is connected to the file at the path. The
// connection has just written the row of this session.
func (s *session) sameFile(ctx context.Context, conn *sql.Conn) error {
	return s.file.Verify(ctx, conn, s.backend.sql(sameFileQuery), s.incarnation, s.options.Node.ID.String())
}

// findFile identifies the file for later calls of sameFile.
func (s *session) findFile(ctx context.Context, conn *sql.Conn) error {
	found, err := sqldb.FindFile(ctx, conn)
	if err != nil {
		return err
	}
	s.file = found
	return s.sameFile(ctx, conn)
}

// Wait implements [tenure.Session]. It polls for changes at every poll interval. Among the
// errors of polls it returns only missing tables: heartbeats detect an unreachable
// database.
func (s *session) Wait(ctx context.Context) (bool, error) {
	w := &watch{backend: s.backend, now: s.now}
	defer w.close()
	for {
		if err := s.checkSendable(); err != nil {
			return false, err
		}
		if now := s.now(); now < s.nextPoll {
			if !s.pause(ctx, s.nextPoll-now) {
				if ctx.Err() != nil {
					return false, nil
				}
				continue
			}
		}
		if ctx.Err() != nil {
			return false, nil
		}
		if err := s.file.Check(); err != nil {
			return false, err
		}
		changed, err := s.pollOnce(w)
		s.nextPoll = s.now() + s.backend.config.PollInterval
		if changed || err != nil {
			return changed, err
		}
	}
}

// pause waits for d and returns true, or returns false when the context or the session
// ends first.
func (s *session) pause(ctx context.Context, d time.Duration) bool {
	passed := make(chan struct{})
	defer s.options.Clock.AfterFunc(d, func() { close(passed) })()
	select {
	case <-passed:
		return true
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
	return false
}

func (s *session) now() time.Duration { return s.options.Clock.Now().Mono }

// pollOnce polls once and reports whether something has changed. Its only error is missing
// tables.
func (s *session) pollOnce(w *watch) (changed bool, err error) {
	ctx, cancel := s.withTimeout(s.options.Timing.RefreshInterval)
	defer cancel()
	if w.unchanged(ctx) {
		return false, nil
	}
	begun := s.now()
	found, err := s.backend.poll(ctx)
	if err == nil && found.leaseExpired() {
		if err = s.backend.endExpired(ctx); err == nil {
			found, err = s.backend.poll(ctx)
		}
	}
	if errors.Is(err, dberr.ErrSchema) {
		return false, s.tablesGone(err)
	}
	if err != nil {
		if s.ctx.Err() == nil {
			s.log.Debug("cannot poll for changes", "error", err)
		}
		return false, nil
	}
	w.recordPoll(found, begun)
	changed = found.vacancies != s.lastPoll.vacancies
	s.lastPoll = found
	return changed, nil
}

// Requests implements [tenure.Session]. It also removes requests for ended terms, and does
// not return them. It answers offers of roles.
func (s *session) Requests() ([]tenure.Request, error) {
	if err := s.checkSendable(); err != nil {
		return nil, err
	}
	ctx, cancel := s.withTimeout(s.options.Timing.RefreshInterval)
	defer cancel()
	// Every wake-up leads here, and a read costs less than a writing transaction.
	waiting := 0
	err := s.backend.db.Read(ctx, "check for requests", func(ctx context.Context, on sqldb.Querier) error {
		return sqldb.ForEach(ctx, on, s.backend.sql(countRequestsQuery), func(rows *sql.Rows) error { return rows.Scan(&waiting) }, s.incarnation)
	})
	if err != nil || waiting == 0 {
		return nil, s.callError(err)
	}
	var requests []tenure.Request
	err = s.backend.db.InTx(ctx, "read requests", func(ctx context.Context, on sqldb.Querier) error {
		found, offered, last, err := s.backend.readRequests(ctx, on, s.incarnation)
		if err != nil || last == 0 {
			return err
		}
		requests = found
		if err := s.answer(ctx, on, offered); err != nil {
			return err
		}
		return sqldb.Exec(ctx, on, s.backend.sql(dropRequestsQuery), s.incarnation, last)
	})
	return requests, s.callError(err)
}

// Close implements [tenure.Session].
func (s *session) Close() error {
	defer s.cancel()
	if err := s.checkSendable(); err != nil {
		return err
	}
	ctx, cancel := s.withTimeout(s.options.Timing.RefreshInterval)
	defer cancel()
	return s.backend.db.InTx(ctx, "close the session", func(ctx context.Context, on sqldb.Querier) error {
		if err := sqldb.Exec(ctx, on, s.backend.sql(deleteSessionQuery), s.incarnation); err != nil {
			return err
		}
		return sqldb.Exec(ctx, on, s.backend.sql(announceVacancyQuery))
	})
}

// Abort implements [tenure.Session]. It sends nothing, so the lease stays until it
// expires.
func (s *session) Abort() { s.cancel() }
