package processor_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/processor"
)

// A processor maintains a table of balances on one of the nodes that run this
// program.
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
	node, err := tenure.Open(ctx, backend, tenure.Config{Name: "api-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	group, err := processor.NewGroup(node, tenure.NamedRole("views"), pool, processor.GroupConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = group.Add(processor.Config{
		Name:      "balances",
		Log:       eventstore.New(backend, eventstore.Config{}).Log(),
		Selection: processor.Selection{Types: []string{"paid"}, RequiredTags: []string{"account"}},
		Handle: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			for _, event := range batch {
				account, _ := event.Tag("account")
				const sql = `
					INSERT INTO balances (account, cents) VALUES ($1, ($2::jsonb ->> 'cents')::bigint)
					ON CONFLICT (account) DO UPDATE SET cents = balances.cents + excluded.cents`
				if _, err := tx.Exec(ctx, sql, account, event.Data); err != nil {
					return err
				}
			}
			return nil
		},
		Reset: func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "TRUNCATE balances")
			return err
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(group.Run(ctx))
}

// Your own table as a log, and the statements that prepare it.
func ExampleLogFromQuery() {
	backend, err := postgres.New("postgres://localhost/app", postgres.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer backend.Close()
	orders := processor.LogFromQuery("orders", `
		SELECT
			xid AS transaction_id,
			id AS position,
			kind AS type,
			ARRAY['customer=' || customer] AS tags,
			to_jsonb(orders_log) AS data,
			created_at AS occurred_at,
			NULL::uuid AS correlation_id,
			NULL::uuid AS causation_id
		FROM orders_log`)
	orders.Table, orders.TransactionColumn, orders.PositionColumn = "public.orders_log", "xid", "id" // for a repair
	config := processor.Config{Name: "shipping", Log: orders}
	fmt.Println("-- What", config.Name, "needs:")

	fmt.Println("ALTER TABLE orders_log ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id();")
	fmt.Println("CREATE UNIQUE INDEX ON orders_log (xid, id);")
	fmt.Print(processor.TriggerSQL(backend, pgx.Identifier{"public", "orders_log"}))
	// Output:
	// -- What shipping needs:
	// ALTER TABLE orders_log ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id();
	// CREATE UNIQUE INDEX ON orders_log (xid, id);
	// CREATE OR REPLACE FUNCTION "public"."tenure_tell_inserts"() RETURNS trigger
	// LANGUAGE plpgsql AS $tenure_function$
	// BEGIN
	//     FOR slot IN 0..3 LOOP
	//         IF NOT pg_catalog.pg_try_advisory_xact_lock_shared(pg_catalog.hashtextextended(TG_ARGV[0], slot)) THEN
	//             PERFORM pg_catalog.pg_notify(TG_ARGV[0], '');
	//             EXIT;
	//         END IF;
	//     END LOOP;
	//     RETURN NULL;
	// END
	// $tenure_function$;
	//
	// CREATE OR REPLACE TRIGGER tenure_tell_inserts
	// AFTER INSERT ON "public"."orders_log"
	// FOR EACH STATEMENT EXECUTE FUNCTION "public"."tenure_tell_inserts"('public_tenure_events');
}

// An operator skips an event that its handler cannot handle.
func ExampleAdmin_Skip() { //nolint:testableexamples // it needs a program whose handler fails
	ctx := context.Background()
	backend, err := postgres.New("postgres://localhost/app", postgres.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, err := pgxpool.New(ctx, "postgres://localhost/app")
	if err != nil {
		fmt.Println(err)
		return
	}
	processors := processor.NewAdmin(backend, pool)
	status, err := processors.Show(ctx, "balances")
	if err != nil {
		fmt.Println(err)
		return
	}
	if status.Status != processor.Failed {
		return
	}
	fmt.Println("failing:", status.Failing, status.LastError)
	if _, err := processors.Skip(ctx, "balances", status.Failing, "ann"); errors.Is(err, tenure.ErrInvalidConfig) {
		fmt.Println("nothing to skip:", err)
		return
	}
	// The handler has been fixed:
	n, err := processors.Replay(ctx, "balances", nil, "ann")
	fmt.Println(n, err)
}
