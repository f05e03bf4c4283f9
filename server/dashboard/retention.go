package dashboard

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/exactly-one/tenure/retention"
)

// retentionInterval is the time between two reads of the state of retention, which changes
// once per search for old rows.
const retentionInterval = 15 * time.Second

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
