package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/processor"
)

// processors runs processors on a separate node until the test ends.
func (p place) processors(t *testing.T, configs ...processor.Config) *eventstore.Store {
	t.Helper()
	i := p.installation(t)
	node := i.Node("api-1", tenure.Config{Logger: slog.New(slog.DiscardHandler)})
	group, err := processor.NewGroup(node, tenure.NamedRole("views"), i.Pool, processor.GroupConfig{})
	if err != nil {
		t.Fatal(err)
	}
	store := eventstore.New(i.Backend, eventstore.Config{})
	for _, config := range configs {
		config.Log = store.Log()
		if err := group.Add(config); err != nil {
			t.Fatal(err)
		}
	}
	postgrestest.Run(t, group.Run)
	return store
}

// append appends events whose data are numbers.
func (p place) append(t *testing.T, store *eventstore.Store, numbers ...int) {
	t.Helper()
	for _, number := range numbers {
		if err := store.Append(t.Context(), p.server.Pool(t), eventstore.NewEvent{Type: "counted", Data: number}); err != nil {
			t.Fatal(err)
		}
	}
}

// show reads a processor, zero if no leader has added it yet.
func (p place) show(t *testing.T, name string) record.Processor {
	t.Helper()
	var all record.Processors
	invoke(t, p.with("processor", "list", "-o", "json")...).want(t, console.ExitDone).decode(t, &all)
	for _, r := range all.Processors {
		if r.Processor == name {
			return r
		}
	}
	return record.Processor{}
}

// awaitProcessor waits until a processor is as it should be.
func (p place) awaitProcessor(t *testing.T, name, what string, is func(record.Processor) bool) {
	t.Helper()
	var last record.Processor
	defer func() {
		if t.Failed() {
			t.Logf("%+v", last)
		}
	}()
	eventually(t, what, func() bool { last = p.show(t, name); return is(last) })
}

// Each command has its effect, and its requester is recorded.
func TestProcessorCommandsRecordRequester(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	var handled, emptied atomic.Int64
	var broken atomic.Bool
	broken.Store(true)
	store := place.processors(t, processor.Config{
		Name: "counts", MaxAttempts: 1, PollInterval: 10 * time.Millisecond,
		Handle: func(_ context.Context, _ pgx.Tx, batch []processor.Event) error {
			for _, event := range batch {
				if string(event.Data) == "13" && broken.Load() {
					return errors.New("13 is unlucky")
				}
			}
			handled.Add(int64(len(batch)))
			return nil
		},
		Reset: func(context.Context, pgx.Tx) error { emptied.Add(1); return nil },
	})
	on := func(args ...string) result {
		t.Helper()
		return invoke(t, place.with(append([]string{"processor"}, args...)...)...).want(t, console.ExitDone)
	}
	changed := func(args ...string) (r record.Processor) {
		t.Helper()
		on(append(args, "--by", "ann", "-o", "json")...).decode(t, &r)
		return r
	}
	eventually(t, "the tables", func() bool { return invoke(t, place.with("processor", "list")...).code == console.ExitDone })
	place.awaitProcessor(t, "counts", "the processor", func(r record.Processor) bool { return r.Led })

	place.append(t, store, 1, 2)
	place.awaitProcessor(t, "counts", "the first events", func(r record.Processor) bool { return r.Processed == 2 })
	if r := changed("pause", "counts"); r.Status != "paused" || r.Busy {
		t.Errorf("%+v", r)
	}
	place.append(t, store, 13)
	if r := changed("resume", "counts"); r.Status == "paused" { // it may have failed already
		t.Errorf("%+v", r)
	}
	place.awaitProcessor(t, "counts", "the failure", func(r record.Processor) bool { return r.Status == "failed" && r.Failing != nil })
	if text := on("show", "counts").stdout; !strings.Contains(text, "13 is unlucky") || !strings.Contains(text, "api-1 leads") {
		t.Errorf("%s", text)
	}
	if text := on("list").stdout; !strings.Contains(text, "failed") || !strings.Contains(text, "api-1*") {
		t.Errorf("%s", text)
	}
	changed("retry", "counts")
	place.awaitProcessor(t, "counts", "another failure", func(r record.Processor) bool { return r.Status == "failed" && r.Failing != nil })
	failing := *place.show(t, "counts").Failing
	var skipped record.SkippedEvent
	on("skip", "counts", "--yes", "--by", "ann", "-o", "json").decode(t, &skipped)
	if skipped != (record.SkippedEvent{Processor: "counts", Skipped: failing}) {
		t.Errorf("%+v; want %s", skipped, failing)
	}
	on("skip", "counts", "--at", failing, "--yes", "--by", "ann", "-o", "json").decode(t, &skipped)
	if skipped != (record.SkippedEvent{Processor: "counts", Skipped: failing}) {
		t.Errorf("skipped again: %+v; want %s and nothing else", skipped, failing)
	}
	place.awaitProcessor(t, "counts", "the end of the failure", func(r record.Processor) bool {
		return r.Status == "active" && r.Cursor == failing && r.DeadLetters == 1
	})

	var letters record.DeadLetters
	on("dead-letters", "counts", "-o", "json").decode(t, &letters)
	if len(letters.DeadLetters) != 1 || letters.DeadLetters[0].Event != failing || letters.DeadLetters[0].SkippedBy != "ann" {
		t.Fatalf("%+v", letters)
	}
	if text := on("dead-letters", "counts").stdout; !strings.Contains(text, "13 is unlucky") {
		t.Errorf("%s", text)
	}
	if text := on("dismiss", "counts", "--all", "--by", "ann").stdout; text != "dismissed dead letters: 1\n" {
		t.Errorf("%q", text)
	}
	on("dead-letters", "counts", "-o", "json").decode(t, &letters)
	if place.show(t, "counts").DeadLetters != 0 || len(letters.DeadLetters) != 1 || letters.DeadLetters[0].DismissedBy != "ann" {
		t.Errorf("after a dismissal: %+v", letters)
	}
	if text := on("dead-letters", "counts").stdout; !strings.Contains(text, "DISMISSED BY") || strings.Count(text, "ann") < 2 {
		t.Errorf("%s", text)
	}
	broken.Store(false)
	if text := on("replay", "counts", fmt.Sprint(letters.DeadLetters[0].ID), "--by", "ann").stdout; text != "dead letters to be replayed: 1\n" {
		t.Errorf("%q", text)
	}
	place.awaitProcessor(t, "counts", "the replay", func(r record.Processor) bool { return r.DeadLetters == 0 })
	var none record.ReplayedLetters
	on("replay", "counts", "--all", "--by", "ann", "-o", "json").decode(t, &none)
	if none != (record.ReplayedLetters{Processor: "counts"}) {
		t.Errorf("%+v", none)
	}

	before := handled.Load()
	changed("rewind", "counts", "--to", "start", "--yes")
	eventually(t, "the events again", func() bool { return handled.Load() == before+3 })
	place.awaitProcessor(t, "counts", "the end", func(r record.Processor) bool { return r.Cursor == failing })
	changed("rebuild", "counts", "--yes")
	eventually(t, "the rebuild", func() bool { return emptied.Load() == 1 && handled.Load() == before+6 })
	var repaired record.RepairedLog
	on("repair", "counts", "--yes", "--by", "ann", "-o", "json").decode(t, &repaired)
	if !strings.Contains(repaired.Table, "tenure_events") || repaired.Events != 0 || len(repaired.Processors) != 0 {
		t.Errorf("%+v", repaired)
	}

	var actions []string
	for _, c := range slices.Backward(place.actions(t, "counts")) {
		actions = append(actions, c.Action)
		if c.By != "ann" {
			t.Errorf("%+v", c)
		}
	}
	if want := []string{"pause", "resume", "retry", "skip", "dismiss", "replay", "rewind", "rebuild"}; !slices.Equal(actions, want) {
		t.Errorf("%q; want %q", actions, want)
	}
	for _, args := range [][]string{{"show", "count"}, {"lag", "counts", "count"}, {"pause", "count"}} {
		got := invoke(t, place.with(append([]string{"processor"}, args...)...)...).want(t, console.ExitUsage)
		if got.stderr != "tenure: there is no processor \"count\"; did you mean \"counts\"?\n" {
			t.Errorf("%q: %q", args, got.stderr)
		}
	}
	if got := offered(t, append(place.with("processor", "show"), "")...); !slices.Equal(got, []string{"counts"}) {
		t.Errorf("completion: %q", got)
	}
	if got := offered(t, append(place.with("processor", "rewind", "counts"), "--to", "")...); slices.Contains(got, "api-1") {
		t.Errorf("completion of a place: %q", got)
	}
}

// Events that wait for an old transaction are counted separately, and the
// transaction is named.
func TestProcessorLagNamesOldTransaction(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{}) // the transactions of other tests would hold the horizon
	place := place{server, server.Schema(t)}
	store := place.processors(t, processor.Config{
		Name: "counts", PollInterval: 10 * time.Millisecond, MaxPollInterval: 10 * time.Millisecond,
		Handle: func(context.Context, pgx.Tx, []processor.Event) error { return nil },
	})
	conn := place.server.Conn(t)
	var pid int
	if err := conn.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the tables", func() bool { return invoke(t, place.with("processor", "list")...).code == console.ExitDone })
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, tx, "SELECT pg_current_xact_id()")
	place.append(t, store, 1, 2)
	var lags record.Lags
	eventually(t, "the lag", func() bool {
		lags = record.Lags{}
		invoke(t, place.with("processor", "lag", "-o", "json")...).want(t, console.ExitDone).decode(t, &lags)
		return len(lags.Processors) == 1 && lags.Processors[0].Held == 2
	})
	if l := lags.Processors[0]; l.Processor != "counts" || !l.Led || l.Behind != 2 || l.More || l.WaitingSeconds <= 0 {
		t.Errorf("%+v", l)
	}
	if age := time.Since(time.Time(lags.Processors[0].AsOf)); age > 15*time.Second || age < -time.Second { // measured every 5 s
		t.Errorf("the lag is %v old", age)
	}
	if h := lags.Horizon; len(h.Holders) == 0 || h.Holders[0].PID != pid || h.AgeSeconds <= 0 || h.Holders[0].State != "idle in transaction" {
		t.Errorf("%+v", h)
	}
	text := invoke(t, place.with("processor", "lag", "counts")...).want(t, console.ExitDone).stdout
	if !strings.Contains(text, "held by PID "+fmt.Sprint(pid)) || !strings.Contains(text, "counts     yes  2       2") {
		t.Errorf("%s", text)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	place.awaitProcessor(t, "counts", "the events", func(r record.Processor) bool { return r.Processed == 2 })
	eventually(t, "the end of the lag", func() bool {
		text = invoke(t, place.with("processor", "lag")...).want(t, console.ExitDone).stdout
		return strings.Contains(text, "counts     yes  0       0")
	})
	if !strings.Contains(text, "no transaction holds the horizon") {
		t.Errorf("%s", text)
	}
}

// The exit code reports the timeout, and the processor stays paused.
func TestPauseTimeoutKeepsPause(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	entered, release := make(chan struct{}, 1), make(chan struct{})
	store := place.processors(t, processor.Config{
		Name: "counts", PollInterval: 10 * time.Millisecond,
		Handle: func(context.Context, pgx.Tx, []processor.Event) error {
			entered <- struct{}{}
			<-release
			return nil
		},
	})
	place.append(t, store, 1)
	<-entered
	got := invoke(t, place.with("processor", "pause", "counts", "--timeout", "2s")...).want(t, console.ExitNotAcquired)
	if !strings.Contains(got.stderr, "a batch is still in flight") {
		t.Errorf("%q", got.stderr)
	}
	if r := place.show(t, "counts"); r.Status != "paused" || !r.Busy {
		t.Errorf("%+v", r)
	}
	close(release)
	invoke(t, place.with("processor", "pause", "counts")...).want(t, console.ExitDone)
}

// Bad input is reported in one line, with exit code 2.
func TestProcessorRejectsBadInput(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	on := place.with
	for want, args := range map[string][]string{
		"name the processor":               on("pause"),
		"one processor, but got 2":         on("show", "a", "b"),
		"--by is empty":                    on("retry", "a", "--by", ""),
		"--to is missing":                  on("rewind", "a", "--yes"),
		"such as 742:1031":                 on("rewind", "a", "--yes", "--to", "yesterday"),
		"ask for confirmation here":        on("rewind", "a", "--to", "start"),
		"use --yes to proceed":             on("rebuild", "a"),
		"cannot ask for confirmation":      on("skip", "a"),
		"it must be a position in the log": on("skip", "a", "--at", "start", "--yes"),
		"confirmation here: use --yes":     on("repair", "a", "-o", "json"),
		"or use --all":                     on("replay", "a"),
		"by their ids, or use --all":       on("dismiss", "a"),
		"not both":                         on("replay", "a", "1", "--all"),
		"not the id":                       on("replay", "a", "one"),
		"at least 1":                       on("dead-letters", "a", "-n", "0"),
		"no tables":                        on("list"),
		"this database uses leases":        {"list", "--dsn", "sqlite:x.db"},
		`no command "stop" in`:             {"stop"},
	} {
		got := invoke(t, append([]string{"processor"}, args...)...).want(t, console.ExitUsage)
		if strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, want) || got.stdout != "" {
			t.Errorf("%q: %q, want %q", args, got.stderr, want)
		}
	}
}
