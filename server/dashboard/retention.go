package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/exactly-one/tenure/retention"
)

// retentionInterval is the time between two reads of the state of retention, which changes
// once per search for old rows.
const retentionInterval = 15 * time.Second

// retentionRecord is the state of the removal of one kind of old rows.
type retentionRecord struct {
	Rows         string     `json:"rows"` // such as "runs" or "dead letters"
	Keep         float64    `json:"keep_seconds"`
	Swept        *time.Time `json:"swept_at"` // when no old row was left; null if that never was so
	Errors       int64      `json:"errors"`   // in a row
	FailingSince *time.Time `json:"failing_since"`
	LastError    string     `json:"last_error"`
	Late         float64    `json:"late_seconds"` // 0 if no row is kept for too long
	Level        string     `json:"level"`        // good or warning
}

// readRetention returns the state of retention as read last, what is wrong first. A user without the privileges
// sees none.
func (w *watcher) readRetention(ctx context.Context) []retentionRecord {
	if time.Since(w.retentionAt) < retentionInterval {
		return w.retention
	}
	w.retentionAt = time.Now()
	all, err := retention.List(ctx, w.config.Backend, w.config.Database)
	if err != nil {
		w.log.Debug("the dashboard cannot read the state of retention", "error", err)
		return w.retention
	}
	w.retention = []retentionRecord{}
	for _, s := range all {
		r := retentionRecord{
			Rows: s.Rows, Keep: s.Keep.Seconds(), Swept: when(s.SweptAt), Errors: s.Errors, FailingSince: when(s.FailingSince),
			LastError: s.LastError, Late: s.Late.Seconds(),
		}
		r.Level = r.trouble().level
		w.retention = append(w.retention, r)
	}
	slices.SortStableFunc(w.retention, func(a, b retentionRecord) int {
		return cmp.Or(cmp.Compare(b.Errors, a.Errors), cmp.Compare(b.Late, a.Late))
	})
	return w.retention
}

// trouble returns what is wrong with the removal.
func (r retentionRecord) trouble() trouble {
	switch {
	case r.Errors > 0:
		return trouble{warning, withError(fmt.Sprintf("Old rows of %s cannot be removed", quoted(r.Rows)), r.LastError)}
	case r.Late > 0:
		return trouble{warning, fmt.Sprintf("Old rows of %s are kept for too long.", quoted(r.Rows))}
	}
	return trouble{level: good}
}
