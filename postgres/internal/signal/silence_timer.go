package signal

import (
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// SilenceTimer detects the silence of the watch function, which sends messages at
// intervals while it waits. It is created before the connection.
type SilenceTimer struct {
	mu    sync.Mutex
	timer *time.Timer // of the call in progress
	limit time.Duration

	reported bool // the call in progress has reported the node as the oldest
	oldest   bool // it has, or the one before it had
}

// oldestNotice is the message of the watch function on the oldest node of the ring.
const oldestNotice = "oldest"

// Expect calls silent when no message has come for a time, until stop is called.
func (p *SilenceTimer) Expect(limit time.Duration, silent func()) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit, p.timer, p.reported = limit, time.AfterFunc(limit, silent), false
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.oldest = p.reported
		p.timer.Stop()
		p.timer = nil
	}
}

// Notice implements link.Listener: the connection is not silent.
func (p *SilenceTimer) Notice(n *pgconn.Notice) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n.Message == oldestNotice {
		p.reported, p.oldest = true, true
	}
	if p.timer != nil {
		p.timer.Reset(p.limit)
	}
}

// IsOldest reports whether the node is the oldest of the ring.
func (p *SilenceTimer) IsOldest() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.oldest
}

// Notification implements link.Listener.
func (p *SilenceTimer) Notification(*pgconn.Notification) {}
