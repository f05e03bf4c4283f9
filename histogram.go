package tenure

import "time"

// Histogram counts durations.
type Histogram struct {
	Count uint64
	Sum   time.Duration
	// Buckets has, for each upper bound, the number of durations up to it. The
	// bounds are fixed, from 1 ms to 5 min.
	Buckets map[time.Duration]uint64
}

// durationBounds are the upper bounds of all histograms, from the fastest
// change of leader to the longest tolerable wait.
var durationBounds = [...]time.Duration{
	1 * time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	1 * time.Second, 2500 * time.Millisecond, 5 * time.Second,
	10 * time.Second, 30 * time.Second, 1 * time.Minute, 5 * time.Minute,
}

// histogram counts durations. It does not allocate.
type histogram struct {
	counts [len(durationBounds)]uint64 // above the previous bound, up to this one
	count  uint64
	sum    time.Duration
}

func (t *histogram) add(d time.Duration) {
	t.count++
	t.sum += d
	for i, bound := range durationBounds {
		if d <= bound {
			t.counts[i]++
			return
		}
	}
}

func (t *histogram) snapshot() Histogram {
	all := Histogram{Count: t.count, Sum: t.sum, Buckets: make(map[time.Duration]uint64, len(durationBounds))}
	var within uint64
	for i, bound := range durationBounds {
		within += t.counts[i]
		all.Buckets[bound] = within
	}
	return all
}
