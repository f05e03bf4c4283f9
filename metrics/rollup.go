package metrics

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
)

// The limits of one call of RollUpSamples.
const (
	maxRolledUp      = 50
	maxRolledUpBytes = 512 << 10
)

// RollUpSamples adds day-old samples to the daily totals and deletes them, in the caller's
// transaction: a few samples of one node. It returns their number, or 0 if there are no
// more. Use a fenced transaction. Its user needs the privileges of
// [postgres.Backend.CompactionGrants]. If another transaction rolls up the same samples,
// for example with an unacknowledged commit still in flight, the error matches
// dberr.ErrBusy and this transaction must be rolled back.
//
// There is a total for each metric and its labels, for all nodes together: for a gauge the
// number of samples, their sum, minimum and maximum; for a counter, and for the sum and
// count of a histogram, its increase. Not included are the increase in the last minutes of
// a process, and while the server had lost its samples in a crash. Metrics with names
// ending in _info have no totals. Samples unreadable for this release are not counted.
func RollUpSamples(ctx context.Context, tx pgx.Tx, backend *postgres.Backend) (int, error) {
	samples, err := readOldSamples(ctx, tx, backend)
	if err != nil {
		return 0, fmt.Errorf("read old samples: %w", err)
	}
	sums, folded := sumSamples(samples)
	if len(folded) == 0 {
		return 0, nil
	}
	if err := sums.write(ctx, tx, backend); err != nil {
		return 0, fmt.Errorf("add to the daily totals: %w", err)
	}
	deleted, err := tx.Exec(ctx, schema.Of(backend).SQL(deleteFolded), folded, samples[0].node)
	if err != nil {
		return 0, fmt.Errorf("delete rolled-up samples: %w", err)
	}
	if n := deleted.RowsAffected(); n != int64(len(folded)) {
		return 0, fmt.Errorf("%w: another transaction has rolled up %d of %d samples: roll back", dberr.ErrBusy, int64(len(folded))-n, len(folded))
	}
	return len(folded), nil
}

// sumSamples returns the daily sums of the old samples, and the transactions of the summed
// samples.
func sumSamples(samples []oldSample) (sums daySums, folded []string) {
	sums = daySums{}
	counted := map[string]float64{} // the latest value of each counter
	for i, s := range samples {
		// The increase after the last sample is not known yet.
		folds := s.old && (i < len(samples)-1 || !s.followed)
		if s.first {
			clear(counted)
		}
		families, _ := decodeSample(s.format, s.body)
		for _, series := range flatten(families) {
			if !summed(series) {
				continue
			}
			key := keyOf(s.at, series)
			switch {
			case series.Type == GaugeSeries && folds:
				sums.of(key, GaugeSeries).measure(series.Value)
			case series.Type == GaugeSeries:
			default:
				// An increase counts with the sample before it, and one from zero
				// with the first.
				if i > 0 && !s.first || s.first && folds {
					sums.of(key, CounterSeries).add(increase(counted, key.series(), series.Value))
				}
				counted[key.series()] = series.Value
			}
		}
		if !folds {
			break
		}
		folded = append(folded, s.transaction)
	}
	return sums, folded
}

// oldSample is a sample, possibly old enough to be rolled up.
type oldSample struct {
	transaction string
	node        uuid.UUID
	at          time.Time
	old         bool // old enough
	first       bool // the first of its process
	followed    bool // there is a later one of its node
	format      int16
	body        []byte
}

func readOldSamples(ctx context.Context, tx pgx.Tx, backend *postgres.Backend) ([]oldSample, error) {
	rows, _ := tablesOf(backend, tx).Query(ctx, readOldestSamples, keepLasting.Milliseconds(), maxRolledUp, maxRolledUpBytes) // rows reports the error
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s oldSample, err error) {
		err = row.Scan(&s.transaction, &s.node, &s.at, &s.old, &s.first, &s.followed, &s.format, &s.body)
		return s, err
	})
}

// increase returns by how much a counter increased since its last value; from
// zero if there was none or it was reset.
func increase(counted map[string]float64, series string, value float64) float64 {
	if last, ok := counted[series]; ok && value >= last {
		return value - last
	}
	return value
}
