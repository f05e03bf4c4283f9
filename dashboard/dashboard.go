package dashboard

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/feed"
	"github.com/exactly-one/tenure/internal/httpguard"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/processor"
)

// Config configures a [Dashboard]. Backend must be set.
type Config struct {
	// Backend is the installation to show. It stays the caller's to close, after
	// the dashboard.
	Backend *postgres.Backend

	// Database is where the backend's schema is, for processors and schedules.
	// Without it they are not shown. It must be safe for concurrent use, as a
	// *pgxpool.Pool is.
	Database postgres.Database

	// Alerts, if set, returns the alerts to show. It is called from one goroutine,
	// every few seconds, and should not take longer than a second.
	Alerts func(context.Context) ([]Alert, error)

	// Authentication says who people are. The zero value lets everybody look, and
	// nobody act.
	Authentication Authentication

	// ReadOnly lets nobody act, whoever it is.
	ReadOnly bool

	// BasePath is the path below which the dashboard is mounted, such as
	// "/tenure". Default: the root, also behind http.StripPrefix.
	BasePath string

	// Hosts are names under which the page is asked for besides those of the
	// loopback interface, where it is served on that: another name could be that
	// of a hostile page, which leads its visitors' browsers here. Needed behind
	// a reverse proxy on the same machine that passes the name on. A listener on
	// another address may be asked for under any name, unless some are given.
	Hosts []string

	// Title names the cluster on the page. Default "Tenure".
	Title string

	// Logger is told of actions, refused credentials, and failures to read.
	// Default: nothing is logged.
	Logger *slog.Logger
}

// Alert is the state of an alert rule, as the page shows it.
type Alert struct {
	Name     string            `json:"name"`
	State    string            `json:"state"` // inactive, pending or firing
	Severity string            `json:"severity"`
	Summary  string            `json:"summary"`
	Labels   map[string]string `json:"labels,omitempty"`
	Since    time.Time         `json:"since"` // when it came into the state; zero if unknown
}

// Dashboard serves the page and what it shows. It is safe for concurrent use.
type Dashboard struct {
	config     Config
	log        *slog.Logger
	processors *processor.Admin // nil without a database
	schedules  *cron.Admin
	snapshot   *snapshot
	feed       *feed.Feed
	timelines  *timelines
	guard      *guard
	handler    http.Handler
	streams    *httpguard.Slots
	wake       chan struct{} // to look at the database again

	stop func()
	done chan struct{}
}

// New makes a dashboard and begins to look at the database, until Close. The
// error matches tenure.ErrInvalidConfig. A database that does not answer is no
// error: the page says so, and shows what there is when it does.
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
	d.timelines = newTimelines(config.Backend)
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

// Close ends the streams and the look at the database, and waits for the latter.
// Call it before the HTTP server's Shutdown, which would wait for the streams.
// Requests are answered with what was seen last. It may be called more than once.
func (d *Dashboard) Close() { d.stop() }

// Protect returns a handler for what is served beside the dashboard: it answers
// those who may look at the dashboard, known in the same ways.
func (d *Dashboard) Protect(next http.Handler) http.Handler { return d.guard.reading(next.ServeHTTP) }

// ServeHTTP implements [http.Handler].
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.handler.ServeHTTP(w, r) }

func (c Config) validate() error {
	switch base := c.BasePath; {
	case c.Backend == nil:
		return invalid("the dashboard needs a backend")
	case base == "":
	case base[0] != '/' || len(base) > 1 && strings.HasSuffix(base, "/") || strings.ContainsAny(base, "?#%{}\\ ") ||
		strings.Contains(base, "//") || strings.Contains(base, "..") || strings.ContainsFunc(base, isControl):
		return invalid("the base path %q is not like /tenure", base)
	}
	return c.Authentication.validate()
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
}
