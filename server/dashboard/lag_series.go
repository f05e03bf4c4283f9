package dashboard

import (
	"slices"
	"sync"
	"time"
)

// The bounds on the lags in memory.
const (
	lagInterval  = 15 * time.Second // between two points of a processor
	maxLagPoints = 1440             // of a processor: 6 hours
	maxLagSeries = 500              // processors
)

// lagPoint is how far a processor was behind at a time, in milliseconds since 1970: the
// largest number of waiting events in an interval.
type lagPoint [2]int64

// lagSeries is how far processors were behind since the dashboard began to read. It
// costs the database nothing. It is safe for concurrent use.
type lagSeries struct {
	mu     sync.Mutex
	series map[string][]lagPoint
}

func newLagSeries() *lagSeries { return &lagSeries{series: map[string][]lagPoint{}} }

// add adds the lags read at a time.
func (l *lagSeries) add(at time.Time, processors []processorRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range l.series {
		if !slices.ContainsFunc(processors, func(p processorRecord) bool { return p.Name == name }) {
			delete(l.series, name) // it was removed
		}
	}
	for _, p := range processors {
		points, known := l.series[p.Name]
		if !known && len(l.series) >= maxLagSeries {
			continue
		}
		if n := len(points); n > 0 && at.UnixMilli()-points[n-1][0] < lagInterval.Milliseconds() {
			points[n-1][1] = max(points[n-1][1], p.Behind)
			continue
		}
		points = append(points, lagPoint{at.UnixMilli(), p.Behind})
		if len(points) > maxLagPoints*5/4 {
			points = slices.Clone(points[len(points)-maxLagPoints:])
		}
		l.series[p.Name] = points
	}
}

// of returns a copy of a processor's points.
func (l *lagSeries) of(name string) []lagPoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]lagPoint{}, l.series[name]...)
}
