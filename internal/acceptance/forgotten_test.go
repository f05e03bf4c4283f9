package acceptance_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// A node that leads thousands of roles, each for a moment, and forgets their elections
// keeps only what its session remembers of a role: its name and its key.
func TestForgottenElectionsLeaveNoMemory(t *testing.T) {
	pgtest.Long(t)
	const roles, most = 3000, 200 // bytes for each role
	c := newCluster(t)
	c.migrate()
	backend, err := postgres.New(c.dsn, c.db)
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	node, err := tenure.Open(c.checks.steps.Of(t.Context()), backend, c.config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = node.Close(t.Context()) }()
	lead := func(name string) {
		election, err := node.Election(tenure.NamedRole(name))
		if err != nil {
			t.Fatal(err)
		}
		term, err := election.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := term.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := election.Forget(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 { // for what is allocated once
		lead(fmt.Sprintf("first %d", i))
	}
	before := heap()
	for i := range roles {
		lead(fmt.Sprintf("job %d", i))
	}
	each := (heap() - before) / roles
	t.Logf("%d bytes for each forgotten role", each)
	if each > most {
		t.Errorf("a forgotten role takes %d bytes; want at most %d", each, most)
	}
	if left := len(node.Elections()); left > 0 {
		t.Errorf("the node has %d elections; want none", left)
	}
}

// heap returns how many bytes the heap has in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
