// Command shards is one of several owners of the eight shards of a set of rows. Each
// shard has one owner, and the others take over those of an owner that ends.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
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
	db, err := postgres.New(dsn, postgres.Config{})
	if err != nil {
		return err
	}
	defer db.Close()
	member, err := cluster.Join(ctx, db, tenure.Config{}, cluster.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = member.Close(context.WithoutCancel(ctx)) }()                                     // ends within the drain timeout
	spread, err := member.Spread("shards", cluster.SpreadConfig{Roles: cluster.Partitions("shard", 8)}) // shard/0 to shard/7
	if err != nil {
		return err
	}
	return spread.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		log.Printf("owns %s in term %d", term.Role().Name(), term.Number())
		<-ctx.Done() // work on the rows of the shard until here, fenced with the term
		return nil
	})
}
