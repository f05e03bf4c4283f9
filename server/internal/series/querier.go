package series

import (
	"context"
	"maps"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
)

// Querier implements [storage.Queryable], with times in milliseconds since 1970.
// The store takes no samples until the querier is closed.
func (s *Store) Querier(from, to int64) (storage.Querier, error) {
	s.mu.RLock()
	return &querier{store: s, from: from, to: to}, nil
}

var _ storage.Queryable = (*Store)(nil)

// querier answers one query. It holds the store's lock.
type querier struct {
	store    *Store
	from, to int64
	closed   bool
}

// Close implements [storage.Querier].
func (q *querier) Close() error {
	if !q.closed {
		q.closed = true
		q.store.mu.RUnlock()
	}
	return nil
}

// Select implements [storage.Querier].
func (q *querier) Select(
	ctx context.Context, sorted bool, hints *storage.SelectHints, matchers ...*labels.Matcher,
) storage.SeriesSet {
	from, to := q.from, q.to
	if hints != nil {
		from, to = hints.Start, hints.End
	}
	var found []storage.Series
	err := q.each(ctx, matchers, func(s *series, named labels.Labels) {
		found = append(found, selected{s, named, from, to})
	})
	if err != nil {
		return storage.ErrSeriesSet(err)
	}
	if sorted {
		slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	}
	return &seriesSet{series: found, at: -1}
}

// each calls fn with every matching series, named as in the query.
func (q *querier) each(ctx context.Context, matchers []*labels.Matcher, fn func(*series, labels.Labels)) error {
	var ofName, others []*labels.Matcher
	for _, m := range matchers {
		if m.Name == model.MetricNameLabel {
			ofName = append(ofName, m)
		} else {
			others = append(others, m)
		}
	}
	for name, all := range q.store.named {
		if err := ctx.Err(); err != nil {
			return err
		}
		queried, ok := q.store.prefixes.queriedName(ofName, name)
		if !ok {
			continue
		}
		for _, s := range all {
			if !matchAll(others, s.labels) {
				continue
			}
			named := s.labels
			if queried != name {
				named = labels.NewBuilder(named).Set(model.MetricNameLabel, queried).Labels()
			}
			fn(s, named)
		}
	}
	return nil
}

func matchAll(matchers []*labels.Matcher, l labels.Labels) bool {
	for _, m := range matchers {
		if !m.Matches(l.Get(m.Name)) {
			return false
		}
	}
	return true
}

// LabelValues implements [storage.LabelQuerier].
func (q *querier) LabelValues(
	ctx context.Context, name string, _ *storage.LabelHints, matchers ...*labels.Matcher,
) ([]string, annotations.Annotations, error) {
	values := map[string]bool{}
	err := q.each(ctx, matchers, func(_ *series, l labels.Labels) {
		if value := l.Get(name); value != "" {
			values[value] = true
		}
	})
	return slices.Sorted(maps.Keys(values)), nil, err
}

// LabelNames implements [storage.LabelQuerier].
func (q *querier) LabelNames(
	ctx context.Context, _ *storage.LabelHints, matchers ...*labels.Matcher,
) ([]string, annotations.Annotations, error) {
	names := map[string]bool{}
	err := q.each(ctx, matchers, func(_ *series, l labels.Labels) {
		l.Range(func(label labels.Label) { names[label.Name] = true })
	})
	return slices.Sorted(maps.Keys(names)), nil, err
}

// selected is a series as one query sees it.
type selected struct {
	series   *series
	named    labels.Labels
	from, to int64
}

func (s selected) Labels() labels.Labels { return s.named }

// Iterator implements [storage.Series].
func (s selected) Iterator(old chunkenc.Iterator) chunkenc.Iterator {
	return newIterator(old, func(into []sample) []sample { return s.series.read(s.from, s.to, into) })
}

// seriesSet implements [storage.SeriesSet] over a list.
type seriesSet struct {
	series []storage.Series
	at     int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *seriesSet) At() storage.Series                { return s.series[s.at] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
