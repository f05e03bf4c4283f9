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
)

// closeTimeout bounds saying goodbye to the server.
const closeTimeout = 2 * time.Second

// listener hears what a connection receives besides answers. Its methods are
// called on the goroutine that uses the connection.
type listener interface {
	notice(*pgconn.Notice)
	notification(*pgconn.Notification)
}

// dial opens a connection and makes sure that it leads to a primary. The name of
// the purpose ends the application_name. listener may be nil.
func (b *Backend) dial(ctx context.Context, purpose string, listener listener) (*pgx.Conn, error) {
	config := b.connect.Copy()
	config.RuntimeParams["application_name"] = applicationName(b.config.ApplicationName, purpose)
	// Statements are prepared under names of their own or run once.
	config.StatementCacheCapacity = 0
	config.DescriptionCacheCapacity = 0
	config.DefaultQueryExecMode = pgx.QueryExecModeExec

	// After an error pgx dials again to cancel what might still run. Nothing of
	// ours waits for that, and the goroutine would outlive the connection.
	var connected atomic.Bool
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if connected.Load() {
			return nil, net.ErrClosed
		}
		return dial(ctx, network, address)
	}
	// The text of the severity is translated; the default handler reads it.
	config.OnPgError = func(_ *pgconn.PgConn, err *pgconn.PgError) bool { return !fatal(err) }
	if listener != nil {
		config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) { listener.notice(notice) }
		config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) { listener.notification(n) }
	}
	validate := config.ValidateConnect
	config.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if validate != nil {
			if err := validate(ctx, conn); err != nil {
				return err
			}
		}
		return refuseRecovery(ctx, conn)
	}

	conn, err := b.config.Connect(ctx, config)
	if err != nil {
		return nil, connectError(err)
	}
	connected.Store(true)
	return conn, nil
}

// refuseRecovery makes pgx try the next host.
func refuseRecovery(ctx context.Context, conn *pgconn.PgConn) error {
	result := conn.ExecParams(ctx, "SELECT pg_catalog.pg_is_in_recovery()", nil, nil, nil, nil).Read()
	if result.Err != nil {
		return result.Err
	}
	if len(result.Rows) == 1 && len(result.Rows[0]) == 1 && string(result.Rows[0][0]) != "f" {
		return fmt.Errorf("%w and takes no writes: connect to the primary, or name every host in the connection string", tenure.ErrInRecovery)
	}
	return nil
}

// connectError makes a failed connection attempt final only if every host that
// was named is in recovery: one that is down may be the primary.
func connectError(err error) error {
	if onlyRecovery(err) {
		return fmt.Errorf("connect: %w", err)
	}
	// The chain is cut, or the error would match ErrInRecovery.
	if errors.Is(err, tenure.ErrRefused) {
		return fmt.Errorf("%w: connect: %s", tenure.ErrConnection, err) //nolint:errorlint // see above
	}
	return fmt.Errorf("%w: connect: %w", tenure.ErrConnection, err)
}

func onlyRecovery(err error) bool {
	if !errors.Is(err, tenure.ErrInRecovery) {
		return false
	}
	for {
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			for _, one := range several.Unwrap() {
				if !errors.Is(one, tenure.ErrInRecovery) {
					return false
				}
			}
			return true
		}
		if err = errors.Unwrap(err); err == nil {
			return true
		}
	}
}

// applicationName is what a database administrator sees; the server cuts it at
// 63 bytes, so the purpose is kept and the rest shortened.
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

// discard closes a connection, politely if it can be done quickly.
func discard(conn *pgx.Conn) {
	network := raw(conn)
	if !conn.IsClosed() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		_ = conn.Close(ctx) // there is nobody to tell
		cancel()
	}
	_ = network.Close() // also ends the goroutine that pgx started after an error
}

// connectForMigration opens a connection with the settings that migrations need.
func (b *Backend) connectForMigration(ctx context.Context) (*pgx.Conn, error) {
	conn, err := b.dial(ctx, "migration", nil)
	if err != nil {
		return nil, err
	}
	if err := applySettings(ctx, conn, migrationSettings); err != nil {
		discard(conn)
		return nil, fmt.Errorf("%w: %w", tenure.ErrConnection, err)
	}
	return conn, nil
}
