// Package statements counts the statements of pgx connections, for tests and benchmarks of
// a node's cost at rest.
package statements

import (
	"context"
	"maps"
	"sync"

	"github.com/jackc/pgx/v5"
)

// Counter counts statements by the names of prepared statements, or by their text. Its
// methods may be called from several goroutines.
type Counter struct {
	mu   sync.Mutex
	sent map[string]int // guarded by mu
}

// Connect connects as pgx.ConnectConfig does and counts the later statements of the
// connection. It changes config.
func (c *Counter) Connect(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	config.Tracer = c
	return pgx.ConnectConfig(ctx, config)
}

// TraceQueryStart implements [pgx.QueryTracer].
func (c *Counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sent == nil {
		c.sent = map[string]int{}
	}
	c.sent[data.SQL]++
	return ctx
}

// TraceQueryEnd implements [pgx.QueryTracer].
func (c *Counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Counts returns how often each statement was sent until now.
func (c *Counter) Counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.sent)
}

// Since returns how often each statement was sent between two results of Counts.
func Since(before, after map[string]int) map[string]int {
	sent := map[string]int{}
	for name, n := range after {
		if n -= before[name]; n > 0 {
			sent[name] = n
		}
	}
	return sent
}
