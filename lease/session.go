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
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// session is one incarnation of a node: a row whose lease its heartbeats renew.
// It has no connection of its own, so a lost one costs nothing but the statement
// that was under way. Its methods belong to one goroutine, except Abort.
type session struct {
	backend     *Backend
	opening     tenure.SessionOptions
	log         *slog.Logger
	incarnation int64

	life  context.Context // ends with Abort
	abort context.CancelFunc

	known    map[string]struct{} // roles that have a row
	doubtful map[string]struct{} // roles that may have been taken: the commit was not answered
	before   map[string]int64    // the last term of a role before this session tried to take it
	closing  map[string]struct{} // roles whose last term is being closed, under mu
	mu       sync.Mutex

	file      *sqldb.File // on SQLite
	server    string      // to which this session belongs: another may have lost its terms
	oneServer bool        // of several that take writes, see [session.joinWriters]

	batches  batches
	seen     news
	nextLook time.Duration // on the node's monotonic clock
}

var _ tenure.Session = (*session)(nil)

// keepSessions is how long the record of a session that ended is kept, for the
// history of the seats that it had.
const keepSessions = 24 * time.Hour

// Open implements [tenure.Backend].
func (b *Backend) Open(ctx context.Context, opening tenure.SessionOptions) (tenure.Session, error) {
	if err := b.ready(ctx); err != nil {
		return nil, err
	}
	s := &session{
		backend: b, opening: opening, log: opening.Logger,
		known: map[string]struct{}{}, doubtful: map[string]struct{}{}, before: map[string]int64{}, closing: map[string]struct{}{},
	}
	s.batches = batches{size: firstBatch, now: s.now}
	node, lease := opening.Node, opening.Timing.Lease.Microseconds()
	ctx, cancel := context.WithTimeout(ctx, max(opening.Timing.RefreshInterval, leastLimit))
	defer cancel()
	err := b.db.InTxThen(ctx, "open a session", func(ctx context.Context, on sqldb.Querier) error {
		if err := b.holdMode(ctx, on); err != nil {
			return err
		}
		if err := sqldb.Exec(ctx, on, b.queries.supersede, node.ID.String()); err != nil {
			return err
		}
		if err := sqldb.Exec(ctx, on, b.queries.prune, keepSessions.Microseconds()); err != nil {
			return err
		}
		if err := sqldb.Exec(ctx, on, b.queries.nextIncarnation); err != nil {
			return err
		}
		if err := s.joinWriters(ctx, on); err != nil {
			return err
		}
		if opening.UniqueName {
			if err := b.checkName(ctx, on, node); err != nil {
				return err
			}
		}
		if err := sqldb.Exec(ctx, on, b.queries.join, node.ID.String(), node.Name, node.Host, lease, lease); err != nil {
			return err
		}
		return sqldb.ForEach(ctx, on, b.queries.incarnation, func(rows *sql.Rows) error {
			return rows.Scan(&s.incarnation, &s.seen.vacancies, &s.seen.terms, &s.server)
		})
	}, s.findFile)
	if err != nil {
		return nil, err
	}
	s.life, s.abort = context.WithCancel(context.Background())
	if b.config.KeepHistory > 0 {
		b.running.Go(s.prune)
	}
	return s, nil
}

// checkName refuses a name that another node has whose lease runs. Who opens a
// session has changed the row of news, so nobody else is at it.
func (b *Backend) checkName(ctx context.Context, on sqldb.Querier, node tenure.NodeInfo) error {
	var taken error
	err := sqldb.ForEach(ctx, on, b.queries.namesakes, func(rows *sql.Rows) error {
		var (
			id, name, host string
			left           int64
		)
		if err := rows.Scan(&id, &name, &host, &left); err != nil {
			return err
		}
		if name == node.Name { // MySQL takes more names for equal
			taken = fmt.Errorf("%w: %q is node %s on %s, whose lease runs for another %v: stop it, wait, or choose another name",
				tenure.ErrNameTaken, name, id, host, microseconds(left).Round(time.Millisecond))
		}
		return nil
	}, node.Name, node.ID.String())
	return errors.Join(taken, err)
}

// Incarnation implements [tenure.Session].
func (s *session) Incarnation() int64 { return s.incarnation }

// sendable returns an error once trust has ended or the session was given up.
func (s *session) sendable() error {
	switch {
	case s.life.Err() != nil:
		return fmt.Errorf("%w: the session was given up", tenure.ErrSessionLost)
	case !s.opening.MaySend():
		return fmt.Errorf("%w: nothing is sent after trust has ended", tenure.ErrSessionLost)
	}
	return nil
}

// leastLimit is the least that a call gets, for leases that are very short.
const leastLimit = 20 * time.Millisecond

// limited returns the context of one call. The engine has one goroutine for all
// of them, so none may take so long that the next heartbeat would be late.
func (s *session) limited(limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.life, max(limit, leastLimit))
}

// failed makes an error of a call one that the engine understands: a session
// that was given up meanwhile is lost.
func (s *session) failed(err error) error {
	if err != nil && s.life.Err() != nil {
		return errors.Join(s.sendable(), err)
	}
	return err
}

// Heartbeat implements [tenure.Session].
func (s *session) Heartbeat(load tenure.Load) (tenure.HeartbeatResult, error) {
	if err := s.sendable(); err != nil {
		return tenure.HeartbeatResult{}, err
	}
	own, err := s.renew(load)
	if err != nil {
		return tenure.HeartbeatResult{}, s.failed(err)
	}
	if own == 0 {
		return tenure.HeartbeatResult{}, errEnded()
	}
	ctx, cancel := s.limited(s.opening.Timing.RefreshInterval)
	defer cancel()
	if err := s.checkServer(ctx); err != nil {
		return tenure.HeartbeatResult{}, s.failed(err)
	}
	if err := s.disownDoubtful(ctx); err != nil {
		s.log.Warn("roles may be held that nobody leads", "error", err)
	}
	waiting := 0
	err = s.backend.db.Read(ctx, "look for requests", func(ctx context.Context, on sqldb.Querier) error {
		return sqldb.ForEach(ctx, on, s.backend.queries.waiting, func(rows *sql.Rows) error { return rows.Scan(&waiting) }, s.incarnation)
	})
	if err != nil { // the heartbeat itself was acknowledged; the next one looks again
		s.log.Warn("looking for requests failed", "error", err)
	}
	return tenure.HeartbeatResult{RequestsPending: waiting > 0}, nil
}

func errEnded() error {
	return fmt.Errorf("%w: the node has a newer session, its lease ran out, or another database server answers", tenure.ErrSuperseded)
}

// renew renews the lease and reports how many sessions that was: this one or
// none. It gives up in time to be tried again, on another connection.
func (s *session) renew(load tenure.Load) (own int64, err error) {
	ctx, cancel := s.limited(s.opening.Timing.RefreshInterval)
	defer cancel()
	beat := func(ctx context.Context, on sqldb.Querier) error {
		result, err := on.ExecContext(ctx, s.backend.queries.heartbeat,
			load.Connections, load.Jobs, load.CPU, load.Memory, s.incarnation, s.opening.Node.ID.String(), s.server)
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

// sameFile returns an error unless a connection on which this session has just
// been written is one to the file at the path.
func (s *session) sameFile(ctx context.Context, conn *sql.Conn) error {
	return s.file.Verify(ctx, conn, s.backend.queries.sameFile, s.incarnation, s.opening.Node.ID.String())
}

// findFile is the first sameFile of a session: which file it is from then on.
func (s *session) findFile(ctx context.Context, conn *sql.Conn) error {
	found, err := sqldb.FindFile(ctx, conn)
	if err != nil {
		return err
	}
	s.file = found
	return s.sameFile(ctx, conn)
}

// Wait implements [tenure.Session]. It asks every poll interval whether
// something has changed. What cannot be asked now is asked the next time: that
// the database is gone shows in the heartbeats.
func (s *session) Wait(ctx context.Context) (bool, error) {
	w := &watch{backend: s.backend, now: s.now}
	defer w.close()
	for {
		if err := s.sendable(); err != nil {
			return false, err
		}
		if now := s.now(); now < s.nextLook {
			if !s.pause(ctx, s.nextLook-now) {
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
		changed := s.looked(w)
		s.nextLook = s.now() + s.backend.config.PollInterval
		if changed {
			return true, nil
		}
	}
}

// pause waits for d and reports whether it did, and not for the end of the
// context or of the session.
func (s *session) pause(ctx context.Context, d time.Duration) bool {
	passed := make(chan struct{})
	defer s.opening.Clock.AfterFunc(d, func() { close(passed) })()
	select {
	case <-passed:
		return true
	case <-ctx.Done():
	case <-s.life.Done():
	}
	return false
}

func (s *session) now() time.Duration { return s.opening.Clock.Now().Mono }

// looked asks for news and reports whether there are some.
func (s *session) looked(w *watch) bool {
	ctx, cancel := s.limited(s.opening.Timing.RefreshInterval)
	defer cancel()
	if w.quiet(ctx) {
		return false
	}
	begun := s.now()
	found, err := s.backend.look(ctx)
	if err == nil && found.expired() {
		if err = s.backend.expire(ctx); err == nil {
			found, err = s.backend.look(ctx)
		}
	}
	if err != nil {
		if s.life.Err() == nil {
			s.log.Debug("looking for news failed", "error", err)
		}
		return false
	}
	w.looked(found, begun)
	changed := found.vacancies != s.seen.vacancies
	s.seen = found
	return changed
}

// Requests implements [tenure.Session]. Requests for terms that are over are
// taken too, and dropped.
func (s *session) Requests() ([]tenure.Request, error) {
	if err := s.sendable(); err != nil {
		return nil, err
	}
	ctx, cancel := s.limited(s.opening.Timing.RefreshInterval)
	defer cancel()
	var requests []tenure.Request
	err := s.backend.db.InTx(ctx, "take requests", func(ctx context.Context, on sqldb.Querier) error {
		found, last, err := s.backend.readRequests(ctx, on, s.incarnation)
		if err != nil || last == 0 {
			return err
		}
		requests = found
		return sqldb.Exec(ctx, on, s.backend.queries.dropRequests, s.incarnation, last)
	})
	return requests, s.failed(err)
}

// Close implements [tenure.Session].
func (s *session) Close() error {
	defer s.abort()
	if err := s.sendable(); err != nil {
		return err
	}
	ctx, cancel := s.limited(s.opening.Timing.RefreshInterval)
	defer cancel()
	return s.backend.db.InTx(ctx, "leave", func(ctx context.Context, on sqldb.Querier) error {
		if err := sqldb.Exec(ctx, on, s.backend.queries.leave, s.incarnation); err != nil {
			return err
		}
		return sqldb.Exec(ctx, on, s.backend.queries.vacancy)
	})
}

// Abort implements [tenure.Session]. The lease is left to run out: nothing is
// sent any more.
func (s *session) Abort() { s.abort() }
