package metrics

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
)

// dayKey identifies a daily total.
type dayKey struct {
	day    time.Time // in UTC
	metric string
	labels string // as JSON
}

// series returns the metric and labels of the total, without the day.
func (k dayKey) series() string { return k.metric + k.labels }

func (k dayKey) compare(other dayKey) int {
	if c := k.day.Compare(other.day); c != 0 {
		return c
	}
	return strings.Compare(k.series(), other.series())
}

// keyOf returns the total of a series at a time.
func keyOf(at time.Time, series Series) dayKey {
	labels := make(map[string]string, len(series.Labels))
	for name, value := range series.Labels {
		labels[storable(name)] = storable(value)
	}
	text, err := json.Marshal(labels)
	if err != nil {
		panic(err) // a map of strings can always be encoded
	}
	return dayKey{at.UTC().Truncate(24 * time.Hour), storable(series.Name), string(text)}
}

// storable removes NUL, which PostgreSQL does not accept in a text.
func storable(text string) string { return strings.ReplaceAll(text, "\x00", "") }

// summed reports whether a series has daily totals.
func summed(series Series) bool {
	return !strings.HasSuffix(series.Name, "_info") && !(series.Type == HistogramSeries && strings.HasSuffix(series.Name, "_bucket")) &&
		!math.IsNaN(series.Value) && !math.IsInf(series.Value, 0)
}

// daySum is the total of a day.
type daySum struct {
	kind            SeriesType // gauge or counter
	samples         int64
	total           float64
	least, greatest *float64 // of gauges
}

func (s *daySum) add(value float64) {
	s.samples++
	s.total += value
}

func (s *daySum) measure(value float64) {
	s.add(value)
	if s.least == nil || value < *s.least {
		s.least = &value
	}
	if s.greatest == nil || value > *s.greatest {
		s.greatest = &value
	}
}

type daySums map[dayKey]*daySum

// of returns the total of a key.
func (s daySums) of(key dayKey, kind SeriesType) *daySum {
	if s[key] == nil {
		s[key] = &daySum{kind: kind}
	}
	return s[key]
}

// write adds the totals to the totals in the database.
func (s daySums) write(ctx context.Context, tx pgx.Tx, backend *postgres.Backend) error {
	var (
		days                    []time.Time
		metrics, labels, kinds  []string
		digests                 [][]byte
		samples                 []int64
		totals                  []float64
		leastOnes, greatestOnes []*float64
	)
	for _, key := range slices.SortedFunc(maps.Keys(s), dayKey.compare) {
		digest, sum := sha256.Sum256([]byte(key.labels)), s[key]
		days, metrics, kinds = append(days, key.day), append(metrics, key.metric), append(kinds, string(sum.kind))
		digests, labels = append(digests, digest[:]), append(labels, key.labels)
		samples, totals = append(samples, sum.samples), append(totals, sum.total)
		leastOnes, greatestOnes = append(leastOnes, sum.least), append(greatestOnes, sum.greatest)
	}
	_, err := tx.Exec(ctx, schema.Of(backend).SQL(addToDays), days, metrics, digests, labels, kinds, samples, totals, leastOnes, greatestOnes)
	return err
}
