package tenure_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
)

// Whatever happens to the nodes, none holds more locks of a group than its limit, and
// a role is led soon while a node has room.
func TestGroupKeepsItsLimitUnderRandomFaults(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runRandomGroup(t, rand.New(rand.NewPCG(seed, 17))) })
		})
	}
}

func runRandomGroup(t *testing.T, random *rand.Rand) {
	const count = 6
	limit, db := 1+random.IntN(3), newDatabase()
	db.prepare = func(c *conn) {
		c.onAcquire = func(tenure.Role) *tenure.AcquireResult {
			db.mu.Lock()
			defer db.mu.Unlock()
			held := 0
			for _, holder := range db.holders {
				if holder == c {
					held++
				}
			}
			if held >= limit {
				t.Errorf("a session that holds %d of %d roles asks for another one", held, limit)
			}
			return nil
		}
	}
	var nodes [][]*tenure.Election
	for range 4 {
		node := open(t, db, func(c *tenure.Config) { c.StopTimeout = 100 * time.Millisecond })
		t.Cleanup(func() { closeNode(t, node) })
		var grace time.Duration
		if random.IntN(2) == 0 {
			grace = time.Second
		}
		slots := slotElections(t, node, count, limit, func(c *tenure.ElectionConfig) { c.ReconnectGrace = grace })
		startAll(t, slots)
		nodes = append(nodes, slots)
	}
	check := func(what string) {
		for i, slots := range nodes {
			if leading := leadingTogether(slots); leading > limit {
				t.Errorf("%s: node %d leads %d roles; the limit is %d", what, i, leading, limit)
			}
		}
	}
	for range 200 {
		disturb(t, random, db, nodes)
		check("after a fault")
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
		check("later")
	}
	for _, slots := range nodes {
		startAll(t, slots)
	}
	time.Sleep(3 * time.Second) // a reconnect grace, a pause after a step-down
	check("at the end")
	leading := 0
	for _, slots := range nodes {
		for _, e := range slots {
			if e.IsLeader() {
				leading++
			}
		}
	}
	want(t, "roles led at the end", leading, min(count, limit*len(nodes)))
}

// leadingTogether returns how many of the elections led at one moment: a term that is valid
// before and after all terms were read was valid between. A role may be released, and
// another one acquired, while they are read.
func leadingTogether(elections []*tenure.Election) int {
	var terms []*tenure.Term
	for _, e := range elections {
		if term := e.Term(); term != nil {
			terms = append(terms, term)
		}
	}
	return len(slices.DeleteFunc(terms, func(term *tenure.Term) bool { return !term.Valid() }))
}

// disturb lets one thing happen to one node.
func disturb(t *testing.T, random *rand.Rand, db *database, nodes [][]*tenure.Election) {
	slots := nodes[random.IntN(len(nodes))]
	e := slots[random.IntN(len(slots))]
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	switch random.IntN(5) {
	case 0:
		db.mu.Lock()
		c := db.sessions[random.IntN(len(db.sessions))]
		db.mu.Unlock()
		c.kill()
	case 1:
		_ = e.StepDown(ctx)
	case 2:
		_ = e.Shutdown(ctx)
	case 3:
		_ = e.Start(context.Background())
	case 4:
		if guard, err := e.Guard(); err == nil {
			time.AfterFunc(time.Duration(random.IntN(400))*time.Millisecond, guard.Done)
		}
	}
}
