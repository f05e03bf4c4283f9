// Command billing is one of several replicas of which only the leader writes
// invoices, in fenced transactions.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dsn string) error {
	pool, err := pgxpool.New(ctx, dsn) // for the work itself
	if err != nil {
		return err
	}
	defer pool.Close()

	return postgres.Run(ctx, dsn, "billing", func(ctx context.Context, term *tenure.Term) error {
		// Only the leader creates the table: simultaneous CREATE TABLE IF NOT EXISTS can fail.
		err := postgres.InTx(ctx, pool, term, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "CREATE TABLE IF NOT EXISTS invoices (term bigint, written timestamptz DEFAULT now())")
			return err
		})
		if err != nil {
			return err
		}
		for {
			err := postgres.InTx(ctx, pool, term, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, "INSERT INTO invoices (term) VALUES ($1)", term.Number())
				return err // committed only if this term is still valid
			})
			if err != nil {
				return err
			}
			log.Printf("invoice written in term %d", term.Number())
			select {
			case <-ctx.Done(): // before another replica can lead
				return context.Cause(ctx)
			case <-time.After(time.Second):
			}
		}
	})
}
