package cron_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/sandbox"
	"github.com/exactly-one/tenure/postgres"
)

// childVariable makes the test's binary a node that runs schedules.
const childVariable = "TENURE_CRON_TEST_NODE"

// child is the configuration of such a node.
type child struct {
	DSN, Schema, Name string
}

// childLease is short, so that a node that is stopped is soon replaced.
const childLease = 2 * time.Second

// Of the schedules under faults, some tick each second and the others work off
// a backlog, one tick after the other.
const (
	liveSchedules = 40
	lateSchedules = 40
	backlog       = 200 * time.Second
	enough        = 10_000 // ticks
)

func faultySchedules(job cron.Job) []cron.Schedule {
	var all []cron.Schedule
	for i := range liveSchedules + lateSchedules {
		s := cron.Schedule{
			Name: fmt.Sprintf("live %d", i), Expression: "@every 1s", Job: job, Overlap: cron.OverlapAllow, Policy: cron.AtMostOnce,
		}
		if i >= liveSchedules {
			s.Name, s.Overlap, s.CatchUp, s.CatchUpLimit = fmt.Sprintf("late %d", i), cron.OverlapQueue, cron.CatchUpAll, 1000
		}
		if i%2 == 1 {
			s.Policy = cron.AtLeastOnce
		}
		all = append(all, s)
	}
	return all
}

// runChild runs a node in a separate process.
func runChild(told string) int {
	var c child
	err := json.Unmarshal([]byte(told), &c)
	if err == nil {
		err = c.run(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func (c child) run(ctx context.Context) error {
	backend, err := postgres.New(c.DSN, postgres.Config{Schema: c.Schema})
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, c.DSN+"&pool_max_conns=8")
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	node, err := tenure.Open(ctx, backend, tenure.Config{Name: c.Name, Lease: childLease, Logger: logger})
	if err != nil {
		return err
	}
	scheduler, err := cron.New(node, pool, cron.Config{Role: tenure.NamedRole("scheduler")})
	if err != nil {
		return err
	}
	began := pgtest.SQL(backend, "INSERT INTO {schema}.began (run, attempt, term) VALUES ($1, $2, $3)")
	landed := pgtest.SQL(backend, "INSERT INTO {schema}.landed (run, attempt, term) VALUES ($1, $2, $3)")
	job := func(ctx context.Context, run cron.Run) error {
		args := []any{run.ID, run.Attempt, run.Term.Number()}
		if _, err := pool.Exec(ctx, began, args...); err != nil {
			return err
		}
		pause := time.NewTimer(rand.N(50 * time.Millisecond)) // work
		defer pause.Stop()
		select {
		case <-pause.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		return run.InTx(ctx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, landed, args...)
			return err
		})
	}
	for _, schedule := range faultySchedules(job) {
		if err := scheduler.Add(schedule); err != nil {
			return err
		}
	}
	return scheduler.Run(ctx)
}

// start starts a node in a separate process, killed with the test.
func (w *world) start(name string) *exec.Cmd {
	w.Helper()
	told, err := json.Marshal(child{w.Server.DSN(), w.Schema, name})
	if err != nil {
		w.Fatal(err)
	}
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), childVariable+"="+string(told))
	command.Stderr = w.Output()
	if err := command.Start(); err != nil {
		w.Fatal(err)
	}
	return command
}

func kill(command *exec.Cmd) {
	_ = command.Process.Kill() // it may be gone
	_ = command.Wait()
}

// Each tick is claimed once and runs as its policy says, while leaders are
// killed and paused.
func TestTicksAreClaimedOnceUnderFaults(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newWorld(t)
	w.Exec(`CREATE TABLE {schema}.began (run bigint, attempt integer, term bigint)`)
	w.Exec(`CREATE TABLE {schema}.landed (run bigint, attempt integer, term bigint, PRIMARY KEY (run, attempt))`)
	schedules := faultySchedules(nil)
	w.known(backlog, schedules[liveSchedules:]...)
	w.known(0, schedules[:liveSchedules]...)
	w.Exec(`CREATE TABLE {schema}.known AS SELECT name, handled_until FROM {schedules}`)

	nodes := map[string]*exec.Cmd{}
	defer func() {
		for _, node := range nodes {
			kill(node)
		}
	}()
	for i := range 3 {
		name := fmt.Sprintf("node %d", i)
		nodes[name] = w.start(name)
	}
	leader := func() string {
		var name string
		w.Await("a leader", func() bool {
			name = one[string](w, `
				SELECT coalesce(max(n.name), '')
				FROM {leaders} l JOIN {nodes} n ON n.id = l.node_id
				WHERE l.role = 'scheduler' AND l.lease_until > clock_timestamp()`)
			return name != ""
		})
		return name
	}
	finished := func() int {
		return one[int](w, `SELECT count(*) FROM {runs} WHERE state NOT IN ('waiting', 'running')`)
	}
	var killed, stopped int
	for done := 0; done < enough || killed < 5 || stopped < 3; done = finished() {
		next := done + 500
		w.Await("progress", func() bool { return finished() >= next })
		name := leader()
		victim := nodes[name]
		if rand.IntN(3) > 0 {
			kill(victim)
			nodes[name] = w.start(name)
			killed++
			continue
		}
		if err := victim.Process.Signal(sandbox.PauseSignal); err != nil {
			t.Fatal(err)
		}
		w.Await("another leader", func() bool { return leader() != name })
		if err := victim.Process.Signal(sandbox.ResumeSignal); err != nil {
			t.Fatal(err)
		}
		stopped++
	}
	for _, s := range schedules {
		if err := w.management.Pause(t.Context(), s.Name, "test"); err != nil {
			t.Fatal(err)
		}
	}
	w.Await("the end of all that runs", func() bool {
		return one[int](w, `SELECT count(*) FROM {runs} WHERE state = 'running'`) == 0
	})
	t.Logf("killed %d leaders, stopped %d; %s", killed, stopped, one[string](w, `
		SELECT string_agg(state || ': ' || n, ', ' ORDER BY state) FROM (SELECT state, count(*) AS n FROM {runs} GROUP BY state) s`))

	for what, count := range map[string]string{
		"ticks without a row": `
			SELECT count(*)
			FROM {schedules} s
			JOIN {schema}.known k USING (name)
			CROSS JOIN LATERAL generate_series(k.handled_until + interval '1 second', s.handled_until, interval '1 second') tick
			WHERE NOT EXISTS (SELECT FROM {runs} r WHERE r.schedule = s.name AND r.scheduled_for = tick)`,
		"ticks claimed before their time, or never due": `
			SELECT count(*)
			FROM {runs} r JOIN {schedules} s ON s.name = r.schedule JOIN {schema}.known k USING (name)
			WHERE r.started_at < r.scheduled_for OR r.scheduled_for > s.handled_until OR r.scheduled_for <= k.handled_until`,
		"runs at most once that began twice": `
			SELECT count(*)
			FROM (SELECT run FROM {schema}.began GROUP BY run HAVING count(*) > 1) b
			JOIN {runs} r ON r.id = b.run
			WHERE substring(r.schedule FROM '\d+')::integer % 2 = 0`,
		"runs at least once that were lost": `
			SELECT count(*)
			FROM {runs} r
			WHERE substring(r.schedule FROM '\d+')::integer % 2 = 1
				AND r.state <> 'waiting' AND r.error <> 'no leader handled it before the pause'
				AND (r.state <> 'succeeded' OR NOT EXISTS (SELECT FROM {schema}.landed l WHERE l.run = r.id))`,
		"attempts that began twice": `
			SELECT count(*) FROM (SELECT FROM {schema}.began GROUP BY run, attempt HAVING count(*) > 1) b`,
		"runs that succeeded and have not landed once in their attempt": `
			SELECT count(*)
			FROM {runs} r
			WHERE r.state = 'succeeded'
				AND NOT EXISTS (SELECT FROM {schema}.landed l WHERE l.run = r.id AND l.attempt = r.attempt AND l.term = r.term)`,
		"runs that ended otherwise than by faults": `
			SELECT count(*) FROM {runs} WHERE state NOT IN ('succeeded', 'waiting', 'abandoned') AND error <> 'no leader handled it before the pause'`,
		"runs that no leader handled and that began": `
			SELECT count(*) FROM {runs} r WHERE r.state = 'missed' AND EXISTS (SELECT FROM {schema}.began b WHERE b.run = r.id)`,
	} {
		if n := one[int](w, count); n != 0 {
			t.Errorf("%s: %d", what, n)
		}
	}
	for what, count := range map[string]string{
		"runs abandoned": `SELECT count(*) FROM {runs} WHERE state = 'abandoned'`,
		"runs repeated":  `SELECT count(*) FROM {runs} WHERE attempt > 1`,
	} {
		if one[int](w, count) == 0 {
			t.Errorf("%s: none, so the faults proved nothing", what)
		}
	}
}
