package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgdial"
)

var _ tenure.Listener = (*Backend)(nil)

// Listen implements [tenure.Listener]: it calls wake, in this goroutine, whenever
// something about the elections or the nodes of the schema may have changed, and
// once when it has begun to listen. It uses a separate connection and no privilege
// beyond connecting. It returns nil when ctx ends, and an error when it can no
// longer listen. Notifications can be lost before that, so poll at intervals too.
func (b *Backend) Listen(ctx context.Context, wake func()) error {
	return b.listen(ctx, wake, b.names.channel(), b.names.nodesChannel())
}

func (b *Backend) listen(ctx context.Context, wake func(), channels ...string) error {
	return b.onListening(ctx, func(conn *pgx.Conn) (err error) {
		for err == nil {
			wake()
			err = conn.PgConn().WaitForNotification(ctx)
		}
		return err
	}, channels...)
}

// onListening calls attend with a separate connection that listens to channels.
func (b *Backend) onListening(ctx context.Context, attend func(*pgx.Conn) error, channels ...string) error {
	conn, err := b.dial(ctx, pgdial.Listen, "listen", nil)
	if err != nil {
		return err
	}
	defer discard(conn)
	if err = listenTo(ctx, conn, channels...); err == nil {
		err = attend(conn)
	}
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("%w: listen: %w", tenure.ErrConnection, err)
}

// startListening begins to listen to all notifications. Roles and nodes have
// separate channels: after a change of nodes only, no node needs to campaign.
func (n names) startListening(ctx context.Context, conn connection) error {
	return listenTo(ctx, conn, n.channel(), n.nodesChannel())
}

func listenTo(ctx context.Context, conn executor, channels ...string) error {
	for _, c := range listenCalls(channels...) {
		if _, err := conn.Exec(ctx, c.sql); err != nil {
			return err
		}
	}
	return nil
}

// listenCalls are the statements of listenTo.
func listenCalls(channels ...string) []call {
	var calls []call
	for _, channel := range channels {
		calls = append(calls, call{sql: "LISTEN " + pgx.Identifier{channel}.Sanitize()})
	}
	return calls
}
