package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"log/slog"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/lease"
	"github.com/exactly-one/tenure/lease/store"
)

// openExample opens a pool on a new database. A program on SQLite or MySQL uses the
// driver of its choice and the dialect of its database.
func openExample() *sql.DB {
	db, err := sql.Open("pgx", pgtest.ExampleDatabase())
	if err != nil {
		log.Fatal(err)
	}
	return db
}

// Two candidates of a namespace call Elect. The first one leads until it stops
// renewing its lease or unregisters.
func ExampleStore_Elect() {
	ctx := context.Background()
	db := openExample()
	defer db.Close()
	elections, err := store.New(db, lease.PostgreSQL, store.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	first, second := uuid.New(), uuid.New()
	for _, candidate := range []uuid.UUID{first, second} {
		held, err := elections.Elect(ctx, "reports", candidate)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("leads:", held.HeldBy(candidate))
	}
	if err := elections.Unregister(ctx, "reports", first); err != nil {
		log.Fatal(err)
	}
	held, err := elections.Elect(ctx, "reports", second)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the second leads now:", held.HeldBy(second))
	// Output:
	// leads: true
	// leads: false
	// the second leads now: true
}

// In runs the store's statements in the caller's transaction, so that only the leader writes
// what the transaction writes.
func ExampleStore_In() {
	ctx := context.Background()
	db := openExample()
	defer db.Close()
	elections, err := store.New(db, lease.PostgreSQL, store.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE reports (month date)"); err != nil {
		log.Fatal(err)
	}
	candidate := uuid.New()
	if _, err := elections.Elect(ctx, "reports", candidate); err != nil {
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
	leads, err := elections.In(tx).IsLeader(ctx, "reports", candidate) // the last statement
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
