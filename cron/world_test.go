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
	"github.com/exactly-one/tenure/internal/testkit"
)

const patience = testkit.Patience

// world is an installation with schedules, and nodes that run them.
type world struct {
	*postgrestest.Installation
	pool       *pgxpool.Pool // of schedulers
	management *cron.Admin
}

func newWorld(t *testing.T) *world {
	t.Helper()
	i := postgrestest.New(t, "schedules")
	return &world{i, i.Pool, cron.NewAdmin(i.Backend, i.Pool)}
}

// one reads one value.
func one[T any](w *world, sql string, args ...any) T {
	w.Helper()
	return postgrestest.Value[T](w.Installation, sql, args...)
}

// run makes a scheduler and runs it until the test ends, or the returned
// function is called.
func (w *world) run(node *tenure.Node, config cron.Config, schedules ...cron.Schedule) (stop func()) {
	w.Helper()
	return w.runOn(w.pool, node, config, schedules...)
}

// runOn is run with another pool.
func (w *world) runOn(pool *pgxpool.Pool, node *tenure.Node, config cron.Config, schedules ...cron.Schedule) (stop func()) {
	w.Helper()
	if config.Role == (tenure.Role{}) {
		config.Role = tenure.NamedRole("scheduler") // its default key is one lock for all tests of a server
	}
	scheduler, err := cron.New(node, pool, config)
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
	w.Exec(`
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

// states counts the ticks of a schedule by their states.
func (w *world) states(schedule string) map[cron.State]int {
	w.Helper()
	rows, err := w.pool.Query(w.Context(), pgtest.SQL(w.Backend,
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
