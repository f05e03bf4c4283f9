package assign_test //nolint:testableexamples // it needs a server and never ends

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/assign"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/postgres"
)

// worker does the jobs that are assigned to its node.
type worker struct {
	member *cluster.Member
	pool   *pgxpool.Pool
}

// job is a row as its worker knows it.
type job struct {
	ID         int64
	Assignment int64
	Payload    []byte
}

// begin begins up to ten rows that are assigned to the node. From then on they count
// as begun.
func (w worker) begin(ctx context.Context) ([]job, error) {
	rows, err := w.pool.Query(ctx, `
		UPDATE jobs
		SET state = 'running'
		WHERE id IN (
			SELECT id FROM jobs WHERE node_id = $1 AND state = 'assigned' ORDER BY id LIMIT 10 FOR UPDATE SKIP LOCKED
		)
		RETURNING id, assignment, payload`, w.member.ID())
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[job])
}

var errTaken = errors.New("the job was taken from this node")

// finish does a job and records that in the same transaction. Neither is committed if
// the row was reassigned to another node in the meantime.
func (w worker) finish(ctx context.Context, j job) error {
	return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO results (job, result) VALUES ($1, length($2))`, j.ID, j.Payload); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			UPDATE jobs
			SET state = 'done', node_id = NULL
			WHERE id = $1 AND assignment = $2 AND state = 'running'`, j.ID, j.Assignment)
		if err == nil && tag.RowsAffected() == 0 {
			err = errTaken
		}
		return err
	})
}

// giveBack releases the job, so that the next node to which it is assigned tries it
// again.
func (w worker) giveBack(ctx context.Context, j job) error {
	_, err := w.pool.Exec(ctx, `
		UPDATE jobs
		SET state = 'pending', node_id = NULL
		WHERE id = $1 AND assignment = $2 AND state = 'running'`, j.ID, j.Assignment)
	return err
}

// round does some jobs and reports whether there were any.
func (w worker) round(ctx context.Context) (some bool, err error) {
	guard, ok := w.member.InFlight().Enter() // a drain waits for work that has begun
	if !ok {
		return false, nil
	}
	defer guard.Done()
	jobs, err := w.begin(ctx)
	for _, j := range jobs {
		if failure := w.finish(ctx, j); failure != nil {
			err = errors.Join(err, failure, w.giveBack(ctx, j))
		}
	}
	return len(jobs) > 0, err
}

// A worker processes the rows of its node. It is notified of new rows and also
// polls, in case a notification is lost.
func ExampleListen() {
	ctx := context.Background()
	const dsn = "postgres://localhost/app"
	backend, err := postgres.New(dsn, postgres.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		fmt.Println(err)
		return
	}
	member, err := cluster.Join(ctx, backend, tenure.Config{Name: "worker-1"}, cluster.Config{Capabilities: []string{"gpu"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	wakeups := make(chan struct{}, 1)
	go func() {
		err := assign.Listen(ctx, backend, member.ID(), func() {
			select {
			case wakeups <- struct{}{}:
			default:
			}
		})
		fmt.Println("from here on it looks once a second:", err)
	}()
	w := worker{member, pool}
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		some, err := w.round(ctx)
		if err != nil {
			fmt.Println(err)
		}
		if some && err == nil {
			continue
		}
		select {
		case <-wakeups:
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}
