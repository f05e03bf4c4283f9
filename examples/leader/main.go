// Command leader does its work on only one of several replicas.
package main

import (
	"context"
	"log"
	"os"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres"
)

func main() {
	err := postgres.Run(context.Background(), os.Getenv("DATABASE_URL"), "billing", func(ctx context.Context, term *tenure.Term) error {
		log.Printf("only this replica writes invoices, in term %d", term.Number())
		<-ctx.Done() // before another replica can lead
		return nil
	})
	log.Fatal(err)
}
