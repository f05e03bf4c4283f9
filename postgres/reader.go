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
	"github.com/exactly-one/tenure/internal/pgdial"
)

// askTimeout bounds a read whose context has no deadline, or a later one.
const askTimeout = 30 * time.Second

// readerIdle is how long the connection for reads is kept while it is idle.
const readerIdle = 30 * time.Second

// reader runs reads and changes that are not part of a session. It uses a separate
// connection, which is opened on first use and closed after readerIdle without use.
// It runs one call at a time.
type reader struct {
	backend *Backend
	idle    time.Duration
	slot    chan *pgx.Conn // the connection, or nil, while no call uses it
	timer   *time.Timer    // runs while no call uses the connection
	closing chan struct{}
	close   func()
}

func (r *reader) init(b *Backend) {
	r.backend = b
	r.slot = make(chan *pgx.Conn, 1)
	r.slot <- nil
	r.idle = readerIdle
	r.timer = time.AfterFunc(r.idle, r.closeIdle)
	r.timer.Stop()
	r.closing = make(chan struct{})
	r.close = sync.OnceFunc(func() {
		close(r.closing)
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
	select {
	case <-r.closing:
		return tenure.ErrClosed
	default:
	}
	select {
	case conn = <-r.slot:
	case <-r.closing:
		return tenure.ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	}
	r.timer.Stop()
	defer func() {
		if conn != nil && conn.IsClosed() {
			discard(conn)
			conn = nil
		}
		if conn != nil {
			r.timer.Reset(r.idle)
		}
		r.slot <- conn
	}()
	if conn != nil && conn.Ping(ctx) != nil { // ended since the last call
		discard(conn)
		conn = nil
	}
	if conn == nil {
		var err error
		if conn, err = r.backend.dialReader(ctx, "status"); err != nil {
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

// prepare makes a connection ready. Tables of a newer schema may have another
// meaning: unless its migrations allow this program, nothing is read or written.
func (r *reader) prepare(ctx context.Context, conn *pgx.Conn) error {
	_, err := r.backend.usableVersion(ctx, conn)
	return err
}

// answer returns an error of a call in the form for its caller.
func (b *Backend) answer(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, tenure.ErrTenure): // it already describes the failure
		return fmt.Errorf("%s: %w", doing, err)
	case hasCode(err, codeUndefinedTable), hasCode(err, codeInvalidSchema):
		return fmt.Errorf("%w: %s: there are no tables in schema %q with prefix %q; a node creates them, or tenure migrate: %w",
			dberr.ErrSchema, doing, b.config.Schema, b.config.Prefix, err)
	case hasCode(err, codeUndefinedColumn):
		return fmt.Errorf("%w: %s: it is older than this program; a node brings it up to date, or a migration: %w",
			dberr.ErrSchema, doing, err)
	case hasCode(err, codeInsufficientPrivilege):
		return fmt.Errorf("%w: %s: %w", dberr.ErrPrivilege, doing, err)
	case hasCode(err, codeReadOnlyTransaction):
		return fmt.Errorf("%w: %s: %w", dberr.ErrReadOnly, doing, err)
	case hasCode(err, codeUntranslatable): // no role or node has such a name here
		return fmt.Errorf("%w: %s: %w", tenure.ErrInvalidConfig, doing, err)
	default:
		return fmt.Errorf("%w: %s: %w", tenure.ErrConnection, doing, err)
	}
}
