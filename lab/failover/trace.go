package main

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"syscall"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/children"
)

// Calls of a session that are traced.
const (
	callOpen      = "open"
	callAcquire   = "acquire"
	callHeartbeat = "heartbeat"
	callWait      = "wait"
)

// traced is one call that the engine made.
type traced struct {
	Call   string
	From   int64 // nanoseconds since 1970
	To     int64
	Woken  bool `json:",omitempty"` // of a wait: a role may be vacant
	Yields bool `json:",omitempty"` // of an attempt: no term because the role was reserved, left to others, or not ready
}

func (t traced) interval() children.Interval {
	return children.Interval{From: time.Unix(0, t.From), To: time.Unix(0, t.To)}
}

// trace keeps the last calls until the parent process asks for them. Printing each one
// would slow the node down.
type trace struct {
	mu    sync.Mutex
	calls []traced
}

// tracedCalls is how many calls a trace keeps: those of the last round, and some more.
const tracedCalls = 256

func (t *trace) add(c traced, from time.Time) {
	c.From, c.To = from.UnixNano(), time.Now().UnixNano()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.calls) == tracedCalls {
		t.calls = append(t.calls[:0], t.calls[tracedCalls/2:]...)
	}
	t.calls = append(t.calls, c)
}

// send reports the calls and forgets them.
func (t *trace) send() error {
	t.mu.Lock()
	calls := t.calls
	t.calls = nil
	t.mu.Unlock()
	data, err := json.Marshal(calls)
	if err != nil {
		return err
	}
	children.Send(children.Report{Kind: "trace", Data: data})
	return nil
}

// tracingBackend traces the sessions of a backend.
type tracingBackend struct {
	tenure.Backend
	trace *trace
}

// fullSession is what the engine uses of a session of package postgres.
type fullSession interface {
	tenure.Session
	tenure.RegistrySession
	LockConn() (syscall.RawConn, error)
}

// Open implements [tenure.Backend].
func (b tracingBackend) Open(ctx context.Context, options tenure.SessionOptions) (tenure.Session, error) {
	from := time.Now()
	session, err := b.Backend.Open(ctx, options)
	b.trace.add(traced{Call: callOpen}, from)
	if err != nil {
		return nil, err
	}
	full, ok := session.(fullSession)
	if !ok {
		session.Abort()
		return nil, errors.New("the session cannot be traced: add its new methods to fullSession")
	}
	return tracingSession{full, b.trace}, nil
}

type tracingSession struct {
	fullSession
	trace *trace
}

// TryAcquire implements [tenure.Session].
func (s tracingSession) TryAcquire(requests []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
	from := time.Now()
	results, err := s.fullSession.TryAcquire(requests)
	c := traced{Call: callAcquire}
	for _, r := range results {
		c.Yields = c.Yields || r.Outcome == tenure.OutcomePending || r.Outcome == tenure.OutcomeHeld && r.RetryIn > 0
	}
	s.trace.add(c, from)
	return results, err
}

// Heartbeat implements [tenure.Session].
func (s tracingSession) Heartbeat(load tenure.Load) (bool, error) {
	defer s.trace.add(traced{Call: callHeartbeat}, time.Now())
	return s.fullSession.Heartbeat(load)
}

// Wait implements [tenure.Session].
func (s tracingSession) Wait(ctx context.Context) (bool, error) {
	from := time.Now()
	woken, err := s.fullSession.Wait(ctx)
	s.trace.add(traced{Call: callWait, Woken: woken}, from)
	return woken, err
}
