package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
)

var _ tenure.Listener = (*Backend)(nil)

// Listen implements [tenure.Listener]: it calls wake, in this goroutine, whenever
// something about the elections of the schema may have changed, and once when it
// has begun to listen. It uses a connection of its own and no privilege beyond
// connecting. It returns nil when the context ends, and an error when it cannot
// listen any more; news can be lost before that, so ask now and then besides.
func (b *Backend) Listen(ctx context.Context, wake func()) error {
	return b.listen(ctx, b.names.channel(), wake)
}

// ListenTo is Listen for what is told on another channel of this installation.
func (b *Backend) ListenTo(ctx context.Context, topic string, wake func()) error {
	return b.listen(ctx, b.Channel(topic), wake)
}

// Channel returns the name of the notification channel for a topic.
func (b *Backend) Channel(topic string) string {
	return newNames(b.config.Schema, b.config.Prefix+topic).channel()
}

func (b *Backend) listen(ctx context.Context, channel string, wake func()) error {
	conn, err := b.dial(ctx, "listen", nil)
	if err != nil {
		return err
	}
	defer discard(conn)
	_, err = conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize())
	for err == nil {
		wake()
		_, err = conn.WaitForNotification(ctx)
	}
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("%w: listen: %w", tenure.ErrConnection, err)
}
