//go:build linux

package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent"
	"github.com/exactly-one/tenure/agent/internal/wire"
	"github.com/exactly-one/tenure/agent/server"
	"github.com/exactly-one/tenure/tenuretest"
)

// crowded is a database with more leaders than a message can hold.
type crowded struct{ *tenuretest.Database }

func (crowded) Leaders(context.Context, ...string) ([]tenure.Leader, error) {
	leaders := make([]tenure.Leader, 2*wire.MaxFrame/1024)
	for i := range leaders {
		leaders[i].NodeName = strings.Repeat("x", 1024)
	}
	return leaders, nil
}

// An answer that is too long is an error with a remedy, not a failed connection.
func TestTooManyLeadersAreReported(t *testing.T) {
	t.Parallel()
	path := startAgent(t, server.Config{Backend: crowded{tenuretest.NewDatabase()}})
	leaders, err := agent.New(path).Leaders(t.Context())
	if err == nil || errors.Is(err, tenure.ErrConnection) || !strings.Contains(err.Error(), "ask for fewer roles") {
		t.Errorf("got %d leaders and the error %v", len(leaders), err)
	}
}
