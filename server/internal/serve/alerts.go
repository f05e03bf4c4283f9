package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure/internal/program/alerting"
	"github.com/exactly-one/tenure/internal/program/service"
	"github.com/exactly-one/tenure/internal/program/settings"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/server/dashboard"
	"github.com/exactly-one/tenure/server/internal/alerts"
	"github.com/exactly-one/tenure/server/internal/notifiers"
)

// liveAlerts holds the alerts of the configuration file, which may change while the
// program runs.
type liveAlerts struct {
	engine *alerts.Engine
	from   *settings.Configuration

	mu  sync.Mutex
	set notifiers.Set
}

func openLiveAlerts(from *settings.Configuration, config alerts.Config) (*liveAlerts, error) {
	set, err := notifiers.Open(from.File.Notifiers())
	if err != nil {
		return nil, err
	}
	config.Rules, config.Notifiers = from.File.Alerts(), set
	engine, err := alerts.New(config)
	if err != nil {
		set.Close()
		return nil, err
	}
	return &liveAlerts{engine: engine, from: from, set: set}, nil
}

// reload rereads the alerts and notifiers from the file.
func (l *liveAlerts) reload(string) error {
	set, err := notifiers.Open(l.from.File.Notifiers())
	if err != nil {
		return err
	}
	if err := l.engine.Reload(l.from.File.Alerts(), set); err != nil {
		set.Close()
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set.Close()
	l.set = set
	return nil
}

func (l *liveAlerts) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set.Close()
}

// shown returns the dashboard's function to read the alerts of the database.
func (*liveAlerts) shown(p *service.Participant, pool *pgxpool.Pool) func(context.Context) ([]dashboard.Alert, error) {
	backend := p.Node.Backend().(*postgres.Backend)
	return func(ctx context.Context) ([]dashboard.Alert, error) {
		list, err := alerting.List(ctx, backend, pool)
		if err != nil {
			return nil, err
		}
		return shownAlerts(list), nil
	}
}

// handle returns the dashboard's function for its users to silence and acknowledge
// alerts, and to end silences.
func (*liveAlerts) handle(p *service.Participant, pool *pgxpool.Pool) func(context.Context, dashboard.AlertRequest) error {
	admin := alerts.NewAdmin(p.Node.Backend().(*postgres.Backend), pool)
	return func(ctx context.Context, r dashboard.AlertRequest) error {
		if r.Unsilence {
			err := admin.UnsilenceAlert(ctx, r.Name, r.Labels, r.By)
			if errors.Is(err, alerts.ErrNoSilence) {
				err = fmt.Errorf("%w: %w", dashboard.ErrNoAlert, err)
			}
			return err
		}
		if !r.Acknowledge {
			_, err := admin.Silence(ctx, alerts.Silence{Rule: r.Name, Matchers: r.Labels, Comment: r.Comment, CreatedBy: r.By}, r.For)
			return err
		}
		_, err := admin.Acknowledge(ctx, r.Name, r.Labels, r.By, r.For)
		if errors.Is(err, alerts.ErrNotFiring) {
			err = fmt.Errorf("%w: %w", dashboard.ErrNoAlert, err)
		}
		return err
	}
}

// maxShown is how many alerts of one rule the page shows: every viewer receives
// all of them after each change.
const maxShown = 100

// shownAlerts returns alerts as the page shows them: the worst first, then firing alerts,
// then the oldest; rules without alerts come last. Of a rule with many alerts it returns
// the firing and the oldest.
func shownAlerts(list []alerts.Status) []dashboard.Alert {
	all := []dashboard.Alert{}
	for _, rule := range list {
		role, problem := alerts.RoleOf(rule.Rule), cmp.Or(rule.Problem, strings.Join(alerts.UnknownMetrics(rule.Condition, ""), "; "))
		if len(rule.Alerts) == 0 {
			all = append(all, dashboard.Alert{
				Name: rule.Name, State: string(rule.State), Severity: rule.Severity, Summary: rule.Condition, Labels: rule.Labels, Role: role,
				Problem: problem, SilencedBy: rule.SilencedBy, SilencedUntil: rule.SilencedUntil,
			})
		}
		slices.SortStableFunc(rule.Alerts, func(a, b alerts.Alert) int { return strings.Compare(string(a.State), string(b.State)) })
		for _, one := range rule.Alerts[:min(len(rule.Alerts), maxShown)] {
			all = append(all, dashboard.Alert{
				Name: rule.Name, State: string(one.State), Severity: rule.Severity, Labels: one.Labels, Role: role, Since: one.Since(), Problem: problem,
				Summary: summaryOf(rule, one), Description: one.Annotations["description"], Runbook: one.Annotations["runbook"], Incident: one.Incident,
				AcknowledgedBy: one.AckedBy, AcknowledgedUntil: one.AckedUntil, SilencedBy: one.SilencedBy, SilencedUntil: one.SilencedUntil,
			})
		}
		if more := len(rule.Alerts) - maxShown; more > 0 {
			all = append(all, dashboard.Alert{
				Name: rule.Name, State: string(rule.Alerts[len(rule.Alerts)-1].State), Severity: rule.Severity,
				Summary: fmt.Sprintf("and %d more: see tenure alerts list -o json", more),
			})
		}
	}
	slices.SortStableFunc(all, compareAlerts)
	return all
}

// compareAlerts orders alerts by how urgent they are. An alert with a failed evaluation
// is not inactive.
func compareAlerts(a, b dashboard.Alert) int {
	inactive := func(a dashboard.Alert) int {
		if a.State == string(alerts.Inactive) && a.Problem == "" {
			return 1
		}
		return 0
	}
	return cmp.Or(inactive(a)-inactive(b), slices.Index(alerting.Severities, b.Severity)-slices.Index(alerting.Severities, a.Severity),
		strings.Compare(a.State, b.State)) // firing comes before pending
}

// summaryOf returns an alert's summary from the usual annotations.
func summaryOf(rule alerts.Status, one alerts.Alert) string {
	for _, name := range []string{"summary", "description"} {
		if text := one.Annotations[name]; text != "" {
			return text
		}
	}
	return rule.Condition
}
