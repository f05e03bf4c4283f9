package dashboard

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/program/link"
	"github.com/exactly-one/tenure/postgres"
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
	Since    time.Time         `json:"since,omitzero"` // when the fault began; zero if unknown

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

// AlertRequest is a user's request about alerts: to silence or to acknowledge them, or to
// end their silences.
type AlertRequest struct {
	Acknowledge bool
	Unsilence   bool              // without Acknowledge and Unsilence: silence
	Name        string            // of the rule
	Labels      map[string]string // that the alerts have; of a silence empty for all alerts of the rule
	For         time.Duration     // how long; 0 with Unsilence
	Comment     string
	By          string // the user
}

// silenced reports whether an alert is silenced: its receivers are not notified.
func (a Alert) silenced() bool { return a.SilencedBy != "" }

// Link is a template of links to another site, for the pages of roles, nodes and alerts:
// to logs, traces, graphs or a runbook.
type Link = link.Template

// LinkAddress is a link as the page shows it.
type LinkAddress = link.Address

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

func (a Authentication) validate() error {
	switch {
	case a.SignOn != nil && (a.SignOn.Begin == nil || a.SignOn.Finish == nil):
		return invalid("SignOn requires Begin and Finish")
	case a.UserHeader != "" && len(a.TrustedProxies) == 0:
		return invalid("UserHeader requires TrustedProxies: otherwise any client could send it")
	case slices.ContainsFunc(a.TrustedProxies, func(p netip.Prefix) bool { return !p.IsValid() }):
		return invalid("a prefix in TrustedProxies is not valid")
	default:
		return nil
	}
}

// checkLinks checks links, and their number.
func checkLinks(links []Link) error {
	counts := map[string]int{}
	for _, l := range links {
		if err := l.Check(); err != nil {
			return err
		}
		if counts[l.On]++; counts[l.On] > link.Most {
			return invalid("there are more than %d links on a %s", link.Most, l.On)
		}
	}
	return nil
}
