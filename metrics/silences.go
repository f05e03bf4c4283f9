package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/history"
)

// silenceFamilies are the metrics of the times without a working leader.
type silenceFamilies struct {
	families families

	silences family
}

func newSilenceFamilies(config Config) silenceFamilies {
	f := newFamilies(config, "cluster")
	c := silenceFamilies{
		silences: f.histogram("silence_seconds", "How long a role was without a sign of life of a leader before terms that began since this process began to read them. "+
			"After a freeze, the vacancy is only the time in which the lock was free."),
	}
	c.families = f
	return c
}

func (c *silenceFamilies) collect(to chan<- prometheus.Metric, s *silences) {
	if s.known {
		c.silences.sendDurations(to, s.durations)
	}
}

// silences are the silences before the terms read by a process.
type silences struct {
	known     bool                  // terms could be read
	from      time.Time             // when the latest term began at the first read: later terms count
	newest    time.Time             // when the latest read term began
	counted   map[termKey]time.Time // terms begun lately
	durations tenure.Histogram
}

type termKey struct {
	role string
	term int64
}

const (
	// silenceOverlap is how long after the begin of the latest term earlier ones are still
	// looked for: a begin can be committed late.
	silenceOverlap = time.Minute
	// fewTerms is how many terms are read at first, and maxTerms if all of them are new.
	fewTerms, maxTerms = 100, 100_000
)

// silenceBounds are the upper bounds of the histogram, as for the vacancies.
var silenceBounds = []time.Duration{
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second,
	10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute,
}

// readSilences reads the terms begun since the reading of previous. Without the privilege
// to read the history, there are no metrics of silences.
func (c *Work) readSilences(ctx context.Context, previous *silences) (*silences, error) {
	query := history.Query{Since: previous.since(), Limit: fewTerms, Latest: !previous.known}
	terms, err := c.backend.History(ctx, query)
	if err == nil && previous.known && len(terms) == fewTerms && previous.isNew(terms[fewTerms-1]) {
		query.Limit = maxTerms
		terms, err = c.backend.History(ctx, query)
	}
	switch {
	case errors.Is(err, dberr.ErrPrivilege) || errors.Is(err, dberr.ErrSchema):
		return &silences{}, nil
	case err != nil:
		return previous, err
	}
	return previous.with(terms), nil
}

// since is the begin of the earliest possibly unread term.
func (s *silences) since() time.Time {
	if s.newest.IsZero() {
		return time.Time{}
	}
	return s.newest.Add(-silenceOverlap)
}

// isNew reports whether a term may not have been counted yet.
func (s *silences) isNew(t history.Term) bool {
	_, counted := s.counted[termKey{t.Role, t.Term}]
	return !counted && t.Began.After(s.from) && t.Began.After(s.since())
}

// with returns the silences, and the silences before more terms, the latest first.
func (s *silences) with(terms []history.Term) *silences {
	next := &silences{known: true, from: s.from, newest: s.newest, counted: map[termKey]time.Time{}, durations: copyOf(s.durations)}
	if len(terms) > 0 && terms[0].Began.After(s.newest) {
		next.newest = terms[0].Began
	}
	if !s.known {
		next.from = next.newest
		return next
	}
	oldest := next.since()
	for key, began := range s.counted {
		if began.After(oldest) {
			next.counted[key] = began
		}
	}
	for _, t := range terms {
		if !s.isNew(t) {
			continue
		}
		if t.Began.After(oldest) {
			next.counted[termKey{t.Role, t.Term}] = t.Began
		}
		if t.PrecedingSilence >= 0 {
			addTo(&next.durations, t.PrecedingSilence)
		}
	}
	return next
}

// copyOf returns a deep copy of h.
func copyOf(h tenure.Histogram) tenure.Histogram {
	next := tenure.Histogram{Count: h.Count, Sum: h.Sum, Buckets: make(map[time.Duration]uint64, len(silenceBounds))}
	for _, bound := range silenceBounds {
		next.Buckets[bound] = h.Buckets[bound]
	}
	return next
}

func addTo(h *tenure.Histogram, d time.Duration) {
	h.Count++
	h.Sum += d
	for _, bound := range silenceBounds {
		if d <= bound {
			h.Buckets[bound]++
		}
	}
}
