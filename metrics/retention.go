package metrics

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/exactly-one/tenure/internal/sweeps"
)

// retentionFamilies are the metrics of the retention.
type retentionFamilies struct {
	families families

	errors, late family
}

func newRetentionFamilies(config Config) retentionFamilies {
	f := newFamilies(config, "retention")
	c := retentionFamilies{
		errors: f.gauge("consecutive_errors", "Searches for old rows in a row that failed.", "rows"),
		late:   f.gauge("late_seconds", "For how much longer than the retention and two of its intervals the oldest row has been kept, 0 if it has not.", "rows"),
	}
	c.families = f
	return c
}

func (c *retentionFamilies) collect(to chan<- prometheus.Metric, all []sweeps.Status) {
	for _, s := range all {
		c.errors.send(to, float64(s.Errors), s.Rows)
		c.late.send(to, s.Late.Seconds(), s.Rows)
	}
}

const insufficientPrivilege = "42501"

// readRetention reads the state of the retention. Without the privilege to read it, there
// are no metrics of it.
func (c *Work) readRetention(ctx context.Context) ([]sweeps.Status, error) {
	all, err := sweeps.List(ctx, c.backend, c.database)
	var answer *pgconn.PgError
	if errors.As(err, &answer) && answer.Code == insufficientPrivilege {
		return nil, nil
	}
	return all, err
}
