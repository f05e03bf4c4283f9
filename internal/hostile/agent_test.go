package hostile_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent"
	"github.com/exactly-one/tenure/agent/server"
	"github.com/exactly-one/tenure/internal/hostile"
)

// TestHostileServerHarmsNoAgent: whatever a server sends to an agent, the agent and its node
// neither panic nor lead without an acknowledgment, and end when they are asked to. Their
// socket is real, so the cases need real time.
func TestHostileServerHarmsNoAgent(t *testing.T) {
	recording := record(t)
	n := 60
	if testing.Short() {
		n = 8
	}
	var led atomic.Int64
	t.Run("cases", func(t *testing.T) {
		for i := range n {
			seed := *first + uint64(i)
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				runAgent(t, hostile.NewServer(recording, seed), &led)
			})
		}
	})
	if t.Logf("%d of %d nodes led", led.Load(), n); led.Load() == 0 {
		t.Error("no node led: the cases test too little")
	}
}

func runAgent(t *testing.T, database *hostile.Server, led *atomic.Int64) {
	socket := filepath.Join(t.TempDir(), "s")
	quiet := slog.New(slog.DiscardHandler)
	c := dial(t, database, database.DialSocket)
	defer c.backend.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	ended := make(chan struct{})
	go func() { // exits with ctx
		defer close(ended)
		_ = server.Run(ctx, server.Config{Backend: c.backend, Path: socket, Logger: quiet,
			Timing: tenure.Timing{Lease: lease, RefreshInterval: lease / 8, Margin: margin, CheckInterval: lease / 4, FailoverWait: lease}}, nil)
	}()
	if node, err := tenure.Open(ctx, agent.New(socket), tenure.Config{Name: "victim", Lease: lease, Margin: margin, RefreshInterval: lease / 4, Logger: quiet}); err == nil {
		leadThroughAgent(ctx, t, node, database, led)
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(bound):
		t.Errorf("the agent has not ended after %v: %v", bound, database)
	}
}

// leadThroughAgent campaigns until ctx ends.
func leadThroughAgent(ctx context.Context, t *testing.T, node *tenure.Node, database *hostile.Server, led *atomic.Int64) {
	election, err := node.Election(tenure.NamedRole("billing"))
	if err != nil {
		t.Fatal(err)
	}
	if err := election.Start(ctx); err != nil {
		t.Fatal(err)
	}
	looks := time.NewTicker(lease / 40)
	defer looks.Stop()
	before := false
	for ctx.Err() == nil {
		<-looks.C
		at := time.Now()
		leads := election.IsLeader()
		if leads && !database.MayLead(at, lease-margin) {
			t.Fatalf("the node leads without an acknowledgment: %v", database)
		}
		if leads && !before {
			before = true
			led.Add(1)
		}
	}
	closing, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if err := node.Close(closing); err != nil && closing.Err() != nil {
		t.Errorf("the node has not closed after %v: %v", bound, database)
	}
}
