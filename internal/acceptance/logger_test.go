package acceptance_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
)

// stalledLog is a log whose reader stops reading, as at the end of a full pipe.
type stalledLog struct {
	stalled atomic.Bool
	blocked atomic.Int64
	resume  chan struct{}
}

func (l *stalledLog) Enabled(context.Context, slog.Level) bool { return true }

func (l *stalledLog) Handle(context.Context, slog.Record) error {
	if l.stalled.Load() {
		l.blocked.Add(1)
		<-l.resume
	}
	return nil
}
func (l *stalledLog) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *stalledLog) WithGroup(string) slog.Handler      { return l }

// The leader's network stalls, and its log while the engine writes to it. The
// context of its term must have been canceled when its rival begins to lead; the
// checker of the cluster looks, too.
func TestStalledLogDoesNotDelayEndOfTerm(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s, log := newSilent(t), &stalledLog{resume: make(chan struct{})}
	c.db.Connect, c.config.Logger = s.connect, slog.New(log)
	leader := c.join("silent")
	c.db.Connect, c.config.Logger = nil, nil
	t.Cleanup(func() { close(log.resume) }) // before the nodes leave
	term := leader.leads()
	rival := c.join("rival")

	since := time.Now() // the last heartbeat was sent before
	s.fallSilent(last)
	log.stalled.Store(true)
	other, err := leader.Node.Election(tenure.NamedRole("other"))
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = other.Start(context.Background()) }() // its records stall
	rival.leadsWithin(lease+checkInterval, since)
	if term.Context().Err() == nil {
		t.Error("invariant 1: the context of the old term lives on while the rival leads")
	}
	if log.blocked.Load() == 0 {
		t.Error("the log did not stall")
	}
}
