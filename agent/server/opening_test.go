package server

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/internal/wire"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/tenuretest"
)

// slowBackend takes a while to open a session.
type slowBackend struct {
	*tenuretest.Database
	takes time.Duration
	took  []time.Duration // of each attempt
}

func (b *slowBackend) Open(ctx context.Context, options tenure.SessionOptions) (tenure.Session, error) {
	begun := time.Now()
	defer func() { b.took = append(b.took, time.Since(begun)) }()
	select {
	case <-time.After(b.takes):
		return b.Database.Open(ctx, options)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// keepSession runs an agent without its socket until a session is open or an hour has
// passed, and returns how long that took.
func keepSession(t *testing.T, backend tenure.Backend) (took time.Duration, opened bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	cfg := Config{Backend: backend, Path: "/socket", Logger: slog.New(slog.DiscardHandler)}.withDefaults()
	s := newServer(cfg, clocks.System(), wire.Now)
	began := time.Now()
	err := s.keepSession(ctx, func() {
		took, opened = time.Since(began), true
		cancel()
	})
	if !opened {
		took = time.Since(began)
	}
	s.closeAll()
	s.group.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return took, opened
}

// Opening may take longer the longer that lasts, as in a node: a session is open within
// three times as long as an opening takes that has enough time.
func TestAgentOpensSessionOnSlowServer(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{5 * time.Second, 12 * time.Second, 50 * time.Second, 100 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			took, opened := keepSession(t, &slowBackend{Database: tenuretest.NewDatabase(), takes: takes})
			if most := 3 * takes; !opened || took > most {
				t.Errorf("a session that takes %v to open: got opened %t after %v, want true within %v", takes, opened, took, most)
			}
		})
	}
}

// An attempt to open a session may take 10 s, and up to 2 min if attempts take too long.
func TestAgentGivesUpServerThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		backend := &slowBackend{Database: tenuretest.NewDatabase(), takes: 24 * time.Hour}
		if _, opened := keepSession(t, backend); opened {
			t.Fatal("a session was opened on a server that hangs")
		}
		took := backend.took[:len(backend.took)-1] // the end of the hour ended the last one
		first, last := took[0], took[len(took)-1]
		if first != 10*time.Second || last != 2*time.Minute || !slices.IsSorted(took) {
			t.Errorf("got attempts of %v, want 10s to 2m0s", took)
		}
	})
}
