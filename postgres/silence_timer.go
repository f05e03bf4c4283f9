package postgres

import (
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// silenceTimer detects that the watch function, which sends messages at intervals
// while it waits, has become silent. It is created before the connection.
type silenceTimer struct {
	mu    sync.Mutex
	timer *time.Timer // of the call in progress
	limit time.Duration
}

// expect calls silent when no message has come for a time, until stop is called.
func (p *silenceTimer) expect(limit time.Duration, silent func()) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit, p.timer = limit, time.AfterFunc(limit, silent)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.timer.Stop()
		p.timer = nil
	}
}

func (p *silenceTimer) Notice(*pgconn.Notice) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Reset(p.limit)
	}
}

func (p *silenceTimer) Notification(*pgconn.Notification) {}
