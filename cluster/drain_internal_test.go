package cluster

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/tenuretest"
)

// The hook that prepares the handover of roles runs when work in flight has ended and
// before a role is released; if it fails, the roles are resigned.
func TestReleaseHooksRunBeforeRelease(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	m, err := Join(ctx, tenuretest.NewDatabase(), tenure.Config{Logger: slog.New(slog.DiscardHandler)}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	e, err := m.Node().Election(tenure.NamedRole("r"))
	if err == nil {
		err = e.Start(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	term, err := e.WaitForLeadership(ctx)
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	remove := m.beforeRelease(func(context.Context) error {
		runs++
		if !term.Valid() || m.InFlight().Count() != 0 || m.AcceptsWork() {
			t.Errorf("term trusted %v, %d in flight, accepts work %v", term.Valid(), m.InFlight().Count(), m.AcceptsWork())
		}
		return errors.New("no node can take it")
	})
	guard, _ := m.InFlight().Enter()
	stop := m.Node().Clock().AfterFunc(50*time.Millisecond, guard.Done)
	defer stop()
	for range 2 {
		if err := m.Drain(ctx); err != nil {
			t.Fatal(err)
		}
		if e.IsLeader() {
			t.Error("the role was kept")
		}
		if err := m.Undrain(ctx); err != nil {
			t.Fatal(err)
		}
		remove()
	}
	if runs != 1 {
		t.Errorf("it ran %d times; want once, before it was removed", runs)
	}
}

// An undrain that is interrupted, as by the next request, does not leave a drain behind
// that was canceled: the next one would wait for that and fail.
func TestInterruptedUndrainUndrains(t *testing.T) {
	t.Parallel()
	m, err := Join(t.Context(), tenuretest.NewDatabase(), tenure.Config{Logger: slog.New(slog.DiscardHandler)}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	guard, _ := m.InFlight().Enter()
	if err := m.Drain(interrupted); !errors.Is(err, tenure.ErrShutdown) {
		t.Fatalf("Drain: %v", err) // it continues
	}
	if err := m.Undrain(interrupted); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatalf("Undrain: %v", err)
	}
	if !m.AcceptsWork() {
		t.Errorf("the node is %s and refuses work: %v", m.Node().Description().Status, m.InFlight().Draining())
	}
	guard.Done()
	if err := m.Drain(t.Context()); err != nil {
		t.Errorf("the next drain: %v", err)
	}
}
