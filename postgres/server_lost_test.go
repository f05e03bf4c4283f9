package postgres

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres/internal/server"
)

// probeTracer ends the session connection between its trial of locks and that of the watch
// connection.
type probeTracer struct {
	t     *testing.T
	dsn   string
	first atomic.Uint32 // the process of the server
}

func (p *probeTracer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, query pgx.TraceQueryStartData) context.Context {
	if query.SQL == server.ProbeServer && conn.PgConn().PID() != p.first.Load() {
		other := pgtest.Conn(p.t, p.dsn)
		if _, err := other.Exec(ctx, "SELECT pg_terminate_backend($1, 10000)", p.first.Load()); err != nil {
			p.t.Error(err)
		}
	}
	return ctx
}

func (*probeTracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// The second session then acquires the lock of the first one, and that is no reason to
// refuse the server for good.
func TestSessionLostDuringTrialOfLocksIsNoRefusal(t *testing.T) {
	t.Parallel()
	pg := pgtest.Shared(t)
	tracer := &probeTracer{t: t, dsn: pg.DSN()}
	_, err := tryOpen(t, backendOn(t, pg.DSN(), Config{
		Schema: pg.Schema(t),
		Connect: func(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
			config.Tracer = tracer
			conn, err := pgx.ConnectConfig(ctx, config)
			if err == nil && strings.HasSuffix(config.RuntimeParams["application_name"], " session") {
				tracer.first.Store(conn.PgConn().PID())
			}
			return conn, err
		},
	}))
	if !errors.Is(err, tenure.ErrConnection) || errors.Is(err, tenure.ErrRefused) {
		t.Errorf("opening: %v; want an error that may pass", err)
	}
}
