package sidecar

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// The bounds on clients' questions to the database.
const (
	lookUpInterval = time.Second     // between two questions
	lookUpTimeout  = 5 * time.Second // for an answer
)

// lookup asks the database one question: at most once at a time and per
// lookUpInterval, however many clients want to know. It is safe for concurrent
// use.
type lookup[T any] struct {
	ctx   context.Context
	group *sync.WaitGroup
	log   *slog.Logger
	what  string // is looked up
	ask   func(context.Context) (T, error)

	mu   sync.Mutex
	last *finding[T]
}

// finding is the answer to one question. Its fields may be read when done is
// closed.
type finding[T any] struct {
	asked time.Time
	done  chan struct{}
	value T
	err   error
}

// newLookup makes a lookup of the handler. Its questions end with the handler.
func newLookup[T any](h *Handler, what string, ask func(context.Context) (T, error)) *lookup[T] {
	return &lookup[T]{ctx: h.ctx, group: &h.group, log: h.config.Logger, what: what, ask: ask}
}

// find returns the database's answer: one from the last lookUpInterval, or a new one.
func (l *lookup[T]) find(ctx context.Context) (T, error) {
	var none T
	found, err := l.recent()
	if err != nil {
		return none, err
	}
	select {
	case <-found.done:
		return found.value, found.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// recent returns the last question, or begins the next.
func (l *lookup[T]) recent() (*finding[T], error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := l.last; found != nil {
		select {
		case <-found.done:
			if time.Since(found.asked) < lookUpInterval {
				return found, nil
			}
		default:
			return found, nil
		}
	}
	if err := l.ctx.Err(); err != nil {
		return nil, err
	}
	l.last = &finding[T]{asked: time.Now(), done: make(chan struct{})}
	found := l.last
	// On its own: a leaving client must not take the answer from others.
	l.group.Go(func() { l.answer(found) })
	return found, nil
}

func (l *lookup[T]) answer(found *finding[T]) {
	defer close(found.done)
	ctx, cancel := context.WithTimeout(l.ctx, lookUpTimeout)
	defer cancel()
	if found.value, found.err = l.ask(ctx); found.err != nil && l.ctx.Err() == nil {
		l.log.Warn("looking up "+l.what+" for a client failed", "error", found.err)
	}
}
