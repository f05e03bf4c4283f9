package metrics

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/sweeps"
	"github.com/exactly-one/tenure/internal/wakeup"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/processor"
)

// WorkConfig configures [Work]. The zero value is ready to use.
type WorkConfig struct {
	// Interval is the time between two reads. Default 15 s; at least 1 s.
	Interval time.Duration
	// Logger receives errors. Default slog.Default().
	Logger *slog.Logger
}

const (
	defaultReadInterval = 15 * time.Second
	leastReadInterval   = time.Second
)

// Work collects
//
//   - the state of the processors and schedules of an installation, under
//     PREFIX_processor_ and PREFIX_cron_,
//   - the state of the retention, under PREFIX_retention_,
//   - the recorded outages of its database and times without a working leader, under
//     PREFIX_cluster_.
//
// It serves the values of the last read by Run, so scrapes never query the database.
//
// Every process with a collector of Work reports the same values, apart from delays:
// aggregate them with max, not sum, and collect Work in few processes.
type Work struct {
	backend    *postgres.Backend
	database   postgres.Database
	processors *processor.Admin
	schedules  *cron.Admin
	interval   time.Duration
	log        *slog.Logger
	last       atomic.Pointer[reading]

	families families
	readAt   family
	processorFamilies
	scheduleFamilies
	outageFamilies    outageFamilies
	silenceFamilies   silenceFamilies
	retentionFamilies retentionFamilies
}

// reading is the result of a read.
type reading struct {
	at         time.Time
	processors []processor.Status
	lags       map[string]processor.Lag // by the processor's name
	horizon    processor.Horizon
	schedules  []cron.Status
	outages    outages
	silences   *silences
	retention  []sweeps.Status
}

var _ prometheus.Collector = (*Work)(nil)

// NewWork returns a collector for the processors and schedules in a backend's
// schema. database must be the backend's database; its user needs the
// privileges of [postgres.Backend.WorkGrants]. Up to [Config.MaxRoles]
// processors and as many schedules have their own series; beyond that they are
// summed under an empty name, like roles.
func NewWork(backend *postgres.Backend, database postgres.Database, config Config, work WorkConfig) *Work {
	config = config.withDefaults()
	f := newFamilies(config, "work")
	c := &Work{
		backend:    backend,
		database:   database,
		processors: processor.NewAdmin(backend, database),
		schedules:  cron.NewAdmin(backend, database),
		interval:   max(cmp.Or(work.Interval, defaultReadInterval), leastReadInterval),
		log:        cmp.Or(work.Logger, slog.Default()),

		readAt:            f.gauge("read_timestamp_seconds", "When the state of processors and schedules was read from the database."),
		processorFamilies: newProcessorFamilies(config),
		scheduleFamilies:  newScheduleFamilies(config),
		outageFamilies:    newOutageFamilies(config),
		silenceFamilies:   newSilenceFamilies(config),
		retentionFamilies: newRetentionFamilies(config),
	}
	c.families = f
	return c
}

// Run reads the database immediately and then every interval, until ctx ends,
// and returns nil then. After a failed read, the previous values are served;
// the reason is logged once per outage. No read takes longer than the interval.
// Run must not be called concurrently.
func (c *Work) Run(ctx context.Context) error {
	failing := false
	for ctx.Err() == nil {
		err := c.read(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil && !failing:
			c.log.Warn("reading the state of processors and schedules failed", "error", err, "again_every", c.interval)
		case err == nil && failing:
			c.log.Info("the state of processors and schedules is read again")
		}
		failing = err != nil
		wakeup.Sleep(ctx, jitter(c.interval))
	}
	return nil
}

func (c *Work) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.interval)
	defer cancel()
	next := &reading{lags: map[string]processor.Lag{}}
	var err error
	if next.processors, err = c.processors.List(ctx); err != nil {
		return err
	}
	if len(next.processors) > 0 {
		if err := c.readLags(ctx, next); err != nil {
			return err
		}
	}
	if next.schedules, err = c.schedules.List(ctx); err != nil {
		return err
	}
	previous := c.last.Load()
	if previous == nil {
		previous = &reading{silences: &silences{}}
	}
	if next.outages, err = c.readOutages(ctx, previous.outages); err != nil {
		return err
	}
	if next.silences, err = c.readSilences(ctx, previous.silences); err != nil {
		return err
	}
	if next.retention, err = c.readRetention(ctx); err != nil {
		return err
	}
	next.at = time.Now()
	c.last.Store(next)
	return nil
}

func (c *Work) readLags(ctx context.Context, into *reading) error {
	lags, err := c.processors.Lag(ctx)
	if err != nil {
		return err
	}
	for _, lag := range lags {
		into.lags[lag.Name] = lag
	}
	into.horizon, err = c.processors.Horizon(ctx)
	return err
}

// Describe implements [prometheus.Collector].
func (c *Work) Describe(to chan<- *prometheus.Desc) {
	for _, f := range c.all() {
		f.describe(to)
	}
}

func (c *Work) all() []families {
	return []families{c.families, c.processorFamilies.families, c.scheduleFamilies.families, c.outageFamilies.families, c.silenceFamilies.families, c.retentionFamilies.families}
}

func (c *Work) definitions() []Definition {
	var all []Definition
	for _, f := range c.all() {
		all = slices.Concat(all, f.made)
	}
	return all
}

// Collect implements [prometheus.Collector]. Before the first read there is
// nothing to collect.
func (c *Work) Collect(to chan<- prometheus.Metric) {
	last := c.last.Load()
	if last == nil {
		return
	}
	c.readAt.send(to, seconds(last.at))
	c.processorFamilies.collect(to, last)
	c.scheduleFamilies.collect(to, last.schedules)
	if last.outages.known {
		c.outageFamilies.collect(to, last.outages)
	}
	c.silenceFamilies.collect(to, last.silences)
	c.retentionFamilies.collect(to, last.retention)
}
