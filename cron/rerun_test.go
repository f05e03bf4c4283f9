package cron_test

import (
	"errors"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/postgrestest"
)

// TestSecondRunDoesNotEndTheFirst: a second Run is refused, and Add still is, because the
// term of the first Run would not run the schedule.
func TestSecondRunDoesNotEndTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	scheduler, err := cron.New(w.Node("a", tenure.Config{}), w.pool, cron.Config{Role: tenure.NamedRole("scheduler")})
	if err != nil {
		t.Fatal(err)
	}
	if err := scheduler.Add(cron.Schedule{Name: "first", Expression: "@daily", Job: nothing}); err != nil {
		t.Fatal(err)
	}
	postgrestest.Run(t, scheduler.Run)
	w.Await("the schedule", func() bool { return one[int](w, `SELECT count(*) FROM {schedules}`) == 1 })

	if err := scheduler.Run(t.Context()); err == nil {
		t.Error("a second Run returned no error")
	}
	late := cron.Schedule{Name: "late", Expression: "@daily", Job: nothing}
	if err := scheduler.Add(late); !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Errorf("Add during the first Run: %v; want ErrInvalidConfig", err)
	}
}
