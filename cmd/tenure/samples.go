package main

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure/metrics"
	"github.com/exactly-one/tenure/postgres"
)

// sample writes what the node measures to the database, for the figures of the
// whole cluster, until stop is called. Leases have no place for it, and without a
// server nothing is measured.
func (s *httpServer) sample(ctx context.Context, p *participant, database *databaseFlags) (stop func(), err error) {
	if _, ok := p.node.Backend().(*postgres.Backend); !ok || s == nil {
		return func() {}, nil
	}
	target, err := database.target()
	if err != nil {
		return nil, err
	}
	pool, err := target.Pool(ctx, "samples")
	if err != nil {
		return nil, err
	}
	return s.sampleTo(ctx, p, pool, pool.Close)
}

// sampleTo is sample with connections of the caller's, and what to do at the end.
func (s *httpServer) sampleTo(ctx context.Context, p *participant, pool *pgxpool.Pool, end func()) (stop func(), err error) {
	reporter, err := metrics.NewReporter(p.node, pool, s.metrics.registry, metrics.ReporterConfig{})
	if err != nil {
		end()
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var reporting sync.WaitGroup
	reporting.Go(func() { _ = reporter.Run(ctx) }) // it always returns nil
	return func() {
		cancel()
		reporting.Wait()
		end()
	}, nil
}
