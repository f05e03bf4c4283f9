// Command service is one of several replicas of an HTTP service. Each replica takes
// requests, and the leader handles them.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/leaderhttp"
	"github.com/exactly-one/tenure/postgres"
)

func main() { // service PORT
	ctx, dsn := context.Background(), os.Getenv("DATABASE_URL")
	port := must(strconv.Atoi(os.Args[1]))
	pool := must(pgxpool.New(ctx, dsn)) // for the work itself
	db := must(postgres.New(dsn, postgres.Config{}))
	member := must(cluster.Join(ctx, db, tenure.Config{}, cluster.Config{Address: "127.0.0.1", HTTPPort: port}))
	election := must(member.Node().Election(tenure.NamedRole("orders")))
	router := must(leaderhttp.New(ctx, election, leaderhttp.Config{}))

	mux := http.NewServeMux()
	mux.Handle("POST /orders", router.ForwardToLeader(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		term := leaderhttp.Term(r.Context())
		err := postgres.InTx(r.Context(), pool, term, func(tx pgx.Tx) error { // commits only if the term is valid
			_, err := tx.Exec(r.Context(), "INSERT INTO orders (port, term) VALUES ($1, $2)", port, term.Number())
			return err
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, "written by %d in term %d\n", port, term.Number())
	})))
	mux.HandleFunc("GET /healthz", router.Healthz)
	mux.HandleFunc("GET /readyz", router.Readyz)
	mux.HandleFunc("GET /leader", router.Leader)
	go func() { log.Fatal(http.ListenAndServe(fmt.Sprint("127.0.0.1:", port), member.InFlight().Handler(mux))) }()
	must(election, election.Start(ctx))
	must(member, member.ShutdownOnSignal(ctx)) // requests end, then the role is released
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
