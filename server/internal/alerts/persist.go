package alerts

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/alerting"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/server/internal/notifiers"
	"github.com/exactly-one/tenure/server/internal/series"
)

// tables are the tables of alerts in a database.
type tables struct {
	schema.Tables
	backend  *postgres.Backend
	database postgres.Database
}

func tablesOf(backend *postgres.Backend, database postgres.Database) tables {
	return tables{alerting.Tables(backend, database), backend, database}
}

// storedRule is a rule as the leader reads it.
type storedRule struct {
	Rule
	lastError string
}

// readRules returns the time by the database's clock, and all rules.
func (t tables) readRules(ctx context.Context) (now time.Time, rules []storedRule, err error) {
	rows, _ := t.database.Query(ctx, t.SQL(readRules)) // its error is that of the rows
	var (
		name, condition, severity, lastError *string
		description, runbook                 *string
		length                               *int64
		labels, annotations                  map[string]string
		notify                               []string
	)
	into := []any{&now, &name, &condition, &length, &severity, &labels, &annotations, &description, &runbook, &notify, &lastError}
	_, err = pgx.ForEachRow(rows, into, func() error {
		if name != nil {
			rules = append(rules, storedRule{Rule{
				Name: *name, Condition: *condition, For: time.Duration(*length) * time.Millisecond, Severity: *severity,
				Labels: labels, Annotations: annotations, Description: *description, Runbook: *runbook, Notify: notify,
			}, *lastError})
		}
		labels, annotations, notify = nil, nil, nil // the next row must not write into these
		return nil
	})
	if err != nil {
		return time.Time{}, nil, fmt.Errorf("read the alert rules: %w", err)
	}
	return now, rules, nil
}

// readKnown returns the cluster's roles and nodes.
func (t tables) readKnown(ctx context.Context) (roles []string, nodes []series.Node, err error) {
	rows, _ := t.database.Query(ctx, t.SQL(readRoles))
	if roles, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		return nil, nil, fmt.Errorf("read the roles: %w", err)
	}
	rows, _ = t.database.Query(ctx, t.SQL(readNodes))
	if nodes, err = pgx.CollectRows(rows, pgx.RowToStructByPos[series.Node]); err != nil {
		return nil, nil, fmt.Errorf("read the nodes: %w", err)
	}
	return roles, nodes, nil
}

// settledAlerts returns all alerts when no change of them is in flight. A round with
// older alerts would send a notification twice.
func (t tables) settledAlerts(ctx context.Context) (map[alertKey]alert, error) {
	err := pgx.BeginFunc(ctx, beginner{t.database}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, t.SQL(settleStates))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("wait for changes of alerts: %w", err)
	}
	return t.readAlerts(ctx)
}

// readAlerts returns all pending or firing alerts.
func (t tables) readAlerts(ctx context.Context) (map[alertKey]alert, error) {
	rows, _ := t.database.Query(ctx, t.SQL(readStates))
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a alert, err error) {
		var fired, vacant, acked *time.Time
		err = row.Scan(&a.Rule, &a.Fingerprint, &a.State, &a.Severity, &a.Labels, &a.Annotations, &a.Value, &a.ActiveAt, &fired, &a.Notified,
			&vacant, &a.GroupKey, &a.Incident, &a.AckedBy, &acked)
		a.FiredAt, a.VacantSince, a.AckedUntil = orZero(fired), orZero(vacant), orZero(acked)
		return a, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the alerts: %w", err)
	}
	present := make(map[alertKey]alert, len(all))
	for _, a := range all {
		present[a.key()] = a
	}
	return present, nil
}

// orZero returns the zero time for null.
func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// record is an alert, or a notification, as a statement takes it.
type record struct {
	Rule        string            `json:"rule"`
	Fingerprint string            `json:"fingerprint"`
	State       State             `json:"state,omitempty"`
	Notifier    string            `json:"notifier,omitempty"`
	Address     string            `json:"address,omitempty"`
	Severity    string            `json:"severity"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Value       string            `json:"value"`
	ActiveAt    time.Time         `json:"active_at,omitzero"`
	FiredAt     time.Time         `json:"fired_at,omitzero"`
	StartedAt   time.Time         `json:"started_at,omitzero"`
	EndedAt     time.Time         `json:"ended_at,omitzero"`
	Notified    []string          `json:"notified"`
	Since       time.Time         `json:"since,omitzero"`
	VacantSince time.Time         `json:"vacant_since,omitzero"`
	GroupKey    string            `json:"group_key"`
	Incident    string            `json:"incident"`
	Silenced    bool              `json:"silenced"`
	SilencedBy  string            `json:"silenced_by"`
}

func newRecord(a alert) record {
	return record{
		Rule: a.Rule, Fingerprint: a.Fingerprint, State: a.State, Severity: a.Severity,
		Labels: a.Labels, Annotations: a.Annotations, Value: written64(a.Value),
		ActiveAt: a.ActiveAt, FiredAt: a.FiredAt, Notified: append([]string{}, a.Notified...),
		Since: a.since(), VacantSince: a.VacantSince, GroupKey: a.GroupKey, Incident: a.Incident, SilencedBy: a.SilencedBy,
	}
}

func written64(value float64) string {
	if math.IsInf(value, 1) {
		return "Infinity"
	}
	return strconv.FormatFloat(value, 'g', -1, 64)
}

// write commits a change, and the notifications of it, if the term is valid.
func (t tables) write(ctx context.Context, term *tenure.Term, c change) error {
	states, notified := []record{}, []record{}
	removed, unacked := columnsOf(c.removed), columnsOf(c.unacked)
	for _, a := range c.written {
		states = append(states, newRecord(a))
	}
	for _, n := range c.notify {
		r := newRecord(n.alert)
		r.Notifier, r.Address = notifiers.NameOf(n.address), n.address
		r.StartedAt, r.EndedAt, r.Silenced = n.alert.FiredAt, n.endedAt, n.silenced
		notified = append(notified, r)
	}
	err := postgres.InTx(ctx, t.database, term, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, t.SQL(removeStates), removed[0], removed[1]); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, t.SQL(endHistory), removed[0], removed[1]); err != nil {
			return err
		}
		if err := t.execJSON(ctx, tx, writeStates, states); err != nil {
			return err
		}
		if err := t.execJSON(ctx, tx, writeHistory, states); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, t.SQL(endAcks), unacked[0], unacked[1], MaxAttention.Milliseconds()); err != nil {
			return err
		}
		return t.execJSON(ctx, tx, writeNotifications, notified, term.Number())
	})
	if err != nil {
		return fmt.Errorf("write the alerts: %w", err)
	}
	return nil
}

// columnsOf returns the rules and the fingerprints of alerts.
func columnsOf(keys []alertKey) (columns [2][]string) {
	for _, key := range keys {
		columns[0], columns[1] = append(columns[0], key.rule), append(columns[1], key.fingerprint)
	}
	return columns
}

// mostRecords is how many records one statement takes: PostgreSQL bounds the size
// of a JSON value, and a storm of alerts need not be in memory twice.
const mostRecords = 1000

// execJSON runs a statement on records, as often as it takes.
func (t tables) execJSON(ctx context.Context, tx pgx.Tx, sql string, records []record, args ...any) error {
	for some := range slices.Chunk(records, mostRecords) {
		encoded, err := json.Marshal(some)
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		if _, err := tx.Exec(ctx, t.SQL(sql), append([]any{string(encoded)}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

// writeErrors records the failed evaluations of conditions.
func (t tables) writeErrors(ctx context.Context, rules []storedRule, outcomes []outcome) error {
	for i, o := range outcomes {
		text := ""
		if o.err != nil {
			text = storable(o.err.Error(), maxError)
		}
		if text == rules[i].lastError {
			continue
		}
		if _, err := t.database.Exec(ctx, t.SQL(writeRuleError), o.rule.Name, text); err != nil {
			return fmt.Errorf("note the error of a rule: %w", err)
		}
	}
	return nil
}

// beginner begins transactions with default options.
type beginner struct{ postgres.Pool }

func (b beginner) Begin(ctx context.Context) (pgx.Tx, error) { return b.BeginTx(ctx, pgx.TxOptions{}) }
