package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"log/slog"

	_ "github.com/jackc/pgx/v5/stdlib" // registers "pgx"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/lease"
)

// openExample opens a pool on a new database. A program on SQLite or MySQL uses the driver
// of its choice and the dialect of its database.
func openExample() *sql.DB {
	db, err := sql.Open("pgx", pgtest.ExampleDatabase())
	if err != nil {
		log.Fatal(err)
	}
	return db
}

// Run is all that a program with one role needs. The first node creates the tables.
func ExampleRun() {
	db := openExample()
	defer db.Close()
	err := lease.Run(context.Background(), db, lease.PostgreSQL, "billing", func(_ context.Context, term *tenure.Term) error {
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
	db := openExample()
	defer db.Close()
	config := lease.RunConfig{Node: tenure.Config{Name: "api-1", Logger: slog.New(slog.DiscardHandler)}}
	err := lease.RunWith(ctx, db, lease.PostgreSQL, tenure.KeyRole(42), config, func(ctx context.Context, term *tenure.Term) error {
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

// A node campaigns for a role by leases and writes in a fenced transaction. The first
// node creates the tables.
func ExampleNewBackend() {
	ctx := context.Background()
	db := openExample()
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE TABLE invoices (number bigint)"); err != nil {
		log.Fatal(err)
	}
	backend, err := lease.NewBackend(db, lease.PostgreSQL, lease.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer backend.Close() // after the node, before the pool
	node, err := tenure.Open(ctx, backend, tenure.Config{Name: "api-1", Logger: slog.New(slog.DiscardHandler)})
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
		return lease.InTx(ctx, db, nil, term, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO invoices VALUES ($1)", number)
			return err
		})
	}
	fmt.Println("as the leader:", write(1))
	if err := term.Resign(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("fenced after the term:", errors.Is(write(2), tenure.ErrFenced))
	// Output:
	// as the leader: <nil>
	// fenced after the term: true
}
