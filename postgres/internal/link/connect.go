// Package link connects package postgres to its server: it opens connections, sends
// statements ahead or under a prepared name, and names the objects of an installation.
package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
)

// CloseTimeout bounds the graceful end of a connection.
const CloseTimeout = 2 * time.Second

// Listener receives notices and notifications, on the goroutine of the connection's user.
type Listener interface {
	Notice(*pgconn.Notice)
	Notification(*pgconn.Notification)
}

// Connector opens the connections of a backend.
type Connector struct {
	Config  *pgx.ConnConfig // of the server; never changed
	Login   pgdial.Credentials
	Program string                                                               // begins the application_name of every connection
	Hook    func(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) // instead of pgx.ConnectConfig; may be nil
	Dialer  *pgdial.Dialer
}

// Dial opens a connection for a use to the primary. The name of the purpose ends
// the application_name. listener may be nil.
func (c *Connector) Dial(ctx context.Context, use pgdial.Use, purpose string, listener Listener) (*pgx.Conn, error) {
	return c.DialWith(ctx, purpose, listener, pgdial.Options{Use: use, Limits: LimitsOf(use)})
}

// DialOpening opens a connection of a session during its opening.
func (c *Connector) DialOpening(ctx context.Context, use pgdial.Use, purpose string, listener Listener) (*pgx.Conn, error) {
	return c.DialWith(ctx, purpose, listener, pgdial.Options{Use: use, Limits: LimitsOf(use), Opening: true})
}

// DialReader opens a connection for reads. If there is no other server, it also takes one
// fenced by its administrator.
func (c *Connector) DialReader(ctx context.Context, purpose string) (*pgx.Conn, error) {
	conn, err := c.Dial(ctx, pgdial.Question, purpose, nil)
	if errors.Is(err, dberr.ErrReadOnly) {
		return c.DialWith(ctx, purpose, nil, pgdial.Options{
			Use: pgdial.Question, Limits: LimitsOf(pgdial.Question), FencedToo: true,
		})
	}
	return conn, err
}

// DialWith opens a connection with options.
func (c *Connector) DialWith(ctx context.Context, purpose string, listener Listener, options pgdial.Options) (*pgx.Conn, error) {
	config := c.Config.Copy()
	if err := c.Login.Renew(ctx, config); err != nil {
		return nil, pgdial.As(tenure.ErrConnection, fmt.Errorf("cannot connect: %w", err))
	}
	config.RuntimeParams["application_name"] = ApplicationName(c.Program, purpose)
	// Statements are prepared under their own names or run once.
	config.StatementCacheCapacity = 0
	config.DescriptionCacheCapacity = 0
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	options.Connect = c.Hook
	options.Discard = Discard
	options.Prepare = func(config *pgx.ConnConfig) func() { return prepareConnection(config, listener) }
	conn, err := c.Dialer.Connect(ctx, config, options)
	if err != nil {
		return nil, pgdial.Explain(err)
	}
	return conn, nil
}

// prepareConnection prepares one attempt to connect and returns the function to
// call if the connection is used. Several attempts may run at the same time, and
// listener must receive the messages of one connection only.
func prepareConnection(config *pgx.ConnConfig, listener Listener) (won func()) {
	// After an error pgx dials again to cancel the statement. Nothing in this package
	// waits for the cancellation, and its goroutine would outlive the connection.
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
				listener.Notice(notice)
			}
		}
		config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) {
			if connected.Load() {
				listener.Notification(n)
			}
		}
	} else { // the driver would keep them for as long as the connection lives
		config.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {}
	}
	return func() { connected.Store(true) }
}

const maxApplicationName = 63 // bytes, a limit of PostgreSQL

// ApplicationName is shown to database administrators. The server cuts it at 63 bytes, so
// a long name is shortened in the middle: its end and the last word of the purpose are kept.
func ApplicationName(program, purpose string) string {
	const end = 24 // bytes of the end of a name
	name := program + " " + purpose
	if len(name) <= maxApplicationName {
		return name
	}
	last := name[strings.LastIndexByte(name, ' '):]
	name = name[:len(name)-len(last)]
	begin := max(0, maxApplicationName-len("..")-end-len(last))
	return strings.ToValidUTF8(name[:begin], "") + ".." + strings.ToValidUTF8(name[len(name)-end:], "") + last
}

// Raw is the network connection below TLS. The closing notice of TLS could block.
func Raw(conn *pgx.Conn) net.Conn {
	network := conn.PgConn().Conn()
	if t, ok := network.(*tls.Conn); ok {
		return t.NetConn()
	}
	return network
}

// Discard closes a connection: gracefully if it can do so quickly.
func Discard(conn *pgx.Conn) {
	network := Raw(conn)
	if !conn.IsClosed() {
		ctx, cancel := context.WithTimeout(context.Background(), CloseTimeout)
		_ = conn.Close(ctx) // no caller needs the error
		cancel()
	}
	_ = network.Close() // also ends the goroutine pgx started after an error
}

// DialMigration opens a connection with the settings for migrations.
func (c *Connector) DialMigration(ctx context.Context) (*pgx.Conn, error) {
	return c.Dial(ctx, pgdial.Migration, "migration", nil)
}
