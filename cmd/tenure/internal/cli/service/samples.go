package service

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/connect"
	"github.com/exactly-one/tenure/metrics"
	"github.com/exactly-one/tenure/postgres"
)

// Sample writes what the node measures to the database, for the figures of the
// whole cluster, until stop is called. Leases have no place for it, and without a
// server nothing is measured.
func (s *HTTPServer) Sample(ctx context.Context, p *Participant, database *connect.DatabaseFlags) (stop func(), err error) {
	if _, ok := p.Node.Backend().(*postgres.Backend); !ok || s == nil {
		return func() {}, nil
	}
	target, err := database.Target()
	if err != nil {
		return nil, err
	}
	pool, err := target.Pool(ctx, "samples")
	if err != nil {
		return nil, err
	}
	return s.SampleTo(ctx, p, pool, pool.Close)
}

// SampleTo is sample with connections of the caller's, and what to do at the end.
func (s *HTTPServer) SampleTo(ctx context.Context, p *Participant, pool *pgxpool.Pool, end func()) (stop func(), err error) {
	reporter, err := metrics.NewReporter(p.Node, pool, s.Metrics.Registry, metrics.ReporterConfig{})
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
