package postgres

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

// lineages are those of the servers on which the nodes of this process had their last
// sessions. An old primary that returns with its earlier data knows nothing of a newer one,
// but the nodes do.
type lineages struct {
	mu     sync.Mutex
	byNode map[uuid.UUID]arrival
}

// arrival is when a node came to a lineage.
type arrival struct {
	lineage  string
	returned bool          // from a server that this lineage does not continue
	at       time.Duration // on the node's monotonic clock
}

// arrive records that a node opens a session on a lineage, and returns when the node came to
// that lineage.
func (l *lineages) arrive(node uuid.UUID, lineage string, now time.Duration) arrival {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byNode == nil {
		l.byNode = map[uuid.UUID]arrival{}
	}
	last, known := l.byNode[node]
	if !known || last.lineage != lineage {
		l.byNode[node] = arrival{lineage, known && !isPromotionOf(last.lineage, lineage), now}
	}
	return l.byNode[node]
}

// forget forgets a node that has left.
func (l *lineages) forget(node uuid.UUID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byNode, node)
}
