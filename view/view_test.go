package view_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
	"github.com/exactly-one/tenure/view"
)

const patience = testkit.Patience

// world is a log of numbers and a table of totals by parity, which a view fills.
type world struct {
	*postgrestest.Installation
	store      *eventstore.Store
	management *processor.Admin
	totals     pgx.Identifier
}

func newWorld(t *testing.T) *world {
	t.Helper()
	i := postgrestest.New(t, "processors", "events")
	w := &world{
		Installation: i, store: eventstore.New(i.Backend, eventstore.Config{}),
		management: processor.NewAdmin(i.Backend, i.Pool), totals: pgx.Identifier{i.Schema, "to'tals"},
	}
	w.Exec("CREATE TABLE " + w.totals.Sanitize() + " (parity text PRIMARY KEY, total bigint, numbers text DEFAULT '')")
	return w
}

// run runs a view of the log on a new node until the test ends.
func (w *world) run(config view.Config) {
	w.Helper()
	group, err := processor.NewGroup(w.Node("a", tenure.Config{}), view.Role(), w.Pool, processor.GroupConfig{})
	if err != nil {
		w.Fatal(err)
	}
	config.Name, config.Log = "totals", w.store.Log()
	config.Processing.PollInterval = 20 * time.Millisecond
	config.Processing.Retry = retry.FixedInterval{Interval: time.Millisecond}
	work, err := view.New(config)
	if err == nil {
		err = group.Add(work)
	}
	if err != nil {
		w.Fatal(err)
	}
	postgrestest.Run(w, group.Run)
}

func (w *world) append(numbers ...int) {
	w.Helper()
	for _, number := range numbers {
		parity := []string{"even", "odd"}[number%2]
		event := eventstore.NewEvent{Type: "counted", Tags: []string{"parity=" + parity}, Data: number}
		if err := w.store.Append(w.Context(), w.Pool, event); err != nil {
			w.Fatal(err)
		}
	}
}

// project adds an event to the total of its parity.
func (w *world) project(ctx context.Context, tx pgx.Tx, event processor.Event) error {
	number, err := strconv.Atoi(string(event.Data))
	if err != nil {
		return err
	}
	parity, _ := event.Tag("parity")
	_, err = tx.Exec(ctx, `
		INSERT INTO `+w.totals.Sanitize()+` AS t (parity, total, numbers) VALUES ($1, $2::int, $2::int::text)
		ON CONFLICT (parity) DO UPDATE SET total = t.total + excluded.total, numbers = t.numbers || ' ' || excluded.numbers`, parity, number)
	return err
}

func (w *world) projectBatch(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
	for _, event := range batch {
		if err := w.project(ctx, tx, event); err != nil {
			return err
		}
	}
	return nil
}

// content returns the rows of the view, as "odd 1 3, even 2".
func (w *world) content() string {
	w.Helper()
	var content string
	err := w.Pool.QueryRow(w.Context(), "SELECT coalesce(string_agg(parity || ' ' || numbers, ', ' ORDER BY parity DESC), '') FROM "+w.totals.Sanitize()).
		Scan(&content)
	if err != nil {
		w.Fatal(err)
	}
	return content
}

func (w *world) wait(want string) {
	w.Helper()
	w.await(want, func() bool { return w.content() == want })
}

func (w *world) await(what string, condition func() bool) {
	w.Helper()
	if !testkit.Within(patience, condition) {
		w.Fatalf("%s: not within %v; the view has %q", what, patience, w.content())
	}
}

// show returns the status of the view.
func (w *world) show() processor.Status {
	w.Helper()
	status, err := w.management.Show(w.Context(), "totals")
	if err != nil {
		w.Fatal(err)
	}
	return status
}

func TestViewsProjectEachEventOnce(t *testing.T) {
	t.Parallel()
	for name, configure := range map[string]func(*world) view.Config{
		"single": func(w *world) view.Config { return view.Config{Project: w.project} },
		"batch":  func(w *world) view.Config { return view.Config{ProjectBatch: w.projectBatch} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.append(1, 2)
			config := configure(w)
			config.Processing.BatchSize = 2
			config.Tables = []pgx.Identifier{w.totals}
			w.run(config)
			w.append(3, 4, 5)
			w.wait("odd 1 3 5, even 2 4")

			// A rebuild empties the tables; a rewind does not.
			if err := w.management.Rebuild(t.Context(), "totals", "ann"); err != nil {
				t.Fatal(err)
			}
			w.await("the rebuild", func() bool { return !w.show().Rebuilding })
			w.append(6)
			w.wait("odd 1 3 5, even 2 4 6")
			if n := w.show().Processed; n != 6 {
				t.Errorf("%d events were handled since the rebuild", n)
			}
			if err := w.management.Rewind(t.Context(), "totals", processor.Cursor{}, "ann"); err != nil {
				t.Fatal(err)
			}
			w.wait("odd 1 3 5 1 3 5, even 2 4 6 2 4 6")
		})
	}
}

func TestViewReadsOnlySelectedEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(view.Config{Project: w.project, Selection: processor.Selection{ExactTags: []string{"parity=odd"}}})
	w.append(1, 2, 3, 4, 5)
	w.wait("odd 1 3 5")
}

func TestFailedProjectionLeavesNoTrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var calls atomic.Int64
	w.append(1, 2, 3)
	w.run(view.Config{ProjectBatch: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
		err := w.projectBatch(ctx, tx, batch)
		switch calls.Add(1) {
		case 1:
			panic("at the first call")
		case 2:
			return errors.New("at the second call")
		}
		return err
	}})
	w.wait("odd 1 3, even 2")
	if text := w.show().LastError; !strings.Contains(text, "at the second call") {
		t.Errorf("the last error is %q", text)
	}
}

// The writes of a projection whose term ends before the commit are rolled back.
func TestStaleTermProjectsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	written, goOn := make(chan struct{}), make(chan struct{})
	var calls atomic.Int64
	w.run(view.Config{Project: func(ctx context.Context, tx pgx.Tx, event processor.Event) error {
		err := w.project(ctx, tx, event)
		if calls.Add(1) == 1 {
			close(written)
			<-goOn
		}
		return err
	}})
	w.append(1)
	resume := sync.OnceFunc(func() { close(goOn) })
	defer resume()
	<-written
	// As the next leader does; this one does not know.
	terms := pgx.Identifier{w.Schema, "tenure_terms"}.Sanitize()
	w.Exec("SELECT set_config('tenure.incarnation', '1', true); UPDATE " + terms + " SET ended_at = clock_timestamp()")
	resume()
	w.await("another attempt", func() bool {
		var begun bool
		err := w.Pool.QueryRow(t.Context(), `
			SELECT NOT EXISTS (SELECT FROM pg_locks WHERE mode = 'RowExclusiveLock' AND relation = $1::regclass)`, w.totals.Sanitize()).Scan(&begun)
		if err != nil {
			t.Fatal(err)
		}
		return begun
	})
	if got := w.content(); got != "" {
		t.Errorf("the stale term has left %q", got)
	}
	w.Exec("UPDATE " + terms + " SET ended_at = NULL")
	w.wait("odd 1")
}

func TestInvalidViewsAreRejected(t *testing.T) {
	t.Parallel()
	single := func(context.Context, pgx.Tx, processor.Event) error { return nil }
	batch := func(context.Context, pgx.Tx, []processor.Event) error { return nil }
	for name, config := range map[string]view.Config{
		"no projection":  {Name: "v"},
		"two":            {Name: "v", Project: single, ProjectBatch: batch},
		"an empty table": {Name: "v", Project: single, Tables: []pgx.Identifier{{}}},
	} {
		if _, err := view.New(config); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	processing := processor.Config{Name: "other", Kind: "other", BatchSize: 7, Start: processor.Start{End: true}}
	config, err := view.New(view.Config{Name: "v", ProjectBatch: batch, Processing: processing})
	if err != nil || config.Name != "v" || config.Kind != "view" || config.BatchSize != 7 || !config.Start.End || config.Reset != nil {
		t.Errorf("became %+v: %v", config, err)
	}
}

// All tables are truncated before Reset is called.
func TestResetEmptiesTheView(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := pgx.Identifier{w.Schema, "other"}
	w.Exec("CREATE TABLE " + other.Sanitize() + " (parity text REFERENCES " + w.totals.Sanitize() + ")")
	var seen []string
	config, err := view.New(view.Config{
		Name: "v", Project: w.project, Tables: []pgx.Identifier{w.totals, other},
		Reset: func(ctx context.Context, tx pgx.Tx) error {
			var left int
			err := tx.QueryRow(ctx, "SELECT (SELECT count(*) FROM "+w.totals.Sanitize()+") + (SELECT count(*) FROM "+other.Sanitize()+")").Scan(&left)
			seen = append(seen, fmt.Sprint(left))
			return err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Exec("INSERT INTO " + w.totals.Sanitize() + " VALUES ('odd', 1)")
	w.Exec("INSERT INTO " + other.Sanitize() + " VALUES ('odd')")
	err = pgx.BeginFunc(t.Context(), w.Pool, func(tx pgx.Tx) error { return config.Reset(t.Context(), tx) })
	if err != nil || !slices.Equal(seen, []string{"0"}) {
		t.Errorf("it left %v: %v", seen, err)
	}
}
