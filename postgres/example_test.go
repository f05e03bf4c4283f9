package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// quiet is the configuration of the examples' nodes.
func quiet(name string) tenure.Config {
	return tenure.Config{Name: name, Logger: slog.New(slog.DiscardHandler)}
}

// Run is all that a program with one role needs. The first node creates the tables.
func ExampleRun() {
	dsn := pgtest.ExampleDatabase() // in a program: os.Getenv("DATABASE_URL")
	err := postgres.Run(context.Background(), dsn, "billing", func(_ context.Context, term *tenure.Term) error {
		fmt.Println("leading", term.Role())
		return tenure.Done // in a program: return when the context has ended
	})
	fmt.Println("error:", err)
	// Output:
	// leading billing
	// error: <nil>
}

// RunWith is for settings and roles with keys. When the context ends, it resigns.
func ExampleRunWith() {
	ctx, stop := context.WithCancel(context.Background()) // in a program: signal.NotifyContext
	defer stop()
	dsn := pgtest.ExampleDatabase()
	config := postgres.RunConfig{Node: quiet("api-1"), Backend: postgres.Config{Schema: "election"}}
	err := postgres.RunWith(ctx, dsn, tenure.KeyRole(42), config, func(ctx context.Context, term *tenure.Term) error {
		fmt.Println("leading", term.Role())
		stop()
		<-ctx.Done()
		fmt.Println("shutting down:", errors.Is(context.Cause(ctx), tenure.ErrStopping))
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// leading key:42
	// shutting down: true
	// error: <nil>
}

// A node campaigns for a role on PostgreSQL. The first node creates the tables.
func ExampleNew() {
	ctx := context.Background()
	dsn := pgtest.ExampleDatabase() // in a program: os.Getenv("DATABASE_URL")
	db, err := postgres.New(dsn, postgres.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close() // after the node
	node, err := tenure.Open(ctx, db, quiet("api-1"))
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close(ctx)
	election, err := node.Election(tenure.NamedRole("billing"))
	if err != nil {
		log.Fatal(err)
	}
	err = election.Run(ctx, func(ctx context.Context, _ *tenure.Term) error {
		leader, err := election.Leader(ctx)
		if err != nil {
			return err
		}
		fmt.Println("the database names", leader.NodeName, "as the leader of", leader.Role)
		return tenure.Done
	})
	fmt.Println("error:", err)
	// Output:
	// the database names api-1 as the leader of billing
	// error: <nil>
}

// A fenced transaction commits only while its term is valid. After the term, it is
// rolled back.
func ExampleInTx() {
	ctx := context.Background()
	dsn := pgtest.ExampleDatabase() // in a program: os.Getenv("DATABASE_URL")
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, "CREATE TABLE invoices (number bigint)"); err != nil {
		log.Fatal(err)
	}
	db, err := postgres.New(dsn, postgres.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	node, err := tenure.Open(ctx, db, quiet("api-1"))
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close(ctx)
	election, err := node.Election(tenure.NamedRole("billing"))
	if err != nil {
		log.Fatal(err)
	}
	term, err := election.Campaign(ctx)
	if err != nil {
		log.Fatal(err)
	}

	write := func(number int) error {
		return postgres.InTx(ctx, pool, term, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO invoices VALUES ($1)", number)
			return err
		})
	}
	fmt.Println("as the leader:", write(1))
	if err := term.Resign(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("fenced after the term:", errors.Is(write(2), tenure.ErrFenced))

	var invoices int
	if err := pool.QueryRow(ctx, "SELECT count(*) FROM invoices").Scan(&invoices); err != nil {
		log.Fatal(err)
	}
	fmt.Println("invoices:", invoices)
	// Output:
	// as the leader: <nil>
	// fenced after the term: true
	// invoices: 1
}

// The history has every term of a role with the reason for its end.
func ExampleBackend_History() {
	ctx := context.Background()
	db, err := postgres.New(pgtest.ExampleDatabase(), postgres.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	node, err := tenure.Open(ctx, db, quiet("api-1"))
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close(ctx)
	election, err := node.Election(tenure.NamedRole("billing"))
	if err != nil {
		log.Fatal(err)
	}
	term, err := election.Campaign(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := term.Resign(ctx); err != nil {
		log.Fatal(err)
	}
	terms, err := db.History(ctx, history.Query{Role: "billing"})
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range terms {
		fmt.Println(t.NodeName, "led", t.Role, "until it", t.Reason)
	}
	// Output:
	// api-1 led billing until it resigned
}
