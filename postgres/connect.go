package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
)

// closeTimeout bounds the graceful end of a connection.
const closeTimeout = 2 * time.Second

// listener receives what a connection sends apart from answers. Its methods are
// called on the goroutine that uses the connection.
type listener interface {
	notice(*pgconn.Notice)
	notification(*pgconn.Notification)
}

// dial opens a connection for a use to the primary. The name of the purpose ends
// the application_name. listener may be nil.
func (b *Backend) dial(ctx context.Context, use pgdial.Use, purpose string, listener listener) (*pgx.Conn, error) {
	return b.dialWith(ctx, purpose, listener, pgdial.Options{Use: use, Limits: limitsOf(use)})
}

// dialOpening opens a connection of a session that is being opened.
func (b *Backend) dialOpening(ctx context.Context, use pgdial.Use, purpose string, listener listener) (*pgx.Conn, error) {
	return b.dialWith(ctx, purpose, listener, pgdial.Options{Use: use, Limits: limitsOf(use), Opening: true})
}

// dialReader opens a connection for reads, also to a server that its
// administrator has fenced if there is no other.
func (b *Backend) dialReader(ctx context.Context, purpose string) (*pgx.Conn, error) {
	conn, err := b.dial(ctx, pgdial.Question, purpose, nil)
	if errors.Is(err, dberr.ErrReadOnly) {
		return b.dialWith(ctx, purpose, nil, pgdial.Options{
			Use: pgdial.Question, Limits: limitsOf(pgdial.Question), FencedToo: true,
		})
	}
	return conn, err
}

func (b *Backend) dialWith(ctx context.Context, purpose string, listener listener, options pgdial.Options) (*pgx.Conn, error) {
	config := b.connect.Copy()
	if err := b.login.Renew(ctx, config); err != nil {
		return nil, pgdial.As(tenure.ErrConnection, fmt.Errorf("cannot connect: %w", err))
	}
	config.RuntimeParams["application_name"] = applicationName(b.config.ApplicationName, purpose)
	// Statements are prepared under their own names or run once.
	config.StatementCacheCapacity = 0
	config.DescriptionCacheCapacity = 0
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	options.Connect = b.config.Connect
	options.Discard = discard
	options.Prepare = func(config *pgx.ConnConfig) func() { return prepareConnection(config, listener) }
	conn, err := b.dialer.Connect(ctx, config, options)
	if err != nil {
		return nil, pgdial.Explain(err)
	}
	return conn, nil
}

// prepareConnection prepares one attempt to connect and returns the function to
// call if the connection is used. Several attempts may run at the same time, and
// listener must receive the messages of one connection only.
func prepareConnection(config *pgx.ConnConfig, listener listener) (won func()) {
	// After an error pgx dials again to cancel what might still run. Nothing in
	// this package waits for that, and the goroutine would outlive the connection.
	var connected atomic.Bool
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if connected.Load() {
			return nil, net.ErrClosed
		}
		return dial(ctx, network, address)
	}
	// The text of the severity is translated; the default handler reads it.
	config.OnPgError = func(_ *pgconn.PgConn, err *pgconn.PgError) bool { return !sqlstate.IsFatal(err) }
	if listener != nil {
		config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) {
			if connected.Load() {
				listener.notice(notice)
			}
		}
		config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) {
			if connected.Load() {
				listener.notification(n)
			}
		}
	} else { // the driver would keep them for as long as the connection lives
		config.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {}
	}
	return func() { connected.Store(true) }
}

// applicationName is the name that a database administrator sees. The server cuts
// it at 63 bytes, so the purpose is kept and the rest shortened.
func applicationName(program, purpose string) string {
	name := program + " " + purpose
	if excess := len(name) - maxIdentifier; excess > 0 {
		name = program[:max(0, len(program)-excess)] + " " + purpose
	}
	return name
}

// raw is the network connection under a connection, below TLS, whose closing
// notice could block.
func raw(conn *pgx.Conn) net.Conn {
	network := conn.PgConn().Conn()
	if t, ok := network.(*tls.Conn); ok {
		return t.NetConn()
	}
	return network
}

// discard closes a connection, gracefully if that can be done quickly.
func discard(conn *pgx.Conn) {
	network := raw(conn)
	if !conn.IsClosed() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		_ = conn.Close(ctx) // no caller needs the error
		cancel()
	}
	_ = network.Close() // also ends the goroutine that pgx started after an error
}

// connectForMigration opens a connection with the settings that migrations need.
func (b *Backend) connectForMigration(ctx context.Context) (*pgx.Conn, error) {
	return b.dial(ctx, pgdial.Migration, "migration", nil)
}
