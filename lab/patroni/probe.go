//go:build linux

package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/children"
)

// probe writes to one server every few milliseconds and notes when the server
// acknowledged that.
type probe struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu       sync.Mutex
	writable []children.Interval // from the end of the first write to the end of the last
	open     bool                // the last interval has not ended
}

func startProbe(dsn string) *probe {
	ctx, cancel := context.WithCancel(context.Background())
	p := &probe{cancel: cancel, done: make(chan struct{})}
	go p.run(ctx, dsn)
	return p
}

func (p *probe) stop() {
	p.cancel()
	<-p.done
}

func (p *probe) run(ctx context.Context, dsn string) {
	defer close(p.done)
	var conn *pgx.Conn
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case <-pace.C:
		case <-ctx.Done():
			if conn != nil {
				_ = conn.Close(context.Background())
			}
			return
		}
		once, cancel := context.WithTimeout(ctx, time.Second)
		written := false
		var err error
		if conn == nil {
			conn, err = pgx.Connect(once, dsn)
		}
		if err == nil {
			written, err = write(once, conn)
		}
		cancel()
		p.note(written && err == nil, time.Now())
		if err != nil && conn != nil {
			_ = conn.Close(context.Background())
			conn = nil
		}
	}
}

func write(ctx context.Context, conn *pgx.Conn) (bool, error) {
	var standby bool
	if err := conn.QueryRow(ctx, "SELECT pg_is_in_recovery()").Scan(&standby); err != nil || standby {
		return false, err
	}
	_, err := conn.Exec(ctx, "UPDATE probe SET n = n + 1")
	return err == nil, err
}

func (p *probe) note(written bool, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !written:
		p.open = false
	case p.open:
		p.writable[len(p.writable)-1].To = at
	default:
		p.writable, p.open = append(p.writable, children.Interval{From: at, To: at}), true
	}
}

func (p *probe) intervals() []children.Interval {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.writable)
}

// splits are the stretches of time in which two servers acknowledged writes.
func (b *bed) splits() []children.Interval {
	var all []children.Interval
	for i, one := range b.probes {
		for _, other := range b.probes[i+1:] {
			all = append(all, children.Overlaps(one.intervals(), other.intervals())...)
		}
	}
	return all
}
