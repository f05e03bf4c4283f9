package hostile

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// exchange is what a client asked and what the server answered.
type exchange struct {
	ask    string
	answer []message
	after  time.Duration
}

// conversation is one connection. The first exchange is the start-up.
type conversation struct {
	purpose   string
	exchanges []exchange
}

// Recording has the conversations of clients with a real server, in order.
type Recording struct {
	mu            sync.Mutex
	conversations []*conversation
}

// Through returns a function that connects as dial does and records what passes. The
// connection must not turn to TLS.
func (r *Recording) Through(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		kept := new(conversation)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.conversations = append(r.conversations, kept)
		return &tapped{Conn: conn, recording: r, kept: kept}, nil
	}
}

// tapped is a connection whose traffic is recorded.
type tapped struct {
	net.Conn
	recording *Recording
	kept      *conversation

	// Guarded by recording.mu.
	asks     asks
	waiting  []exchange // not yet answered
	askedAt  []time.Time
	answered []byte    // the start of a message
	answer   []message // to the first exchange that waits
}

func (t *tapped) Write(b []byte) (int, error) {
	t.recording.mu.Lock()
	for _, ask := range t.asks.add(b) {
		t.waiting = append(t.waiting, exchange{ask: ask})
		t.askedAt = append(t.askedAt, time.Now())
	}
	t.kept.purpose = t.asks.purpose
	t.recording.mu.Unlock()
	return t.Conn.Write(b)
}

func (t *tapped) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	t.recording.mu.Lock()
	defer t.recording.mu.Unlock()
	t.answered = append(t.answered, b[:n]...)
	for {
		m, rest, whole := next(t.answered)
		if !whole {
			return n, err
		}
		t.answered = rest
		if len(t.waiting) == 0 { // a notification
			continue
		}
		if t.answer = append(t.answer, m); m.kind != 'Z' {
			continue
		}
		done := t.waiting[0]
		done.answer, done.after = t.answer, time.Since(t.askedAt[0])
		t.kept.exchanges = append(t.kept.exchanges, done)
		t.waiting, t.askedAt, t.answer = t.waiting[1:], t.askedAt[1:], nil
	}
}

// of returns the conversations for a purpose.
func (r *Recording) of(purpose string) (found []*conversation) {
	for _, c := range r.conversations {
		if c.purpose == purpose && len(c.exchanges) > 0 {
			found = append(found, c)
		}
	}
	return found
}
