// Package logqueue keeps logs from delaying the program, even if their handlers block,
// panic or end their goroutine.
package logqueue

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/usercode"
)

const (
	// capacity is how many records wait for a slow log. Later ones are dropped
	// and counted.
	capacity = 8192
	// longestFlush bounds the wait for the last records.
	longestFlush = 2 * time.Second
)

// Queue writes log records, in order, on a separate goroutine. If a handler is slow,
// blocks forever, panics or ends its goroutine, only the log is delayed. The goroutine
// exists while there are records to write; Flush waits for it.
type Queue struct {
	root  slog.Handler // decides whether debug records are wanted
	debug atomic.Bool  // the last decision of root

	mu      sync.Mutex // a leaf: held only for the fields below, never while a handler runs
	waiting []entry
	dropped int
	writing bool
	idle    chan struct{} // closed when all records are written; nil unless Flush waits
}

// entry is a record with its handler.
type entry struct {
	ctx     context.Context
	handler slog.Handler
	record  slog.Record
}

// New returns a never blocking logger, and its queue.
func New(logger *slog.Logger) (*slog.Logger, *Queue) {
	q := &Queue{root: logger.Handler()}
	q.updateDebug()
	return slog.New(&queueHandler{q, q.root}), q
}

// queueHandler is a slog.Handler in front of a Queue.
type queueHandler struct {
	queue *Queue
	next  slog.Handler
}

// Enabled implements slog.Handler. It does not call the next handler, because it may
// block; write does.
func (h *queueHandler) Enabled(_ context.Context, level slog.Level) bool {
	if level >= slog.LevelInfo || h.queue.debug.Load() {
		return true
	}
	h.queue.wake() // to update debug for later records
	return false
}

// Handle implements slog.Handler.
func (h *queueHandler) Handle(ctx context.Context, record slog.Record) error {
	h.queue.add(entry{ctx, h.next, record.Clone()})
	return nil
}

// WithAttrs implements slog.Handler.
func (h *queueHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &queueHandler{h.queue, h.next.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h *queueHandler) WithGroup(name string) slog.Handler {
	return &queueHandler{h.queue, h.next.WithGroup(name)}
}

func (q *Queue) add(r entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= capacity {
		q.dropped++
		return
	}
	q.waiting = append(q.waiting, r)
	q.startLocked()
}

func (q *Queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.startLocked()
}

func (q *Queue) startLocked() {
	if !q.writing {
		q.writing = true
		go q.run() // exits when no record waits; Flush waits for it
	}
}

// takeBatch returns the waiting records, or marks the end of the goroutine if
// there are none.
func (q *Queue) takeBatch() (batch []entry, dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	batch, dropped = q.waiting, q.dropped
	q.waiting, q.dropped = nil, 0
	if len(batch) == 0 && dropped == 0 {
		q.writing = false
		if q.idle != nil {
			close(q.idle)
			q.idle = nil
		}
	}
	return batch, dropped
}

func (q *Queue) run() {
	for {
		q.updateDebug()
		batch, dropped := q.takeBatch()
		if len(batch) == 0 && dropped == 0 {
			return
		}
		dropped += writeBatch(batch)
		if dropped > 0 {
			lost := slog.NewRecord(time.Now(), slog.LevelWarn, "log records were lost: the log was too slow or failed", 0)
			lost.AddAttrs(slog.Int("records", dropped))
			_ = writeBatch([]entry{{context.Background(), q.root, lost}})
		}
	}
}

// updateDebug asks the handler whether debug records are wanted.
func (q *Queue) updateDebug() {
	// After a panic of the handler, the last decision stays.
	_, _ = usercode.Call(func() { q.debug.Store(q.root.Enabled(context.Background(), slog.LevelDebug)) })
}

// writeBatch passes the records to their handlers and returns for how many of them the
// handler did not return.
func writeBatch(batch []entry) (failed int) {
	for next := 0; next < len(batch); {
		reason, _ := usercode.Call(func() {
			for next < len(batch) {
				next++
				batch[next-1].write()
			}
		})
		if reason != nil {
			failed++
		}
	}
	return failed
}

// write passes the record to its handler.
func (r entry) write() {
	if r.handler.Enabled(r.ctx, r.record.Level) {
		_ = r.handler.Handle(r.ctx, r.record) // as slog.Logger does
	}
}

// Flush returns when all records are written, ctx ends, or 2 s have passed: a
// handler may never return.
func (q *Queue) Flush(ctx context.Context, clock clocks.Clock) {
	q.mu.Lock()
	if !q.writing {
		q.mu.Unlock()
		return
	}
	if q.idle == nil {
		q.idle = make(chan struct{})
	}
	idle := q.idle
	q.mu.Unlock()
	late := make(chan struct{})
	defer clock.AfterFunc(longestFlush, func() { close(late) })()
	select {
	case <-idle:
	case <-late:
	case <-ctx.Done():
	}
}
