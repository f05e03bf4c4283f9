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
	// Backend is the installation to show. The caller must close it after the
	// dashboard.
	Backend *postgres.Backend

	// Database is where the backend's schema is, for processors and schedules.
	// Without it they are not shown. It must be safe for concurrent use, as a
	// *pgxpool.Pool is.
	Database postgres.Database

	// Alerts, if set, returns the alerts to show. It is called from one goroutine,
	// every few seconds, and should not take longer than a second.
	Alerts func(context.Context) ([]Alert, error)

	// HandleAlert, if set, silences and acknowledges alerts, and ends silences, for users
	// with the right to act. An error may match [ErrNoAlert] or tenure.ErrInvalidConfig.
	HandleAlert func(context.Context, AlertRequest) error

	// Authentication configures how visitors authenticate. With the zero value,
	// all visitors may view and none may act.
	Authentication Authentication

	// With ReadOnly, no user may act.
	ReadOnly bool

	// BasePath is the path of the dashboard, such as "/tenure". Default: the root, also
	// behind http.StripPrefix.
	BasePath string

	// Hosts are additional host names for requests, if the page is served on the loopback
	// interface. The interface's own names are always allowed. Another name could belong
	// to a hostile page that directs its visitors' browsers here. Hosts is needed behind
	// a reverse proxy on the same machine that forwards the name. A listener on another
	// address accepts every name, unless Hosts is set.
	Hosts []string

	// Title names the cluster on the page. Default "Tenure".
	Title string

	// Links are shown on the pages of roles, nodes and alerts, at most 20 on each kind.
	Links []Link

	// MetricsPrefix begins the names of the metrics in the stored samples, the source of
	// the graphs, as in metrics.Config. Default "tenure".
	MetricsPrefix string

	// Logger receives actions, refused credentials, and failures to read.
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
	Since    time.Time         `json:"since"` // when the fault began; zero if unknown

	Description string `json:"description,omitempty"`
	Runbook     string `json:"runbook,omitempty"`  // the address of a page on what to do
	Incident    string `json:"incident,omitempty"` // what had happened when it fired
	// Problem is why the condition cannot be evaluated, if it cannot: no state is true then.
	Problem string `json:"problem,omitempty"`

	// Role is the subject of the alert, for links, if its label role does not name it.
	Role string `json:"-"`
	// Links follow the links of [Config.Links]; only addresses of the web are shown.
	Links []LinkAddress `json:"links,omitempty"`

	// Who acknowledged or silenced it, and until when; empty and zero if no user did.
	AcknowledgedBy    string    `json:"acknowledged_by,omitempty"`
	AcknowledgedUntil time.Time `json:"acknowledged_until,omitzero"`
	SilencedBy        string    `json:"silenced_by,omitempty"`
	SilencedUntil     time.Time `json:"silenced_until,omitzero"`
}

// Dashboard serves the page and its data. It is safe for concurrent use.
type Dashboard struct {
	config     Config
	log        *slog.Logger
	processors *processor.Admin // nil without a database
	schedules  *cron.Admin
	snapshot   *snapshot
	feed       *feed.Feed
	timelines  *timelines
	audit      *auditLog // nil without a database
	shared     *sharedReads
	lags       *lagSeries
	samples    *samples     // nil without a database
	graphs     *sharedReads // of the samples
	guard      *guard
	handler    http.Handler
	streams    *httpguard.Slots
	audience   *audience
	wake       chan struct{} // to read the database again

	stop func()
	done chan struct{}
}

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

// Close ends the streams and the reads of the database, and waits for the reads. Call it
// before the HTTP server's Shutdown, which would wait for the streams. Later requests get
// the last known state. It may be called more than once.
func (d *Dashboard) Close() { d.stop() }

// Protect returns a handler for other pages of the same server: it answers visitors with
// access to the dashboard, authenticated in the same ways.
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
	if err := checkLinks(c.Links); err != nil {
		return err
	}
	return c.Authentication.validate()
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
}
