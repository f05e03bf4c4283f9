package eventstore_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// An order and its event are committed in one transaction.
func ExampleStore_Append() {
	ctx := context.Background()
	dsn := pgtest.ExampleDatabase() // in a program: os.Getenv("DATABASE_URL")
	backend, err := postgres.New(dsn, postgres.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer backend.Close()
	if err := backend.Migrate(ctx, "events"); err != nil {
		fmt.Println(err)
		return
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, "CREATE TABLE orders (id bigint, customer text)"); err != nil {
		fmt.Println(err)
		return
	}
	store := eventstore.New(backend, eventstore.Config{})
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO orders (id, customer) VALUES ($1, $2)", 1031, "ann"); err != nil {
			return err
		}
		return store.Append(ctx, tx, eventstore.NewEvent{
			Type: "order.placed",
			Tags: []string{"order=1031", "customer=ann"},
			Data: map[string]any{"cents": 1250},
		})
	})
	fmt.Println("committed:", err == nil)
	// Output:
	// committed: true
}
