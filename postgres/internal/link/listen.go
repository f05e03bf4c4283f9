package link

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgdial"
)

// Listen calls wake, in this goroutine, for each notification on channels, and once when
// it has begun to listen.
func (c *Connector) Listen(ctx context.Context, wake func(), channels ...string) error {
	return c.OnListening(ctx, func(conn *pgx.Conn) (err error) {
		for err == nil {
			wake()
			err = conn.PgConn().WaitForNotification(ctx)
		}
		return err
	}, channels...)
}

// OnListening calls attend with a separate connection, listening to channels.
func (c *Connector) OnListening(ctx context.Context, attend func(*pgx.Conn) error, channels ...string) error {
	conn, err := c.Dial(ctx, pgdial.Listen, "listen", nil)
	if err != nil {
		return err
	}
	defer Discard(conn)
	if err = listenTo(ctx, conn, channels...); err == nil {
		err = attend(conn)
	}
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("%w: listen: %w", tenure.ErrConnection, err)
}

// StartListening begins to listen to all notifications. Roles and nodes have
// separate channels: after a change of nodes only, no node needs to campaign.
func (n Names) StartListening(ctx context.Context, conn Connection) error {
	return listenTo(ctx, conn, n.ElectionsChannel(), n.NodesChannel())
}

func listenTo(ctx context.Context, conn Executor, channels ...string) error {
	for _, c := range ListenCalls(channels...) {
		if _, err := conn.Exec(ctx, c.SQL); err != nil {
			return err
		}
	}
	return nil
}

// ListenCalls are the statements of listenTo.
func ListenCalls(channels ...string) []Call {
	var calls []Call
	for _, channel := range channels {
		calls = append(calls, Call{SQL: "LISTEN " + pgx.Identifier{channel}.Sanitize()})
	}
	return calls
}
