package alerting

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/schema"
)

// Silence is a time in which matching alerts fire without notifications.
type Silence struct {
	ID        int64
	Rule      string            // empty for all
	Matchers  map[string]string // required labels of an alert, with their values
	Comment   string
	CreatedBy string
	CreatedAt time.Time
	Until     time.Time
	EndedBy   string    // the operator who ended it early, or empty
	EndedAt   time.Time // zero unless an operator ended it early
}

// Matches reports whether an alert of a rule with these labels is silenced.
func (s Silence) Matches(rule string, labels map[string]string) bool {
	if s.Rule != "" && s.Rule != rule {
		return false
	}
	for name, value := range s.Matchers {
		if has, ok := labels[name]; !ok || has != value {
			return false
		}
	}
	return true
}

// Silencing returns the longest lasting silence of an alert, or nil.
func Silencing(silences []Silence, rule string, labels map[string]string) *Silence {
	var longest *Silence
	for i, s := range silences {
		if s.Matches(rule, labels) && (longest == nil || s.Until.After(longest.Until)) {
			longest = &silences[i]
		}
	}
	return longest
}

// ReadSilences reads the current silences.
func ReadSilences(ctx context.Context, t schema.Tables) ([]Silence, error) {
	rows, _ := t.Query(ctx, readActiveSilences)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Silence, err error) {
		return s, row.Scan(&s.ID, &s.Rule, &s.Matchers, &s.CreatedBy, &s.Until)
	})
	if err != nil {
		return nil, fmt.Errorf("read the silences: %w", err)
	}
	return all, nil
}
