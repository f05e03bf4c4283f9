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

// The bounds on one call of RollUpSamples.
const (
	maxFolded      = 50
	maxFoldedBytes = 512 << 10
)

// RollUpSamples adds samples that are a day old to the sums of their days and
// deletes them, in a transaction of the caller's: a few of one node. It returns
// how many; 0 if there are no more. Give it a transaction that is fenced. If another
// transaction adds up the same samples, also one whose commit was not answered and
// is still in flight, it returns an error that matches dberr.ErrBusy, and this one
// must be rolled back. Its user needs the privileges of
// [postgres.Backend.CompactionGrants].
//
// There is a sum for each metric and its labels, of all nodes together: of a gauge
// the number of samples, their total, the least and the greatest; of a counter,
// and of the sum and count of a histogram, by how much it grew. What grew in the
// last minutes of a process is not known, nor what grew while the server had lost
// its samples in a crash. Metrics whose names end in _info measure nothing, and
// have no sums. A sample that this release cannot read counts for nothing.
func RollUpSamples(ctx context.Context, tx pgx.Tx, backend *postgres.Backend) (int, error) {
	samples, err := readFoldables(ctx, tx, backend)
	if err != nil {
		return 0, fmt.Errorf("read old samples: %w", err)
	}
	sums, folded := daySums{}, []string{}
	counted := map[string]float64{} // the last value of each counter
	for i, s := range samples {
		// Of the last one there is no growth to the next yet.
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
			if series.Type == GaugeSeries {
				if folds {
					sums.of(key, GaugeSeries).measure(series.Value)
				}
				continue
			}
			// A growth counts with the sample before it, one from zero with the first.
			if i > 0 && !s.first || s.first && folds {
				sums.of(key, CounterSeries).add(growth(counted, key.series(), series.Value))
			}
			counted[key.series()] = series.Value
		}
		if !folds {
			break
		}
		folded = append(folded, s.transaction)
	}
	if len(folded) == 0 {
		return 0, nil
	}
	if err := sums.write(ctx, tx, backend); err != nil {
		return 0, fmt.Errorf("add to the sums of days: %w", err)
	}
	deleted, err := tx.Exec(ctx, schema.Of(backend).SQL(deleteFolded), folded, samples[0].node)
	if err != nil {
		return 0, fmt.Errorf("delete what was summed up: %w", err)
	}
	if n := deleted.RowsAffected(); n != int64(len(folded)) {
		return 0, fmt.Errorf("%w: another transaction has summed up %d of %d samples: roll back", dberr.ErrBusy, int64(len(folded))-n, len(folded))
	}
	return len(folded), nil
}

// foldable is a sample that may be old enough.
type foldable struct {
	transaction string
	node        uuid.UUID
	at          time.Time
	old         bool // enough
	first       bool // of its process
	followed    bool // by another of its node
	format      int16
	body        []byte
}

func readFoldables(ctx context.Context, tx pgx.Tx, backend *postgres.Backend) ([]foldable, error) {
	rows, _ := tablesOf(backend, tx).Query(ctx, readFoldable, keepLasting.Milliseconds(), maxFolded, maxFoldedBytes) // its error is that of the rows
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s foldable, err error) {
		err = row.Scan(&s.transaction, &s.node, &s.at, &s.old, &s.first, &s.followed, &s.format, &s.body)
		return s, err
	})
}

// growth is by how much a counter grew since its last value: from zero if there
// was none, or it began anew.
func growth(counted map[string]float64, series string, value float64) float64 {
	if last, ok := counted[series]; ok && value >= last {
		return value - last
	}
	return value
}
