package alerting

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/postgres"
)

// Status is a rule and its state.
type Status struct {
	Rule
	ChangedAt time.Time
	ChangedBy string // the node with this rule in its configuration
	// Problem is why the condition could not be evaluated; empty if it could.
	Problem string
	State   State // of the worst alert
	Alerts  []Alert
	// Who silences the rule, for all or some of its alerts, and until when; empty and zero if no
	// operator does.
	SilencedBy    string
	SilencedUntil time.Time
	// The counts of pending and failed notifications, and the newest reason.
	PendingNotifications, FailedNotifications int
	NotificationProblem                       string
}

// Alert is a pending or firing series of a rule.
type Alert struct {
	State               State
	Labels, Annotations map[string]string
	Value               float64 // when it became what it is
	ActiveAt            time.Time
	FiredAt             time.Time // zero while pending
	VacantSince         time.Time // zero if unknown
	Incident            string    // the incident when it fired, or empty
	AckedBy             string    // empty unless it is acknowledged
	AckedUntil          time.Time
	SilencedBy          string // empty unless it is silenced
	SilencedUntil       time.Time
}

// Since returns since when the fault has lasted, as messages say it: since the role has been vacant,
// if that is known, or the condition has held.
func (a Alert) Since() time.Time {
	if !a.VacantSince.IsZero() && a.VacantSince.Before(a.ActiveAt) {
		return a.VacantSince
	}
	return a.ActiveAt
}

// List returns all rules of a database with their state, in the order of the
// configuration. The database's user needs the privileges of
// [postgres.Backend.WorkGrants].
func List(ctx context.Context, backend *postgres.Backend, database postgres.Database) ([]Status, error) {
	t := tables{Tables(backend, database)}
	if exist, err := t.Exist(ctx); err != nil || !exist {
		return nil, err
	}
	rows, _ := t.Query(ctx, listRules)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Status, error) {
		var length int64
		s := Status{State: Inactive}
		err := row.Scan(&s.Name, &s.Condition, &length, &s.Severity, &s.Labels, &s.Annotations, &s.Description, &s.Runbook, &s.Notify, &s.ChangedAt, &s.ChangedBy, &s.Problem)
		s.For = time.Duration(length) * time.Millisecond
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the alert rules: %w", err)
	}
	byName := map[string]*Status{}
	for i := range all {
		byName[all[i].Name] = &all[i]
	}
	present, err := t.readAlerts(ctx)
	if err != nil {
		return nil, err
	}
	silences, err := ReadSilences(ctx, t.Tables)
	if err != nil {
		return nil, err
	}
	assign(byName, present, silences)
	for i := range all {
		slices.SortFunc(all[i].Alerts, func(a, b Alert) int { return a.ActiveAt.Compare(b.ActiveAt) })
	}
	return all, t.countNotifications(ctx, byName)
}

// assign gives each rule its alerts and its silence.
func assign(byName map[string]*Status, present []storedAlert, silences []Silence) {
	for _, silence := range silences {
		if s := byName[silence.Rule]; s != nil && silence.Until.After(s.SilencedUntil) {
			s.SilencedBy, s.SilencedUntil = silence.CreatedBy, silence.Until
		}
	}
	for _, a := range present {
		s := byName[a.rule]
		if s == nil {
			continue
		}
		if silence := Silencing(silences, a.rule, a.Labels); silence != nil {
			a.SilencedBy, a.SilencedUntil = silence.CreatedBy, silence.Until
		}
		s.Alerts = append(s.Alerts, a.Alert)
		if a.State == Firing || s.State == Inactive {
			s.State = a.State
		}
	}
}

// storedAlert is an alert with the name of its rule.
type storedAlert struct {
	Alert
	rule string
}

// readAlerts returns all pending or firing alerts.
func (t tables) readAlerts(ctx context.Context) ([]storedAlert, error) {
	rows, _ := t.Query(ctx, listAlerts)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a storedAlert, err error) {
		var fired, vacant, acked *time.Time
		err = row.Scan(&a.rule, &a.State, &a.Labels, &a.Annotations, &a.Value, &a.ActiveAt, &fired, &vacant, &a.Incident, &a.AckedBy, &acked)
		a.FiredAt, a.VacantSince, a.AckedUntil = orZero(fired), orZero(vacant), orZero(acked)
		return a, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the alerts: %w", err)
	}
	return all, nil
}

// orZero is a time that may be null.
func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func (t tables) countNotifications(ctx context.Context, byName map[string]*Status) error {
	rows, _ := t.Query(ctx, countNotifications)
	var (
		rule, problem   string
		pending, failed int
	)
	_, err := pgx.ForEachRow(rows, []any{&rule, &pending, &failed, &problem}, func() error {
		if s := byName[rule]; s != nil {
			s.PendingNotifications, s.FailedNotifications, s.NotificationProblem = pending, failed, problem
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the notifications: %w", err)
	}
	return nil
}
