package alerts

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/program/alerting"
)

// ack is the acknowledgment of an alert.
type ack struct {
	by    string
	until time.Time
}

// isOver reports whether an acknowledgment is over. If it lasts for longer than allowed,
// it was made while the clock was ahead.
func (a ack) isOver(now time.Time) bool {
	return !a.until.After(now) || a.until.Sub(now) > MaxAttention
}

// attention is the operators' silences and acknowledgments of alerts.
type attention struct {
	silences []Silence
	acks     map[alertKey]ack
}

// readAttention reads the present silences, and all acknowledgments.
func (t tables) readAttention(ctx context.Context) (attention, error) {
	silences, err := alerting.ReadSilences(ctx, t.Tables)
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
