//go:build linux

package agent_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent"
	"github.com/exactly-one/tenure/agent/server"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/tenuretest"
)

// blockedLog is a log whose handler does not return once it is blocked.
type blockedLog struct {
	blocked atomic.Bool
	ended   <-chan struct{}
}

func (*blockedLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *blockedLog) Handle(context.Context, slog.Record) error {
	if l.blocked.Load() {
		<-l.ended
	}
	return nil
}
func (l *blockedLog) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *blockedLog) WithGroup(string) slog.Handler      { return l }

// While the log of an agent blocks, the agent still releases the roles of a silent node,
// keeps the terms of the others, and replaces a session that was lost (Invariant 7).
func TestBlockedLogDelaysNoNode(t *testing.T) {
	t.Parallel()
	log, db := &blockedLog{ended: t.Context().Done()}, tenuretest.NewDatabase()
	path := startAgent(t, server.Config{Backend: db, Logger: slog.New(log)})
	const lease = 2 * time.Second // a busy machine must not miss it before the role is acquired
	silent := dialRaw(t, path)
	silent.open(lease)
	silent.acquire("first")
	log.blocked.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	node, err := tenure.Open(ctx, agent.New(path), tenure.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatalf("invariant 7: opening a node: %v", err)
	}
	defer postgrestest.Close(t, node)
	lead := func(role string) *tenure.Term {
		t.Helper()
		election, err := node.Election(tenure.NamedRole(role))
		if err != nil {
			t.Fatal(err)
		}
		term, err := election.Campaign(ctx)
		if err != nil {
			t.Fatalf("invariant 7: campaigning for %q: %v", role, err)
		}
		return term
	}
	term := lead("first") // the silent node's lease has expired
	db.Revoke(tenure.NamedRole("first"))
	<-term.Context().Done()
	if err := term.Resign(ctx); err != nil {
		t.Error(err)
	}
	term = lead("second")
	if err := term.Resign(ctx); err != nil {
		t.Error(err)
	}
}
