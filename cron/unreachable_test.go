package cron_test

import (
	"context"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// A leader whose pool cannot reach the database, although its session can, gives the role
// up: another node runs the schedules.
func TestLeaderWhosePoolIsCutOffGivesUp(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newWorld(t)
	pool, network := w.PoolThroughNetwork()
	ran := make(chan string, 100)
	schedule := func(name string) cron.Schedule {
		return cron.Schedule{Name: "often", Expression: "@every 1s", Job: func(context.Context, cron.Run) error {
			ran <- name
			return nil
		}}
	}
	sick := w.Node("sick", tenure.Config{})
	w.runOn(pool, sick, cron.Config{}, schedule("sick"))
	if first := <-ran; first != "sick" {
		t.Fatalf("the first run was on %s", first)
	}
	w.run(w.Node("healthy", tenure.Config{}), cron.Config{}, schedule("healthy"))
	if err := network.Close(); err != nil {
		t.Fatal(err)
	}
	w.Await("a run on the healthy node", func() bool {
		select {
		case name := <-ran:
			return name == "healthy"
		default:
			return false
		}
	})
	const cause = `SELECT count(*) FROM {history} WHERE role = 'scheduler' AND end_cause LIKE '%work of the role cannot reach the database%'`
	if n := one[int](w, cause); n != 1 {
		t.Errorf("%d terms say that the database could not be reached, want 1", n)
	}
}
