package dashboard

import (
	"context"
	"log/slog"
	"sync"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/httpguard"
	"github.com/exactly-one/tenure/processor"
)

// New creates a dashboard. It reads the database until Close while it has viewers: open
// streams, or requests of the last 30 s. The error matches tenure.ErrInvalidConfig. An
// unreachable database is no error: the page reports it, and shows its data as soon as
// the database answers.
func New(config Config) (*Dashboard, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	if config.Title == "" {
		config.Title = "Tenure"
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	d := &Dashboard{
		config: config, log: config.Logger, snapshot: newSnapshot(), feed: newFeed(),
		streams: httpguard.NewSlots(maxStreams, eachStreams), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	d.audience = newAudience(d.streams.Open)
	d.timelines = newTimelines(config.Backend)
	d.audit = newAuditLog(config)
	d.shared, d.lags = newSharedReads(sharedAge, sharedTimeout), newLagSeries()
	d.samples, d.graphs = newSamples(config), newSharedReads(sampleAge, sampleTimeout)
	d.guard = newGuard(config)
	if config.Database != nil {
		d.processors = processor.NewAdmin(config.Backend, config.Database)
		d.schedules = cron.NewAdmin(config.Backend, config.Database)
	}
	d.handler = d.routes()
	d.stop = sync.OnceFunc(func() {
		cancel()
		<-d.done
		d.feed.Close()
	})
	go func() {
		defer close(d.done)
		d.watch(ctx)
	}()
	return d, nil
}
