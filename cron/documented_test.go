package cron_test

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
)

func TestLastHundredMissedTicksRunByDefault(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	schedule := cron.Schedule{Name: "hourly", Expression: hourly(), CatchUp: cron.CatchUpAll, Job: nothing}
	w.known(110*time.Hour, schedule)
	w.run(w.Node("a", tenure.Config{}), cron.Config{}, schedule)
	w.Await("all ticks", func() bool {
		states := w.states("hourly")
		return states[cron.Missed]+states[cron.Succeeded] >= 110
	})
	if got := w.states("hourly")[cron.Succeeded]; got != 100 {
		t.Errorf("%d missed ticks ran, want the last 100", got)
	}
}
