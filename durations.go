package tenure

import "time"

// Durations says how long something took, each time that it happened: a
// histogram.
type Durations struct {
	Count uint64
	Total time.Duration
	// Within counts those that took at most so long, for each of a fixed set of
	// bounds between a millisecond and five minutes.
	Within map[time.Duration]uint64
}

// durationBounds are those of all histograms: from what a change of leader takes
// at best to what nobody should wait for.
var durationBounds = [...]time.Duration{
	1 * time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	1 * time.Second, 2500 * time.Millisecond, 5 * time.Second,
	10 * time.Second, 30 * time.Second, 1 * time.Minute, 5 * time.Minute,
}

// durationTally counts durations. It allocates nothing.
type durationTally struct {
	counts [len(durationBounds)]uint64 // of those between the bound before and this one
	count  uint64
	total  time.Duration
}

func (t *durationTally) add(d time.Duration) {
	t.count++
	t.total += d
	for i, bound := range durationBounds {
		if d <= bound {
			t.counts[i]++
			return
		}
	}
}

func (t *durationTally) durations() Durations {
	all := Durations{Count: t.count, Total: t.total, Within: make(map[time.Duration]uint64, len(durationBounds))}
	var within uint64
	for i, bound := range durationBounds {
		within += t.counts[i]
		all.Within[bound] = within
	}
	return all
}
