package server

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Lineages are the lineages of the last servers of this process's nodes. An old primary,
// back with its earlier data, knows nothing of a newer one, but the nodes do.
type Lineages struct {
	mu     sync.Mutex
	byNode map[uuid.UUID]Arrival
}

// Arrival is when a node came to a lineage.
type Arrival struct {
	lineage  string
	returned bool          // from a server not continued by this lineage
	at       time.Duration // on the node's monotonic clock
}

// Arrive records a node's opening of a session on a lineage, and returns when the node
// came to this lineage.
func (l *Lineages) Arrive(node uuid.UUID, lineage string, now time.Duration) Arrival {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byNode == nil {
		l.byNode = map[uuid.UUID]Arrival{}
	}
	last, known := l.byNode[node]
	if !known || last.lineage != lineage {
		l.byNode[node] = Arrival{lineage, known && !IsPromotionOf(last.lineage, lineage), now}
	}
	return l.byNode[node]
}

// Forget forgets a node after it has left.
func (l *Lineages) Forget(node uuid.UUID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byNode, node)
}

// IsPromotionOf reports whether a lineage is a later timeline of the same system.
func IsPromotionOf(earlier, later string) bool {
	system, timeline, ok := parseLineage(earlier)
	laterSystem, laterTimeline, laterOK := parseLineage(later)
	return ok && laterOK && system == laterSystem && timeline < laterTimeline
}

func parseLineage(lineage string) (system string, timeline uint64, ok bool) {
	system, digits, found := strings.Cut(lineage, "/")
	timeline, err := strconv.ParseUint(digits, 16, 32)
	return system, timeline, found && err == nil
}
