package metrics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/features"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/internal/wakeup"
	"github.com/exactly-one/tenure/postgres"
)

// ReporterConfig configures a [Reporter]. The zero value is ready to use.
type ReporterConfig struct {
	// Interval is the time between two samples; each is up to a tenth of it early or late:
	// nodes started together spread out. Default 10 s; at least 100 ms.
	Interval time.Duration
}

const (
	defaultReportInterval = 10 * time.Second
	leastReportInterval   = 100 * time.Millisecond
)

// Reporter writes samples of a process's metrics to the database; [ReadSamples] finds the
// samples of all nodes there. Each sample is one statement, which also deletes old ones.
// All samples are kept for ten minutes, one per minute for six hours, and one per five
// minutes until it is a day old. Samples larger than 4 kB are kept less often.
type Reporter struct {
	tables   schema.Tables
	database postgres.Database
	gatherer prometheus.Gatherer
	interval time.Duration
	node     *tenure.Node
	log      *slog.Logger
	kept     keeping // used by Run
}

// NewReporter returns a reporter for a registry in a node's process. The node must use a
// [postgres.Backend], and database must be its database. The database user needs the
// privileges of [postgres.Backend.WorkGrants]. The error matches tenure.ErrUnsupported or
// tenure.ErrInvalidConfig.
func NewReporter(node *tenure.Node, database postgres.Database, gatherer prometheus.Gatherer, config ReporterConfig) (*Reporter, error) {
	backend, ok := node.Backend().(*postgres.Backend)
	if !ok {
		return nil, fmt.Errorf("%w: samples are written to PostgreSQL; the node is on a %T", tenure.ErrUnsupported, node.Backend())
	}
	config.Interval = cmp.Or(config.Interval, defaultReportInterval)
	if config.Interval < leastReportInterval {
		return nil, fmt.Errorf("%w: the interval is %v; it must be at least %v", tenure.ErrInvalidConfig, config.Interval, leastReportInterval)
	}
	return &Reporter{
		tables: tablesOf(backend, database), database: database, gatherer: gatherer, interval: config.Interval, node: node, log: node.Logger(),
	}, nil
}

// tablesOf returns the tables of samples.
func tablesOf(backend *postgres.Backend, database schema.Querier) schema.Tables {
	return schema.Tables{Schema: schema.Of(backend), Feature: features.Samples, Database: database}
}

// Run writes a sample immediately and then every interval, until ctx ends, and returns nil
// then. If a sample cannot be written, it is lost; the reason is logged once per outage.
// No attempt takes longer than the interval. Run must not be called concurrently.
func (r *Reporter) Run(ctx context.Context) error {
	failing := false
	for ctx.Err() == nil {
		err := r.report(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil && !failing:
			r.log.Warn("writing a metrics sample failed", "error", err, "again_every", r.interval)
		case err == nil && failing:
			r.log.Info("metrics samples are written again")
		}
		failing = err != nil
		wakeup.Sleep(ctx, jitter(r.interval))
	}
	return nil
}

// jitter returns a duration up to a tenth shorter or longer.
func jitter(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5)
}

func (r *Reporter) report(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.interval)
	defer cancel()
	families, err := r.gatherer.Gather()
	if len(families) == 0 { // on a partial failure, write the gathered rest
		return err
	}
	body, encodeErr := encodeSample(families)
	if encodeErr != nil {
		return errors.Join(err, encodeErr)
	}
	becomes, kept := r.kept.next(time.Now(), len(body))
	writeErr := r.tables.Create(ctx)
	if writeErr == nil {
		_, writeErr = r.database.Exec(ctx, r.tables.SQL(writeSample),
			r.node.ID(), r.node.Name(), sampleFormat, body, becomes.keep.Milliseconds(), becomes.lasting, becomes.first)
	}
	if writeErr == nil {
		r.kept = kept
	}
	return errors.Join(err, writeErr)
}
