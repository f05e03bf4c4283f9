package cli

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/database"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/processor"
)

// Every command that reports on processors shows one that cannot read its log, and the lag
// says when it was measured, until the log can be read again.
func TestStuckProcessorIsShown(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	store := place.processors(t, processor.Config{
		Name: "counts", PollInterval: 10 * time.Millisecond, MaxPollInterval: 100 * time.Millisecond,
		Handle: func(context.Context, pgx.Tx, []processor.Event) error { return nil },
	})
	eventually(t, "the tables", func() bool { return invoke(t, place.with("processor", "list")...).code == console.ExitDone })
	place.awaitProcessor(t, "counts", "the processor", func(r record.Processor) bool { return r.Led })
	place.append(t, store, 1)
	place.awaitProcessor(t, "counts", "the event", func(r record.Processor) bool { return r.Processed == 1 })
	lag := func() (at time.Time, age float64) {
		var all record.Lags
		invoke(t, place.with("processor", "lag", "-o", "json")...).want(t, console.ExitDone).decode(t, &all)
		return time.Time(all.Processors[0].AsOf), all.Processors[0].AgeSeconds
	}
	problems := func() (kinds []string) {
		for _, p := range place.status(t).Problems {
			kinds = append(kinds, p.Kind)
		}
		return kinds
	}
	eventually(t, "a measurement", func() bool { at, _ := lag(); return !at.IsZero() })
	if severity := examine(t, console.ExitDone, place.with()...)[database.ProcessorsFinding]; severity != doctor.OK.String() {
		t.Errorf("the doctor finds %q on processors that work", severity)
	}

	i := place.installation(t)
	i.Exec("ALTER TABLE {events} RENAME COLUMN data TO contents")
	broken := postgrestest.Value[time.Time](i, "SELECT clock_timestamp()")
	place.awaitProcessor(t, "counts", "the error", func(r record.Processor) bool { return r.StuckErrors > 1 })
	text := invoke(t, place.with("processor", "list")...).want(t, console.ExitDone).stdout
	if !strings.Contains(text, "active, stuck") || !strings.Contains(text, "42703") {
		t.Errorf("tenure processor list: %s", text)
	}
	if text := invoke(t, place.with("processor", "show", "counts")...).want(t, console.ExitDone).stdout; !strings.Contains(text, "stuck            since") {
		t.Errorf("tenure processor show: %s", text)
	}
	if at, age := lag(); !at.Before(broken) || age <= 0 {
		t.Errorf("the log could not be read since %v, and the lag was measured at %v, %v s ago", broken, at, age)
	}
	if kinds := problems(); !slices.Contains(kinds, "stuck_processor") {
		t.Errorf("tenure status names %v", kinds)
	}
	if severity := examine(t, console.ExitDone, place.with()...)[database.ProcessorsFinding]; severity != doctor.Warning.String() {
		t.Errorf("the doctor finds %q on a processor that cannot work", severity)
	}

	i.Exec("ALTER TABLE {events} RENAME COLUMN contents TO data")
	place.awaitProcessor(t, "counts", "the end of the error", func(r record.Processor) bool { return r.StuckError == "" && r.StuckErrors == 0 })
	if kinds := problems(); slices.Contains(kinds, "stuck_processor") {
		t.Errorf("tenure status names %v after the processor works again", kinds)
	}
}
