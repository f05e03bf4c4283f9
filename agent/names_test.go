//go:build linux

package agent_test

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent"
	"github.com/exactly-one/tenure/agent/server"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/tenuretest"
)

// The records, and those who observe the role directly or through the agent, have the name of
// the node that leads, and the name of its agent beside it.
func TestLeaderBehindAnAgentHasItsName(t *testing.T) {
	t.Parallel()
	db := tenuretest.NewDatabase()
	path := startAgent(t, server.Config{Backend: db, Name: "host-1"})
	node, err := tenure.Open(t.Context(), agent.New(path), tenure.Config{Name: "billing-3", Lease: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = node.Close(t.Context()) }()
	observed := map[string]<-chan tenure.LeaderChange{
		"directly":          tenure.Observe(t.Context(), db, tenure.Config{}, tenure.NamedRole("billing")),
		"through the agent": tenure.Observe(t.Context(), agent.New(path), tenure.Config{}, tenure.NamedRole("billing")),
	}
	election, err := node.Election(tenure.NamedRole("billing"))
	if err != nil {
		t.Fatal(err)
	}
	term, err := election.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = term.Resign(t.Context()) }() // the session is in memory
	leaders, err := db.Leaders(t.Context(), "billing")
	if err != nil || len(leaders) != 1 {
		t.Fatalf("%d leaders, %v; want one", len(leaders), err)
	}
	if l := leaders[0]; l.NodeName != "billing-3" || l.Agent != "host-1" {
		t.Errorf("billing is led by %q behind %q; want billing-3 behind host-1", l.NodeName, l.Agent)
	}
	for how, changes := range observed {
		change := testkit.Receive(t, changes, patience, "observed "+how+", no leader came")
		if l := change.Leader; l == nil || l.NodeName != "billing-3" || l.Agent != "host-1" {
			t.Errorf("observed %s, the leader is %+v; want billing-3 behind host-1", how, l)
		}
	}
}
