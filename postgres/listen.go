package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
)

var _ tenure.Listener = (*Backend)(nil)

// Listen implements [tenure.Listener]: it calls wake, in this goroutine, whenever
// something about the elections or the nodes of the schema may have changed, and
// once when it has begun to listen. It uses a connection of its own and no
// privilege beyond connecting. It returns nil when the context ends, and an error
// when it cannot listen any more; news can be lost before that, so ask now and
// then besides.
func (b *Backend) Listen(ctx context.Context, wake func()) error {
	conn, err := b.dial(ctx, "listen", nil)
	if err != nil {
		return err
	}
	defer discard(conn)
	err = b.names.startListening(ctx, conn)
	for err == nil {
		wake()
		_, err = conn.WaitForNotification(ctx)
	}
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("%w: listen: %w", tenure.ErrConnection, err)
}

// startListening begins to listen to all that is told. Roles and nodes have
// channels of their own: at news of nodes alone nobody need try to take a role.
func (n names) startListening(ctx context.Context, conn *pgx.Conn) error {
	for _, channel := range []string{n.channel(), n.nodesChannel()} {
		if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
			return err
		}
	}
	return nil
}
