package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgserver"
	"github.com/exactly-one/tenure/postgres"
)

// joinCost is the cost of one join for all other nodes together, in addition to their
// cost at rest.
type joinCost struct {
	Statements float64 `json:"statements"` // those inside of functions too
	Reads      float64 `json:"reads"`      // of the table of nodes, among the statements
	CPU        float64 `json:"server_ms"`
	OwnCPU     float64 `json:"own_server_ms"` // of the node that joins
}

func (j joinCost) String() string {
	return fmt.Sprintf("       a join costs the other nodes together %.1f statements, %.1f of them reads of nodes, and %.1f ms of the server; the node itself %.1f ms", j.Statements, j.Reads, j.CPU, j.OwnCPU)
}

// joinPause is the time between two joins that are measured: each is alone.
const joinPause = time.Second

// stranger is the user of the nodes that join, so that their statements are counted
// separately.
const stranger = "joiner"

const readStatements = `
SELECT sum(calls)::float8, coalesce(sum(calls) FILTER (WHERE query LIKE '%tenure_nodes%'), 0)::float8
FROM pg_stat_statements
WHERE userid = (SELECT oid FROM pg_roles WHERE rolname = current_user)`

// joinCost measures joins of nodes to a crowd at rest.
func (o options) joinCost(ctx context.Context, server *pgserver.Server) (cost joinCost, err error) {
	conn, err := pgx.Connect(ctx, server.DSN())
	if err != nil {
		return cost, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	const setup = `CREATE EXTENSION IF NOT EXISTS pg_stat_statements; CREATE ROLE ` + stranger + ` SUPERUSER LOGIN`
	if _, err := conn.Exec(ctx, setup); err != nil {
		return cost, err
	}
	kinds, err := connections(ctx, server.DSN())
	if err != nil {
		return cost, err
	}
	others := slices.Concat(kinds["session"], kinds["watch"])
	var nodes []*tenure.Node
	backend, err := postgres.New(server.DSNFor(stranger, "postgres"), postgres.Config{})
	if err != nil {
		return cost, err
	}
	defer backend.Close()
	defer func() {
		for _, node := range nodes {
			_ = node.Close(context.WithoutCancel(ctx)) // the server ends with the program
		}
	}()
	window := func(joins bool) (statements, reads float64, used, all time.Duration, err error) {
		var before, readsBefore float64
		if err := conn.QueryRow(ctx, readStatements).Scan(&before, &readsBefore); err != nil {
			return 0, 0, 0, 0, err
		}
		used, all = timeOf(others), serverTime(server.PID())
		began := time.Now()
		for i := range o.joins {
			if joins {
				node, err := tenure.Open(ctx, backend, tenure.Config{Name: fmt.Sprintf("joiner-%d", i), Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					return 0, 0, 0, 0, err
				}
				nodes = append(nodes, node)
			}
			pause(ctx, time.Until(began.Add(time.Duration(i+1)*joinPause)))
		}
		pause(ctx, time.Until(began.Add(time.Duration(o.joins+3)*joinPause))) // watches react up to some seconds later
		used, all = timeOf(others)-used, serverTime(server.PID())-all
		err = conn.QueryRow(ctx, readStatements).Scan(&statements, &reads)
		return statements - before, reads - readsBefore, used, all, err
	}
	restStatements, restReads, rest, restAll, err := window(false)
	if err != nil {
		return cost, err
	}
	statements, reads, used, all, err := window(true)
	each := float64(o.joins)
	cost = joinCost{
		Statements: (statements - restStatements) / each,
		Reads:      (reads - restReads) / each,
		CPU:        milliseconds(used-rest) / each,
		OwnCPU:     milliseconds(all-restAll-(used-rest)) / each,
	}
	return cost, err
}
