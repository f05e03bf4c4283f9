package cron_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/postgres"
)

const patience = postgrestest.Patience

// world is an installation with schedules, and nodes that run them.
type world struct {
	*postgrestest.Installation
	pool       *pgxpool.Pool
	backend    *postgres.Backend
	management *cron.Admin
}

func newWorld(t *testing.T) *world {
	t.Helper()
	i := postgrestest.New(t, "schedules")
	return &world{i, i.Pool, i.Backend, cron.NewAdmin(i.Backend, i.Pool)}
}

func (w *world) exec(sql string, args ...any) { w.Helper(); w.Exec(sql, args...) }

// one reads one value.
func one[T any](w *world, sql string, args ...any) T {
	w.Helper()
	return postgrestest.Value[T](w.Installation, sql, args...)
}

// node opens a node that closes with the test.
func (w *world) node(name string, config tenure.Config) *tenure.Node {
	w.Helper()
	return w.Node(name, config)
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
	return postgrestest.Run(w, scheduler.Run)
}

// hourly is an expression that ticks once in each hour, half an hour from now: no tick comes
// due while a test prepares or checks.
func hourly() string { return fmt.Sprint(time.Now().UTC().Add(30*time.Minute).Minute(), " * * * *") }

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

func (w *world) await(what string, condition func() bool) { w.Helper(); w.Await(what, condition) }

// states counts the ticks of a schedule by their states.
func (w *world) states(schedule string) map[cron.State]int {
	w.Helper()
	rows, err := w.pool.Query(w.Context(), pgtest.SQL(w.backend,
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
