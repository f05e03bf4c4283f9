package view_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/view"
)

// One of the nodes that run this program maintains a table of the orders of each customer.
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
	orders, err := view.New(view.Config{
		Name:      "orders",
		Log:       eventstore.New(backend, eventstore.Config{}).Log(),
		Selection: processor.Selection{Types: []string{"order.placed"}, RequiredTags: []string{"customer"}},
		Tables:    []pgx.Identifier{{"orders_by_customer"}},
		ProjectBatch: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			customers := make([]string, len(batch))
			for i, event := range batch {
				customers[i], _ = event.Tag("customer")
			}
			_, err := tx.Exec(ctx, `
				INSERT INTO orders_by_customer (customer, orders)
				SELECT customer, count(*) FROM unnest($1::text[]) customer GROUP BY customer
				ON CONFLICT (customer) DO UPDATE SET orders = orders_by_customer.orders + excluded.orders`, customers)
			return err
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	group, err := processor.NewGroup(node, view.Role(), pool, processor.GroupConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := group.Add(orders); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(group.Run(ctx))
}
