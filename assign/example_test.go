package assign_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/assign"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/postgres"
)

// Every node runs this program. The leader assigns the rows and replays a
// hundred dead rows each night.
func Example() { //nolint:testableexamples // it needs a server and never ends
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

	config := assign.Config{Table: pgx.Identifier{"public", "jobs"}, MaxPerNode: 50, MaxAttempts: 5}
	assigner, err := assign.New(member, pool, config)
	if err != nil {
		fmt.Println(err)
		return
	}

	// A node can campaign for a role only once, so the schedules have a separate role.
	scheduler, err := cron.New(member.Node(), pool, cron.Config{Role: tenure.NamedRole("schedules")})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = scheduler.Add(cron.Schedule{
		Name:       "replay dead jobs",
		Expression: "0 3 * * *",
		Policy:     cron.AtLeastOnce,
		Job: func(ctx context.Context, run cron.Run) error {
			return run.InTx(ctx, func(tx pgx.Tx) error {
				replayed, err := assign.Replay(ctx, tx, config, 100)
				fmt.Println(replayed, "jobs are tried again")
				return err
			})
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	ended := make(chan error, 2)
	go func() { ended <- assigner.Run(ctx) }()
	go func() { ended <- scheduler.Run(ctx) }()
	fmt.Println(<-ended, <-ended)
}
