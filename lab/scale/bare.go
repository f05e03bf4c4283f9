package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// bareTable has a row for each pair of connections.
const bareTable = `CREATE TABLE public.pairs (number int PRIMARY KEY, last_heartbeat timestamptz NOT NULL DEFAULT now()) WITH (fillfactor = 50)`

// beat is the time between two heartbeats of a node with the default times.
const beat = 10 * time.Second / 3

// barePair opens what a node cannot do without: a connection that holds a lock and updates
// a row now and then, and one that waits for the lock of a neighbor. It elects nothing.
func barePair(ctx context.Context, dsn string, number int) (leave func(context.Context) error, err error) {
	var conns []*pgx.Conn
	for _, kind := range []string{"session", "watch"} {
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			return nil, err
		}
		config.RuntimeParams["application_name"] = fmt.Sprintf("bare crowd-%d %s", number, kind)
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return nil, err
		}
		conns = append(conns, conn)
	}
	if _, err := conns[0].Exec(ctx, "SELECT pg_advisory_lock(42, $1)", number); err != nil {
		return nil, err
	}
	if _, err := conns[0].Exec(ctx, "INSERT INTO public.pairs (number) VALUES ($1)", number); err != nil {
		return nil, err
	}
	open, done := context.WithCancel(context.WithoutCancel(ctx))
	var group sync.WaitGroup
	group.Go(func() {
		for pause(open, beat); open.Err() == nil; pause(open, beat) {
			_, _ = conns[0].Exec(open, "UPDATE public.pairs SET last_heartbeat = clock_timestamp() WHERE number = $1", number) // the crowd is measured, not the pair
		}
	})
	group.Go(func() {
		for ; open.Err() == nil; pause(open, beat) { // the neighbor may not be there yet
			_, _ = conns[1].Exec(open, "SELECT pg_advisory_xact_lock_shared(42, $1)", number-1) // it ends with the pair
		}
	})
	return func(ctx context.Context) error {
		done()
		group.Wait()
		for _, conn := range conns {
			_ = conn.Close(ctx) // the server ends with the program
		}
		return nil
	}, nil
}
