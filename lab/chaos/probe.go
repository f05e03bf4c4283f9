//go:build linux

package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/lab/chaos/check"
	"github.com/exactly-one/tenure/lab/chaos/record"
)

const (
	probeInterval = 250 * time.Millisecond
	probeLimit    = 10 * time.Second
	// slow is how long a connection and one query may take on a machine whose nodes
	// can be judged.
	slow = time.Second
)

// probe records when the machine is too busy for a server to answer within a second,
// although nothing was done to it.
func (b *bed) probe(ctx context.Context) {
	for pause(ctx, probeInterval) == nil {
		from := record.Now()
		once, cancel := context.WithTimeout(ctx, probeLimit)
		err := b.asAdmin(once, func(conn *pgx.Conn) error { return conn.Ping(once) })
		late := once.Err() != nil
		cancel()
		took := time.Duration(record.Now() - from)
		if took < slow || err != nil && !late || ctx.Err() != nil {
			continue // a server that refuses has a fault, and is not busy
		}
		b.mu.Lock()
		b.history.Faults = append(b.history.Faults, record.Fault{
			Step: "the server answered after " + took.Round(time.Millisecond).String(), Kind: check.Overload, From: from, To: record.Now(),
		})
		b.mu.Unlock()
	}
}
