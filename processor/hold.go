package processor

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// hold acquires a connection of the pool for the read of a batch and the transaction of
// its handling. Others may use the same pool, and each acquisition waits for them. A
// publisher holds none while it publishes. Code beside a handler, such as watch, uses the
// pool: the connection is in the handler's transaction.
func (l *loop) hold(ctx context.Context) error {
	pool, isPool := l.database.(*pgxpool.Pool)
	if !isPool || l.config.Handle == nil {
		return nil
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("acquire a connection: %w", err)
	}
	l.held = conn
	return nil
}

// release gives the connection back before others are used: a pool of one is enough. It
// may be called more than once.
func (l *loop) release() {
	if l.held != nil {
		l.held.Release()
		l.held = nil
	}
}

// connection returns the held connection, or the database.
func (l *loop) connection() Database {
	if l.held != nil {
		return l.held
	}
	return l.database
}
