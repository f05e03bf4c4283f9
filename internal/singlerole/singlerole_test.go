package singlerole_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/singlerole"
	"github.com/exactly-one/tenure/tenuretest"
)

var billing = tenure.NamedRole("billing")

func quiet() singlerole.Config {
	return singlerole.Config{Node: tenure.Config{Logger: slog.New(slog.DiscardHandler)}}
}

// requireClosed fails the test if the role has a leader or a node has not left.
func requireClosed(t *testing.T, db *tenuretest.Database) {
	t.Helper()
	leaders, err := db.Leaders(t.Context())
	if err != nil || len(leaders) > 0 {
		t.Errorf("leaders %v, error %v", leaders, err)
	}
	members, err := db.Members(t.Context())
	for _, member := range members {
		if member.Status != tenure.StatusDead {
			t.Errorf("node %s has not left", member.Name)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

func TestRunResignsAndClosesWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		ctx, cancel := context.WithCancel(t.Context())
		err := singlerole.Run(ctx, db, billing, quiet(), func(ctx context.Context, term *tenure.Term) error {
			if err := db.Fence(term); err != nil {
				t.Error(err)
			}
			cancel()
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, tenure.ErrStopping) {
				t.Errorf("the term ended because of %v", cause)
			}
			return ctx.Err()
		})
		if err != nil {
			t.Error(err)
		}
		requireClosed(t, db)
	})
}

func TestRunLeadsAgainAfterErrorsUntilDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		var last int64
		terms := 0
		err := singlerole.Run(t.Context(), db, billing, quiet(), func(_ context.Context, term *tenure.Term) error {
			if term.Number() <= last {
				t.Errorf("term %d after term %d", term.Number(), last)
			}
			last = term.Number()
			if terms++; terms == 3 {
				return tenure.Done
			}
			return errors.New("the printer is on fire")
		})
		if err != nil || terms != 3 {
			t.Errorf("%d terms, error %v", terms, err)
		}
		requireClosed(t, db)
	})
}

func TestRunClosesIfWorkPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		func() {
			defer func() {
				if recover() != "boom" {
					t.Error("the panic did not reach the caller")
				}
			}()
			_ = singlerole.Run(t.Context(), db, billing, quiet(), func(context.Context, *tenure.Term) error { panic("boom") })
		}()
		requireClosed(t, db)
	})
}

// A database that no longer answers delays the end by a lease and the close
// timeout at most.
func TestRunEndsInBoundedTimeWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		ctx, cancel := context.WithCancel(t.Context())
		var silent time.Time
		_ = singlerole.Run(ctx, db, billing, quiet(), func(ctx context.Context, _ *tenure.Term) error {
			resume := db.Silence(billing)
			defer time.AfterFunc(time.Hour, resume)
			silent = time.Now()
			cancel()
			<-ctx.Done()
			return nil
		})
		if took := time.Since(silent); took > 20*time.Second {
			t.Errorf("it took %v to end", took)
		}
	})
}

// lingering is a database whose sessions end only when they are cut.
type lingering struct{ *tenuretest.Database }

func (l lingering) Open(ctx context.Context, options tenure.SessionOptions) (tenure.Session, error) {
	s, err := l.Database.Open(ctx, options)
	return &lingeringSession{Session: s, cut: make(chan struct{})}, err
}

type lingeringSession struct {
	tenure.Session
	once sync.Once
	cut  chan struct{}
}

func (s *lingeringSession) Close() error {
	<-s.cut
	return errors.New("the session was cut")
}

func (s *lingeringSession) Abort() {
	s.once.Do(func() { close(s.cut) })
	s.Session.Abort()
}

func TestNodeHasTenSecondsToLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := quiet()
		config.Node.Lease = 10 * time.Minute
		var ended time.Time
		err := singlerole.Run(t.Context(), lingering{tenuretest.NewDatabase()}, billing, config, func(context.Context, *tenure.Term) error {
			ended = time.Now()
			return tenure.Done
		})
		if took := time.Since(ended); took != 10*time.Second || !errors.Is(err, tenure.ErrShutdown) {
			t.Errorf("the node left after %v: %v; want ErrShutdown after 10s", took, err)
		}
	})
}

func TestRunNamesTheRoleInErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		db.Fail(tenure.ErrConnection)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := singlerole.Run(ctx, db, billing, quiet(), nil)
		if !errors.Is(err, tenure.ErrConnection) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without a database: %v", err)
		}
		t.Log(err)
		err = singlerole.Run(t.Context(), db, tenure.NamedRole(""), quiet(), nil)
		if !errors.Is(err, tenure.ErrInvalidRole) {
			t.Errorf("without a name: %v", err)
		}
	})
}
