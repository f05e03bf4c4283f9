package postgres

import (
	"errors"
	"sync/atomic"

	"github.com/exactly-one/tenure"
)

// Stats are figures about a backend, for monitoring, counted since [New].
type Stats struct {
	// WatchCalls counts the calls of this backend's nodes on their watch
	// connections: one call per 30 s, and one for each change of the cluster.
	WatchCalls    uint64
	WatchFailures uint64 // failed connections
	// Fenced counts the transactions refused with tenure.ErrFenced, because the term had
	// ended.
	Fenced uint64
}

// counters are the counts of a backend. Its methods take no lock.
type counters struct {
	watchCalls, watchFailures, fenced atomic.Uint64
}

// refused counts an error of fencing, and returns it.
func (c *counters) refused(err error) error {
	if errors.Is(err, tenure.ErrFenced) {
		c.fenced.Add(1)
	}
	return err
}

// Stats returns the current figures. It uses no database, and never waits.
func (b *Backend) Stats() Stats {
	return Stats{b.counters.watchCalls.Load(), b.counters.watchFailures.Load(), b.counters.fenced.Load()}
}
