package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/openlimit"
	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
)

// askTimeout bounds a read whose context has no deadline, or a later one.
const askTimeout = 30 * time.Second

// readerFresh is how long after a call the connection is used again without a test: on a
// far server, the test takes as long as the call.
const readerFresh = 100 * time.Millisecond

// readerIdle is how long the connection for reads is kept while it is idle.
const readerIdle = 30 * time.Second

// reader runs reads and changes that are not part of a session. It uses a separate
// connection, which is opened on first use and closed after readerIdle without use.
// It runs one call at a time.
type reader struct {
	backend *Backend
	idle    time.Duration
	used    time.Time       // when the last call ended; of the call that uses the connection
	slot    chan *pgx.Conn  // the connection, or nil, while no call uses it
	timer   *time.Timer     // runs while no call uses the connection
	ctx     context.Context // ends with close
	close   func()
}

func (r *reader) init(b *Backend) {
	r.backend = b
	r.slot = make(chan *pgx.Conn, 1)
	r.slot <- nil
	r.idle = readerIdle
	r.timer = time.AfterFunc(r.idle, r.closeIdle)
	r.timer.Stop()
	ctx, end := context.WithCancel(context.Background())
	r.ctx = ctx
	r.close = sync.OnceFunc(func() {
		end()
		conn := <-r.slot
		r.timer.Stop()
		if conn != nil {
			discard(conn)
		}
	})
}

// closeIdle closes the connection unless a call uses it; that call then starts the
// timer again.
func (r *reader) closeIdle() {
	select {
	case conn := <-r.slot:
		if conn != nil {
			discard(conn)
		}
		r.slot <- nil
	default:
	}
}

// ask runs fn on the connection.
func (r *reader) ask(ctx context.Context, doing string, fn func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var conn *pgx.Conn
	if r.ctx.Err() != nil {
		return tenure.ErrClosed
	}
	select {
	case conn = <-r.slot:
	case <-r.ctx.Done():
		return tenure.ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	}
	r.timer.Stop()
	left := false // to the goroutine that connects
	defer func() {
		if !left {
			r.release(conn)
		}
	}()
	if conn != nil && time.Since(r.used) > readerFresh && conn.Ping(ctx) != nil { // ended since the last call
		discard(conn)
		conn = nil
	}
	if conn == nil {
		var err error
		if conn, left, err = r.connect(ctx); err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
		if err = r.prepare(ctx, conn); err != nil {
			discard(conn)
			conn = nil
			return r.backend.answer(doing, err)
		}
	}
	err := fn(ctx, conn)
	if err == nil {
		if err = pgdial.Idle(conn.PgConn()); err != nil { // the changes are not committed
			discard(conn)
			conn = nil
		}
	}
	return r.backend.answer(doing, err)
}

// connect opens a connection. If ctx ends first, the attempt continues for the next call,
// which gets the slot from it: where connecting takes longer than a call may take, no call
// would ever get a connection otherwise.
func (r *reader) connect(ctx context.Context) (conn *pgx.Conn, left bool, err error) {
	type result struct {
		conn *pgx.Conn
		err  error
	}
	results, abandoned := make(chan result), make(chan struct{})
	r.backend.running.Go(func() { // the dialer bounds it, and close ends it
		dialing, cancel := context.WithTimeout(context.WithoutCancel(ctx), openlimit.Session.Most)
		defer cancel()
		defer context.AfterFunc(r.ctx, cancel)()
		conn, err := r.backend.dialReader(dialing, "status")
		select {
		case results <- result{conn, err}:
		case <-abandoned:
			r.release(conn)
		}
	})
	select {
	case done := <-results:
		return done.conn, false, done.err
	case <-ctx.Done():
		close(abandoned)
		return nil, true, pgdial.As(tenure.ErrConnection, fmt.Errorf("connecting takes longer: %w", context.Cause(ctx)))
	}
}

// release lets the next call use the connection, if there is one.
func (r *reader) release(conn *pgx.Conn) {
	if conn != nil && conn.IsClosed() {
		discard(conn)
		conn = nil
	}
	if conn != nil {
		r.used = time.Now()
		r.timer.Reset(r.idle)
	}
	r.slot <- conn
}

// prepare makes a connection ready. Tables of a newer schema may have another
// meaning: unless its migrations allow this program, nothing is read or written.
func (r *reader) prepare(ctx context.Context, conn *pgx.Conn) error {
	_, err := r.backend.usableVersions(ctx, conn)
	return err
}

// answer returns an error of a call in the form for its caller.
func (b *Backend) answer(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, tenure.ErrTenure): // it already describes the failure
		return fmt.Errorf("%s: %w", doing, err)
	case sqlstate.Has(err, sqlstate.UndefinedTable), sqlstate.Has(err, sqlstate.InvalidSchema):
		return fmt.Errorf("%w: %s: there are no tables in schema %q with prefix %q; a node creates them, or tenure migrate: %w",
			dberr.ErrSchema, doing, b.config.Schema, b.config.Prefix, err)
	case sqlstate.Has(err, sqlstate.UndefinedColumn), sqlstate.Has(err, sqlstate.UndefinedFunction):
		return fmt.Errorf("%w: %s: it is older than this program; a node brings it up to date, or a migration: %w",
			dberr.ErrSchema, doing, err)
	case sqlstate.Has(err, sqlstate.InsufficientPrivilege):
		return fmt.Errorf("%w: %s: %w", dberr.ErrPrivilege, doing, err)
	case sqlstate.Has(err, sqlstate.ReadOnlyTransaction):
		return fmt.Errorf("%w: %s: %w", dberr.ErrReadOnly, doing, err)
	case sqlstate.Has(err, sqlstate.Untranslatable): // no role or node has such a name here
		return fmt.Errorf("%w: %s: %w", tenure.ErrInvalidConfig, doing, err)
	default:
		return fmt.Errorf("%w: %s: %w", tenure.ErrConnection, doing, err)
	}
}
