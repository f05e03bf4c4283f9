package assign_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/assign"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// childVariable makes the test binary run as a separate node.
const childVariable = "TENURE_ASSIGN_TEST_NODE"

// childLease is short, so that a node that is stopped is soon replaced.
const childLease = 2 * time.Second

// child is the configuration of such a node: it campaigns, works on jobs, and replays
// dead ones on a schedule.
type child struct {
	DSN, Schema, Name string
}

func runChild(told string) int {
	var c child
	err := json.Unmarshal([]byte(told), &c)
	if err == nil {
		err = c.run(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func (c child) config() assign.Config {
	return assign.Config{
		Table: pgx.Identifier{c.Schema, "jobs"}, Role: tenure.NamedRole("assigner"), MaxPerNode: 200,
		MaxAttempts: 3, PollInterval: 100 * time.Millisecond,
	}
}

func (c child) run(ctx context.Context) error {
	backend, err := postgres.New(c.DSN, postgres.Config{Schema: c.Schema})
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, c.DSN+"&pool_max_conns=4")
	if err != nil {
		return err
	}
	nodeConfig := tenure.Config{
		Name: c.Name, Lease: childLease, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	}
	member, err := cluster.Join(ctx, backend, nodeConfig, cluster.Config{})
	if err != nil {
		return err
	}
	assigner, err := assign.New(member, pool, c.config())
	if err != nil {
		return err
	}
	scheduler, err := cron.New(member.Node(), pool, cron.Config{Role: tenure.NamedRole("scheduler")})
	if err != nil {
		return err
	}
	if err := scheduler.Add(cron.Schedule{Name: "replay", Expression: "@every 1s", Job: c.replay}); err != nil {
		return err
	}
	var group sync.WaitGroup
	failures := make(chan error, 4)
	group.Go(func() { failures <- scheduler.Run(ctx) })
	wakeups := make(chan struct{}, 1)
	group.Go(func() { failures <- assigner.Run(ctx) })
	group.Go(func() {
		failures <- assign.Listen(ctx, backend, member.ID(), func() {
			select {
			case wakeups <- struct{}{}:
			default:
			}
		})
	})
	w := childWorker{pool: pool, backend: backend, id: member.ID()}
	group.Go(func() { failures <- w.run(ctx, wakeups) })
	return <-failures
}

// replay is the job of a schedule.
func (c child) replay(ctx context.Context, run cron.Run) error {
	return run.InTx(ctx, func(tx pgx.Tx) error {
		_, err := assign.Replay(ctx, tx, c.config(), 0)
		return err
	})
}

// childWorker works on the jobs of its node, some of which fail.
type childWorker struct {
	pool    *pgxpool.Pool
	backend *postgres.Backend
	id      cluster.NodeID
}

const (
	beginJobs = `
UPDATE {schema}.jobs
SET state = 'running'
WHERE id IN (SELECT id FROM {schema}.jobs WHERE node_id = $1 AND state = 'assigned' ORDER BY id LIMIT 50 FOR UPDATE)
RETURNING id, assignment`

	finishJobs = `
WITH done AS (
	UPDATE {schema}.jobs j
	SET state = CASE WHEN f.failed THEN 'pending' ELSE 'done' END, node_id = NULL
	FROM unnest($1::bigint[], $2::bigint[], $3::boolean[]) AS f(id, assignment, failed)
	WHERE j.id = f.id AND j.assignment = f.assignment AND j.state = 'running'
	RETURNING j.id, j.assignment, j.state
)
INSERT INTO {schema}.finished (job, assignment, node)
SELECT id, assignment, $4 FROM done WHERE state = 'done'`
)

func (w childWorker) run(ctx context.Context, wakeups <-chan struct{}) error {
	for {
		rows, err := w.pool.Query(ctx, pgtest.SQL(w.backend, beginJobs), w.id)
		if err != nil {
			return err
		}
		var ids, assignments []int64
		var failed []bool
		var id, assignment int64
		if _, err := pgx.ForEachRow(rows, []any{&id, &assignment}, func() error {
			ids, assignments, failed = append(ids, id), append(assignments, assignment), append(failed, rand.IntN(5) == 0)
			return nil
		}); err != nil {
			return err
		}
		timer := time.NewTimer(rand.N(20 * time.Millisecond)) // work, or waiting for some
		if len(ids) == 0 {
			select {
			case <-wakeups:
			case <-timer.C:
			}
			continue
		}
		<-timer.C
		if _, err := w.pool.Exec(ctx, pgtest.SQL(w.backend, finishJobs), ids, assignments, failed, w.id); err != nil {
			return err
		}
	}
}

// start starts a node in a separate process.
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
