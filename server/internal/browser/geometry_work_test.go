package browser

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
)

// failProcessors runs processors on a node: one has stopped at an event, one has dead letters, one
// tries again later, one is paused, and one works.
func (b *brokenCluster) failProcessors(node *tenure.Node) {
	b.Helper()
	store := eventstore.New(b.Installation.Backend, eventstore.Config{})
	group, err := processor.NewGroup(node, tenure.NamedRole(longName("role_of_processors", longestName)), b.pool, processor.GroupConfig{})
	if err != nil {
		b.Fatal(err)
	}
	refuse := func(failure error) func(context.Context, *tenure.Term, []processor.Event) (int, error) {
		return func(_ context.Context, _ *tenure.Term, batch []processor.Event) (int, error) {
			for i, event := range batch {
				if event.Type == "refused" && failure != nil {
					return i, failure
				}
			}
			return len(batch), nil
		}
	}
	for _, c := range []processor.Config{
		{Name: longProcessor, Kind: "outbox", Publish: refuse(errors.New(longError)), MaxAttempts: 3, Retry: retry.FixedInterval{Interval: 20 * time.Millisecond}},
		{Name: deadProcessor, Kind: "outbox", Publish: refuse(fmt.Errorf("%w: %s", processor.ErrPoison, longError)), Poison: processor.PoisonDeadLetter, Retry: retry.FixedInterval{Interval: 20 * time.Millisecond}},
		{Name: "receipts", Kind: "outbox", Publish: refuse(&processor.RetryAfterError{Delay: time.Hour, Err: errors.New(longError)})},
		{Name: "search-index", Publish: refuse(nil)},
		{Name: "invoices", Publish: refuse(nil)},
	} {
		c.Log = store.Log()
		if err := group.Add(c); err != nil {
			b.Fatal(err)
		}
	}
	postgrestest.Run(b, group.Run)
	var events []eventstore.NewEvent
	for i := range 24 {
		events = append(events, eventstore.NewEvent{Type: []string{"refused", "sent"}[i%2], Data: i})
	}
	if err := store.Append(b.Context(), b.pool, events...); err != nil {
		b.Fatal(err)
	}
	admin := processor.NewAdmin(b.Installation.Backend, b.pool)
	b.Await("the processors have failed", func() bool {
		letters, err := admin.DeadLetters(b.Context(), deadProcessor, 100)
		if err != nil || len(letters) < 12 {
			return false
		}
		stopped, err := admin.Show(b.Context(), longProcessor)
		if err != nil || stopped.Status != "failed" {
			return false
		}
		waits, err := admin.Show(b.Context(), "receipts")
		return err == nil && waits.LastError != ""
	})
	letters, err := admin.DeadLetters(b.Context(), deadProcessor, 100)
	if err == nil {
		_, err = admin.Dismiss(b.Context(), deadProcessor, []int64{letters[0].ID, letters[1].ID}, longUser)
	}
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"search-index", longProcessor} {
		if err := admin.Pause(b.Context(), name, longUser); err != nil {
			b.Fatal(err)
		}
	}
	if err := admin.Resume(b.Context(), longProcessor, longUser); err != nil {
		b.Fatal(err)
	}
	b.Await("the processor has failed again", func() bool {
		stopped, err := admin.Show(b.Context(), longProcessor)
		return err == nil && stopped.Status == "failed"
	})
}

// failSchedules runs schedules on a node. One fails each time, with an output.
func (b *brokenCluster) failSchedules(node *tenure.Node) {
	b.Helper()
	scheduler, err := cron.New(node, b.pool, cron.Config{Role: tenure.NamedRole(longName("role_of_schedules", longestName))})
	if err != nil {
		b.Fatal(err)
	}
	names := []string{longSchedule, "rotate-keys"}
	for i := range 8 {
		names = append(names, fmt.Sprintf("report-%d", i+1))
	}
	for _, name := range names {
		schedule := cron.Schedule{Name: name, Expression: "30 2 1 1 *", Zone: "America/Argentina/ComodRivadavia", Job: func(context.Context, cron.Run) error { return nil }}
		if name == longSchedule {
			schedule.Expression = "5,10,15,20,25,30,35,40,45,50,55 0,2,4,6,8,10,12,14,16,18,20,22 1 1 *"
			schedule.Job = func(_ context.Context, run cron.Run) error {
				_, _ = fmt.Fprintln(run.Output(), strings.Repeat(longError+"\n", 20)) // it keeps all of that
				return errors.New(longError)
			}
		}
		if err := scheduler.Add(schedule); err != nil {
			b.Fatal(err)
		}
	}
	postgrestest.Run(b, scheduler.Run)
	admin := cron.NewAdmin(b.Installation.Backend, b.pool)
	b.Await("the schedules are loaded", func() bool {
		all, err := admin.List(b.Context())
		return err == nil && len(all) == len(names)
	})
	for i, name := range append([]string{longSchedule, longSchedule, longSchedule, longSchedule}, names[1:6]...) {
		if _, err := admin.Trigger(b.Context(), name, longUser); err != nil {
			b.Fatal(err)
		}
		b.Await("the run has ended", func() bool {
			return postgrestest.Value[int64](b.Installation, "SELECT count(*) FROM {runs} WHERE ended_at IS NOT NULL") == int64(i+1)
		})
	}
	if err := admin.Pause(b.Context(), "rotate-keys", longUser); err != nil {
		b.Fatal(err)
	}
}
