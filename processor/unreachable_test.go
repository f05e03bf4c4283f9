package processor_test

import (
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/processor"
)

// A leader whose pool cannot reach the database, although its session can, gives the role
// up: another node handles the events.
func TestLeaderWhosePoolIsCutOffGivesUp(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newWorld(t)
	pool, network := w.PoolThroughNetwork()
	config := processor.Config{Name: "counts", Handle: w.fill}
	w.append(1)
	w.groupIn(pool, w.Node("sick", tenure.Config{}), config)
	w.Await("the first event", func() bool { return len(w.numbers()) == 1 })
	w.group(w.Node("healthy", tenure.Config{}), config)
	if err := network.Close(); err != nil {
		t.Fatal(err)
	}
	w.append(2)
	w.Await("a node that handles the second event", func() bool { return len(w.numbers()) == 2 })
}
