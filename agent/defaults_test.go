//go:build linux

package agent_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent"
	"github.com/exactly-one/tenure/agent/server"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/tenuretest"
)

// quickDatabase has a short default lease, like SQLite.
type quickDatabase struct{ *tenuretest.Database }

func (quickDatabase) DefaultLease() time.Duration { return 3 * time.Second }

// A node cannot know the default lease of its agent's database: with the default
// timings on both sides, it fits the agent on every database.
func TestNodeWithDefaultsFitsAgentOnEveryDatabase(t *testing.T) {
	t.Parallel()
	path := startAgent(t, server.Config{Backend: quickDatabase{tenuretest.NewDatabase()}})
	node, err := tenure.Open(t.Context(), agent.New(path), tenure.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatalf("a node with default timings: %v", err)
	}
	postgrestest.Close(t, node)
}
