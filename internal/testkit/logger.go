package testkit

import (
	"io"
	"log/slog"
	"sync"
	"testing"
)

// Logger returns a logger to [Output].
func Logger(t testing.TB) *slog.Logger { return slog.New(slog.NewTextHandler(Output(t), nil)) }

// Output returns a writer of lines of the test's log. Lines that come after the end of the
// test are dropped.
func Output(t testing.TB) io.Writer { return &output{t: t} }

type output struct {
	mu sync.Mutex
	t  testing.TB
}

func (o *output) Write(line []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.t.Context().Err() != nil {
		return io.Discard.Write(line)
	}
	o.t.Logf("%s", line)
	return len(line), nil
}
