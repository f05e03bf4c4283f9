//go:build linux

package trace_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent"
	"github.com/exactly-one/tenure/agent/server"
	"github.com/exactly-one/tenure/internal/steplog"
	"github.com/exactly-one/tenure/internal/steps"
	"github.com/exactly-one/tenure/lab/model/trace"
	"github.com/exactly-one/tenure/tenuretest"
)

// recorded are the steps of all nodes and agents of this process.
type recorded struct {
	mu    sync.Mutex
	began time.Time
	steps []steps.Step
}

func (r *recorded) Record(s steps.Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.At = time.Since(r.began); s.Kind == steps.GetsAnswer {
		s.Trust = s.Left()
	}
	r.steps = append(r.steps, s)
}

// An agent is asked to end while one of its nodes works. The models allow each step.
func TestModelsAllowTheStepsOfAnAgent(t *testing.T) {
	t.Parallel()
	folder, err := os.MkdirTemp("", "agent") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	all := &recorded{began: time.Now()}
	ctx, quiet := steps.With(t.Context(), all), slog.New(slog.DiscardHandler)
	serving, end := context.WithCancel(ctx)
	ready, done := make(chan struct{}), make(chan error, 1)
	path := filepath.Join(folder, "socket")
	go func() { // exits after end; done shows it
		done <- server.Run(serving, server.Config{
			Backend: tenuretest.NewDatabase(), Path: path, Logger: quiet, Timing: tenure.Timing{Lease: 10 * time.Second, Margin: time.Second},
		}, func() { close(ready) })
	}()
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	node, err := tenure.Open(ctx, agent.New(path), tenure.Config{Lease: time.Minute, RefreshInterval: time.Second, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	election, err := node.Election(tenure.NamedRole("r"))
	if err != nil {
		t.Fatal(err)
	}
	working, running := context.WithCancel(t.Context())
	go func() { // exits when working ends, which the test waits for
		_ = election.Run(working, func(ctx context.Context, _ *tenure.Term) error {
			end()
			<-ctx.Done()
			time.Sleep(100 * time.Millisecond) // the work takes time to return
			running()
			return tenure.Done
		})
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
	<-working.Done()
	closing, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = node.Close(closing) // it has no agent

	var stored bytes.Buffer
	if err := steplog.Write(&stored, steplog.Header{Nodes: true, Blur: steplog.Blur}, all.steps); err != nil {
		t.Fatal(err)
	}
	if _, err := trace.Replay(&stored); err != nil {
		t.Error(err)
	}
	for _, kind := range []steps.Kind{steps.AgentGetsAnswer, steps.GetsAnswer, steps.Leads, steps.WorkReturns, steps.AgentReleases, steps.AgentCloses} {
		if !slices.ContainsFunc(all.steps, func(s steps.Step) bool { return s.Kind == kind }) {
			t.Errorf("no step says: %s", kind)
		}
	}
}
