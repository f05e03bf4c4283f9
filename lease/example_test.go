package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"log/slog"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/lease"
)

// openExample opens a pool on a database of its own. A program on SQLite or MySQL
// opens a pool with the driver of its choice and names the dialect.
func openExample() *sql.DB {
	db, err := sql.Open("pgx", pgtest.ExampleDatabase())
	if err != nil {
		log.Fatal(err)
	}
	return db
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

// Two candidates of a namespace call Elect. The first one leads until it stops
// renewing its lease or unregisters.
func ExampleStore_Elect() {
	ctx := context.Background()
	db := openExample()
	defer db.Close()
	store, err := lease.NewStore(db, lease.PostgreSQL, lease.StoreConfig{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	first, second := uuid.New(), uuid.New()
	for _, candidate := range []uuid.UUID{first, second} {
		held, err := store.Elect(ctx, "reports", candidate)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("leads:", held.Holds(candidate))
	}
	if err := store.Unregister(ctx, "reports", first); err != nil {
		log.Fatal(err)
	}
	held, err := store.Elect(ctx, "reports", second)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the second leads now:", held.Holds(second))
	// Output:
	// leads: true
	// leads: false
	// the second leads now: true
}

// In runs the store's statements in the caller's transaction: what is written there
// is written by the leader or not at all.
func ExampleStore_In() {
	ctx := context.Background()
	db := openExample()
	defer db.Close()
	store, err := lease.NewStore(db, lease.PostgreSQL, lease.StoreConfig{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE reports (month date)"); err != nil {
		log.Fatal(err)
	}
	candidate := uuid.New()
	if _, err := store.Elect(ctx, "reports", candidate); err != nil {
		log.Fatal(err)
	}

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if _, err := tx.ExecContext(ctx, "INSERT INTO reports VALUES ('2026-11-01')"); err != nil {
		log.Fatal(err)
	}
	leads, err := store.In(tx).IsLeader(ctx, "reports", candidate) // the last statement
	if err != nil {
		log.Fatal(err)
	}
	if leads {
		err = tx.Commit()
	}
	fmt.Println("committed:", leads && err == nil)
	// Output:
	// committed: true
}
