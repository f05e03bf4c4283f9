package service

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/metrics"
	"github.com/exactly-one/tenure/postgres"
)

// sample writes the node's metrics to the database, for the metrics of the whole cluster,
// until stop is called. It uses pool, or a separate pool if pool is nil. With leases or
// without a server it does nothing.
func (s *HTTPServer) sample(ctx context.Context, p *Participant, database *connect.DatabaseFlags, pool *pgxpool.Pool) (stop func(), err error) {
	if _, ok := p.Node.Backend().(*postgres.Backend); !ok || s == nil {
		return func() {}, nil
	}
	end := func() {}
	if pool == nil {
		target, err := database.Target()
		if err != nil {
			return nil, err
		}
		if pool, err = target.Pool(ctx, "samples"); err != nil {
			return nil, err
		}
		end = pool.Close
	}
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
