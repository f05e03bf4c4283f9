package link

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/openlimit"
	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// readerFresh is how long after a call the connection is used again without a test: on a
// far server, the test takes as long as the call.
const readerFresh = 100 * time.Millisecond

// readerIdle is how long the connection for reads is kept while it is idle.
const readerIdle = 30 * time.Second

// Reader runs reads and changes outside a session. It uses a separate connection. The
// first use opens the connection; it is closed after readerIdle without use. A Reader
// runs one call at a time.
type Reader struct {
	connector *Connector
	names     Names
	running   *wakeup.Group                          // counts the goroutines
	usable    func(context.Context, *pgx.Conn) error // whether the tables may be used
	Idle      time.Duration
	used      time.Time       // when the last call ended; of the call in progress
	slot      chan *pgx.Conn  // the connection, or nil, while no call uses it
	timer     *time.Timer     // runs while no call uses the connection
	ctx       context.Context // ends with close
	end       func()          // see close
}

// Init makes a reader ready. usable is called for each new connection; running counts the
// reader's goroutines.
func (r *Reader) Init(connector *Connector, names Names, running *wakeup.Group, usable func(context.Context, *pgx.Conn) error) {
	r.connector, r.names, r.running, r.usable = connector, names, running, usable
	r.slot = make(chan *pgx.Conn, 1)
	r.slot <- nil
	r.Idle = readerIdle
	r.timer = time.AfterFunc(r.Idle, r.CloseIdle)
	r.timer.Stop()
	ctx, end := context.WithCancel(context.Background())
	r.ctx = ctx
	r.end = sync.OnceFunc(func() {
		end()
		conn := <-r.slot
		r.timer.Stop()
		if conn != nil {
			Discard(conn)
		}
	})
}

// Close closes the connection, and makes later calls fail. It may be called more than once.
func (r *Reader) Close() { r.end() }

// CloseIdle closes the connection unless a call uses it; the call then starts the timer
// again.
func (r *Reader) CloseIdle() {
	select {
	case conn := <-r.slot:
		if conn != nil {
			Discard(conn)
		}
		r.slot <- nil
	default:
	}
}

// Ask runs fn on the connection.
func (r *Reader) Ask(ctx context.Context, doing string, fn func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, AskTimeout)
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
	left := false // to the goroutine of connect
	defer func() {
		if !left {
			r.release(conn)
		}
	}()
	if conn != nil && time.Since(r.used) > readerFresh && conn.Ping(ctx) != nil { // ended since the last call
		Discard(conn)
		conn = nil
	}
	if conn == nil {
		var err error
		if conn, left, err = r.connect(ctx); err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
		if err = r.usable(ctx, conn); err != nil {
			Discard(conn)
			conn = nil
			return r.names.Explain(doing, err)
		}
	}
	err := fn(ctx, conn)
	if err == nil {
		if err = pgdial.Idle(conn.PgConn()); err != nil { // the changes are not committed
			Discard(conn)
			conn = nil
		}
	}
	return r.names.Explain(doing, err)
}

// connect opens a connection. If ctx ends first, the attempt continues, and the next call
// gets the slot from it. Otherwise, if connecting took longer than a call may take, no
// call would ever get a connection.
func (r *Reader) connect(ctx context.Context) (conn *pgx.Conn, left bool, err error) {
	type result struct {
		conn *pgx.Conn
		err  error
	}
	results, abandoned := make(chan result), make(chan struct{})
	r.running.Go(func() { // the dialer bounds it, and close ends it
		dialing, cancel := context.WithTimeout(context.WithoutCancel(ctx), openlimit.Session.Most)
		defer cancel()
		defer context.AfterFunc(r.ctx, cancel)()
		conn, err := r.connector.DialReader(dialing, "status")
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
func (r *Reader) release(conn *pgx.Conn) {
	if conn != nil && conn.IsClosed() {
		Discard(conn)
		conn = nil
	}
	if conn != nil {
		r.used = time.Now()
		r.timer.Reset(r.Idle)
	}
	r.slot <- conn
}
