package logqueue

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/exactly-one/tenure/clocks"
)

// gate is a handler that waits until it is opened.
type gate struct {
	slog.Handler
	open chan struct{}
}

func (g gate) Handle(ctx context.Context, r slog.Record) error {
	<-g.open
	if r.Message == "panic" {
		panic("on purpose")
	}
	return g.Handler.Handle(ctx, r)
}

func TestLogQueueNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		level := new(slog.LevelVar)
		handler := gate{slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}), make(chan struct{})}
		logger, queue := New(slog.New(handler))

		logger.Debug("not wanted")
		logger.Info("first", "a", 1)
		synctest.Wait() // in the handler
		logger.Info("second")
		logger.Info("panic")
		for range capacity + 5 {
			logger.Warn("many")
		}
		close(handler.open)
		queue.Flush(t.Context(), clocks.System())
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		// "second" and "panic" took two places; seven found none, and one panicked.
		if len(lines) != 1+1+capacity-2+1 {
			t.Errorf("%d lines", len(lines))
		}
		for i, wanted := range map[int]string{
			0: "level=INFO msg=first a=1", 1: "level=INFO msg=second", 2: "level=WARN msg=many",
			len(lines) - 1: `level=WARN msg="log records were lost: the log was too slow or failed" records=8`,
		} {
			if lines[i] != wanted {
				t.Errorf("line %d is %q, want %q", i, lines[i], wanted)
			}
		}

		out.Reset()
		level.Set(slog.LevelDebug)
		logger.Debug("the level is asked for")
		synctest.Wait()
		logger.Debug("wanted now")
		queue.Flush(t.Context(), clocks.System())
		if got := out.String(); got != "level=DEBUG msg=\"wanted now\"\n" {
			t.Errorf("after a change of the level: %q", got)
		}
	})
}

// Records of one goroutine keep their order, and none is lost while the queue
// has room.
func TestLogQueueKeepsOrder(t *testing.T) {
	var mu sync.Mutex
	last := map[int64]int64{}
	logger, queue := New(slog.New(handlerFunc(func(r slog.Record) {
		var from, number int64
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "from" {
				from = a.Value.Int64()
			} else {
				number = a.Value.Int64()
			}
			return true
		})
		mu.Lock()
		defer mu.Unlock()
		if number != last[from]+1 {
			t.Errorf("%d came after %d", number, last[from])
		}
		last[from] = number
	})))
	var group sync.WaitGroup
	for from := range 4 {
		group.Go(func() {
			for number := range capacity / 8 {
				logger.Info("x", "from", from, "number", number+1)
			}
		})
	}
	group.Wait()
	queue.Flush(t.Context(), clocks.System())
	mu.Lock()
	defer mu.Unlock()
	for from := range int64(4) {
		if last[from] != capacity/8 {
			t.Errorf("%d records of %d arrived", last[from], capacity/8)
		}
	}
}

type handlerFunc func(slog.Record)

func (handlerFunc) Enabled(context.Context, slog.Level) bool { return true }
func (h handlerFunc) Handle(_ context.Context, r slog.Record) error {
	h(r)
	return nil
}
func (h handlerFunc) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h handlerFunc) WithGroup(string) slog.Handler      { return h }
