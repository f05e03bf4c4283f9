package cron_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// patience is how long a test waits for something that should happen.
const patience = 30 * time.Second

// world is a schema with schedules, and nodes that run them.
type world struct {
	*testing.T
	server     *pgtest.Server
	schema     string
	pool       *pgxpool.Pool
	backend    *postgres.Backend
	management *cron.Admin
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := pgtest.Shared(t)
	schema := server.Schema(t)
	backend, err := postgres.New(server.DSN(), postgres.Config{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(backend.Close)
	if err := backend.Migrate(t.Context(), "schedules"); err != nil {
		t.Fatal(err)
	}
	pool := server.Pool(t)
	return &world{t, server, schema, pool, backend, cron.NewManagement(backend, pool)}
}

func (w *world) exec(sql string, args ...any) {
	w.Helper()
	if _, err := w.pool.Exec(w.Context(), w.backend.SQL(sql), args...); err != nil {
		w.Fatal(err)
	}
}

// one reads one value.
func one[T any](w *world, sql string, args ...any) T {
	w.Helper()
	rows, err := w.pool.Query(w.Context(), w.backend.SQL(sql), args...)
	if err != nil {
		w.Fatal(err)
	}
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		w.Fatal(err)
	}
	return value
}

// node opens a node that closes with the test.
func (w *world) node(name string, config tenure.Config) *tenure.Node {
	w.Helper()
	config.Name, config.Logger = name, slog.New(slog.NewTextHandler(w.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	node, err := tenure.Open(w.Context(), w.backend, config)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := node.Close(ctx); err != nil {
			w.Error(err)
		}
	})
	return node
}

// run makes a scheduler and runs it until the test ends, or the returned
// function is called.
func (w *world) run(node *tenure.Node, config cron.Config, schedules ...cron.Schedule) (stop func()) {
	w.Helper()
	if config.Role == (tenure.Role{}) {
		config.Role = tenure.NamedRole("scheduler") // its default key is one lock for all tests of a server
	}
	scheduler, err := cron.New(node, w.pool, config)
	if err != nil {
		w.Fatal(err)
	}
	for _, schedule := range schedules {
		if err := scheduler.Add(schedule); err != nil {
			w.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() { done <- scheduler.Run(ctx) }()
	stop = func() {
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
		done <- nil
	}
	w.Cleanup(stop)
	return stop
}

// known makes the rows of schedules whose ticks are settled up to some time ago,
// as a scheduler would have left them.
func (w *world) known(ago time.Duration, schedules ...cron.Schedule) {
	w.Helper()
	w.exec(`
		INSERT INTO {schedules} (name, role, expression, timezone, handled_until)
		SELECT n.name, 'scheduler', n.expression, n.zone, date_trunc('second', clock_timestamp()) - $4::interval
		FROM unnest($1::text[], $2::text[], $3::text[]) AS n(name, expression, zone)`,
		each(schedules, func(s cron.Schedule) string { return s.Name }),
		each(schedules, func(s cron.Schedule) string { return s.Expression }),
		each(schedules, func(s cron.Schedule) string {
			if s.Zone == "" {
				return "UTC"
			}
			return s.Zone
		}),
		ago)
}

func each[T, U any](all []T, of func(T) U) []U {
	result := make([]U, len(all))
	for i, one := range all {
		result[i] = of(one)
	}
	return result
}

// await waits for a condition on the database.
func (w *world) await(what string, condition func() bool) {
	w.Helper()
	deadline := time.Now().Add(patience)
	for !condition() {
		if time.Now().After(deadline) {
			w.Fatalf("%s: not within %v", what, patience)
		}
		time.Sleep(5 * time.Millisecond) // between two questions
	}
}

// states counts the ticks of a schedule by their states.
func (w *world) states(schedule string) map[cron.State]int {
	w.Helper()
	rows, err := w.pool.Query(w.Context(), w.backend.SQL(
		`SELECT state, sum(ticks)::integer FROM {runs} WHERE schedule = $1 GROUP BY state`), schedule)
	if err != nil {
		w.Fatal(err)
	}
	states := map[cron.State]int{}
	var state cron.State
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&state, &n}, func() error {
		states[state] = n
		return nil
	}); err != nil {
		w.Fatal(err)
	}
	return states
}
