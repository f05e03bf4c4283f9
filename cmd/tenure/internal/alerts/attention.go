package alerts

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Silence is a time in which alerts that match it fire without notifications.
type Silence struct {
	ID        int64
	Rule      string            // empty for all
	Matchers  map[string]string // labels that an alert must have, with their values
	Comment   string
	CreatedBy string
	CreatedAt time.Time
	Until     time.Time
	EndedBy   string    // the operator who ended it early, or empty
	EndedAt   time.Time // zero unless an operator ended it early
}

// matches reports whether an alert of a rule with these labels is silenced.
func (s Silence) matches(rule string, labels map[string]string) bool {
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

// silencing returns the silence that an alert matches and that lasts longest, or nil.
func silencing(silences []Silence, rule string, labels map[string]string) *Silence {
	var longest *Silence
	for i, s := range silences {
		if s.matches(rule, labels) && (longest == nil || s.Until.After(longest.Until)) {
			longest = &silences[i]
		}
	}
	return longest
}

// ack is the acknowledgment of an alert.
type ack struct {
	by    string
	until time.Time
}

// isOver reports whether an acknowledgment is over. One that lasts for longer than any can
// was made under a clock that was ahead.
func (a ack) isOver(now time.Time) bool {
	return !a.until.After(now) || a.until.Sub(now) > MaxAttention
}

// attention is what operators have said of alerts.
type attention struct {
	silences []Silence
	acks     map[alertKey]ack
}

// readAttention reads the silences that last, and all acknowledgments.
func (t tables) readAttention(ctx context.Context) (attention, error) {
	silences, err := t.readSilences(ctx)
	if err != nil {
		return attention{}, err
	}
	all := attention{silences, map[alertKey]ack{}}
	var (
		key alertKey
		one ack
	)
	rows, _ := t.database.Query(ctx, t.SQL(readAcks))
	_, err = pgx.ForEachRow(rows, []any{&key.rule, &key.fingerprint, &one.by, &one.until}, func() error {
		all.acks[key] = one
		return nil
	})
	if err != nil {
		return attention{}, fmt.Errorf("read the acknowledgments: %w", err)
	}
	return all, nil
}

// readSilences reads the silences that last.
func (t tables) readSilences(ctx context.Context) ([]Silence, error) {
	rows, _ := t.database.Query(ctx, t.SQL(readActiveSilences))
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Silence, err error) {
		return s, row.Scan(&s.ID, &s.Rule, &s.Matchers, &s.CreatedBy, &s.Until)
	})
	if err != nil {
		return nil, fmt.Errorf("read the silences: %w", err)
	}
	return all, nil
}
