package acceptance_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/steplog"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
	"github.com/exactly-one/tenure/view"
)

const (
	// childProjects is a child that projects the log into two tables, event by
	// event and in batches.
	childProjects = "projects"
	// childProjecting stops in each handler, after its writes.
	childProjecting = "projecting"
)

// The views, which are also the names of the tables that they fill.
const (
	viewSingle = "single"
	viewBatch  = "batch"
)

// createViews makes the tables that the children fill. Nothing in them keeps an
// event from being applied twice or out of order.
func createViews(c *cluster, conn *pgx.Conn) {
	c.t.Helper()
	for _, name := range []string{viewSingle, viewBatch} {
		execute(c.t, conn, fmt.Sprintf(`
			CREATE TABLE %s (
				number bigserial, transaction_id text, position bigint, stream text, in_stream bigint, node text
			)`, pgx.Identifier{c.schema, name}.Sanitize()))
	}
}

// project is the life of a child that projects.
func project(kind string, o order) error {
	ctx := steplog.Recording(context.Background())
	db, err := postgres.New(o.DSN, postgres.Config{Schema: o.Schema})
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})).With("child", o.Name)
	node, err := tenure.Open(ctx, db, tenure.Config{
		Name: o.Name, Lease: o.Lease, CheckInterval: o.Lease / 4, FenceTimeout: time.Second, Logger: logger,
		Retry: retry.FixedInterval{Interval: 200 * time.Millisecond},
	})
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, o.DSN)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	group, err := newViews(node, pool, o.Schema, func(ctx context.Context, tx pgx.Tx) error {
		if kind == childProjects {
			return nil
		}
		children.Send(children.Report{Kind: "writing"})
		lines.Scan()
		// The transaction must not end because the context does: that it may not
		// commit is for others to see to.
		_, err := tx.Exec(context.WithoutCancel(ctx), "INSERT INTO "+pgx.Identifier{o.Schema, viewBatch}.Sanitize()+" (stream) VALUES ('late')")
		children.Send(children.Report{Kind: "written", Error: fmt.Sprint(err)})
		return nil
	})
	if err != nil {
		return err
	}
	children.Send(children.Report{Kind: "ready"})
	if kind == childProjecting {
		return group.Run(ctx) // the lines belong to the handler
	}
	go func() { _ = group.Run(ctx) }()
	for lines.Scan() {
	}
	return lines.Err()
}

// newViews makes the views of a node; last is called after the writes of a
// batch.
func newViews(node *tenure.Node, pool *pgxpool.Pool, schema string, last func(context.Context, pgx.Tx) error) (*processor.Group, error) {
	group, err := processor.NewGroup(node, view.Role(), pool, processor.GroupConfig{})
	if err != nil {
		return nil, err
	}
	log := eventstore.New(node.Backend().(*postgres.Backend), eventstore.Config{}).Log()
	settings := processor.Config{
		PollInterval: 50 * time.Millisecond, HandleTimeout: 5 * time.Second,
		Retry: retry.FixedInterval{Interval: 50 * time.Millisecond},
	}
	insert := func(name string) string {
		return "INSERT INTO " + pgx.Identifier{schema, name}.Sanitize() + " (transaction_id, position, stream, in_stream, node) "
	}
	single, err := view.New(view.Config{
		Name: viewSingle, Log: log, Processing: settings,
		Project: func(ctx context.Context, tx pgx.Tx, event processor.Event) error {
			stream, _ := event.Tag("stream")
			_, err := tx.Exec(ctx, insert(viewSingle)+"VALUES ($1, $2, $3, $4::text::bigint, $5)",
				fmt.Sprint(event.Transaction), event.Position, stream, string(event.Data), node.Name())
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	settings.BatchSize = 500
	batch, err := view.New(view.Config{
		Name: viewBatch, Log: log, Processing: settings,
		ProjectBatch: func(ctx context.Context, tx pgx.Tx, events []processor.Event) error {
			var transactions, streams, numbers []string
			var positions []int64
			for _, event := range events {
				stream, _ := event.Tag("stream")
				transactions = append(transactions, strconv.FormatUint(event.Transaction, 10))
				positions, streams, numbers = append(positions, event.Position), append(streams, stream), append(numbers, string(event.Data))
			}
			_, err := tx.Exec(ctx, insert(viewBatch)+`
				SELECT e.transaction_id, e.position, e.stream, e.in_stream::bigint, $5
				FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[]) WITH ORDINALITY
					AS e(transaction_id, position, stream, in_stream, number)
				ORDER BY e.number`, transactions, positions, streams, numbers, node.Name())
			if err != nil {
				return err
			}
			return last(ctx, tx)
		},
	})
	if err != nil {
		return nil, err
	}
	if err := group.Add(batch); err != nil {
		return nil, err
	}
	err = group.Add(single)
	return group, err
}
