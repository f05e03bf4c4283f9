// Package memory holds data of earlier sessions for later ones of the same process, and
// the data of one session between its statements.
package memory

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

// RecentTerms are the terms begun by nodes after the last heartbeat of their session. The
// commits of their begins may not have been flushed: if the server crashes, it may forget
// them, and the next session of the node records them.
type RecentTerms struct {
	mu     sync.Mutex
	byNode map[uuid.UUID][]RecentTerm
}

// RecentTerm is a newly begun term.
type RecentTerm struct {
	Role        string
	Number      int64
	Incarnation int32
	AcquiredAt  time.Time
	Vacancy     time.Duration // negative if unknown
	Leader      string        // see tenure.AcquireRequest.NodeName
}

// Add remembers newly begun terms of a node.
func (r *RecentTerms) Add(node uuid.UUID, terms []RecentTerm) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byNode == nil {
		r.byNode = map[uuid.UUID][]RecentTerm{}
	}
	r.byNode[node] = append(r.byNode[node], terms...)
}

// Flushed forgets the terms of a node after a durable commit of its session was
// acknowledged: the server flushed all earlier commits with it.
func (r *RecentTerms) Flushed(node uuid.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byNode, node)
}

// RecordLostTerms records the terms forgotten by the server. The node's connection ended
// with the server, $9 milliseconds ago.
const RecordLostTerms = `
INSERT INTO {history}
    (role, term, node_id, node_name, incarnation, acquired_at, ended_at, end_reason, ended_by, vacant_ms)
SELECT
    r.role, r.term, $7, coalesce(nullif(r.leader, ''), $8), r.incarnation, r.acquired_at,
    greatest(r.acquired_at, clock_timestamp() - coalesce($9::double precision, 0) * interval '1 millisecond'),
    'server_changed', '', nullif(r.vacant_ms, -1)
FROM unnest($1::text[], $2::bigint[], $3::int[], $4::timestamptz[], $5::double precision[], $6::text[])
    AS r(role, term, incarnation, acquired_at, vacant_ms, leader)
WHERE NOT EXISTS (SELECT FROM {terms} t WHERE t.role = r.role AND t.term = r.term)
ON CONFLICT (role, term) DO NOTHING`

// Arguments are the arguments of RecordLostTerms for a node, except the last three; nil
// if the node has no recent terms.
func (r *RecentTerms) Arguments(node uuid.UUID) []any {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.byNode[node])
	if n == 0 {
		return nil
	}
	roles, numbers, incarnations := make([]string, n), make([]int64, n), make([]int32, n)
	began, vacancies, leaders := make([]time.Time, n), make([]float64, n), make([]string, n)
	for i, t := range r.byNode[node] {
		roles[i], numbers[i], incarnations[i], began[i] = t.Role, t.Number, t.Incarnation, t.AcquiredAt
		vacancies[i], leaders[i] = -1, t.Leader
		if t.Vacancy >= 0 {
			vacancies[i] = float64(t.Vacancy) / float64(time.Millisecond)
		}
	}
	return []any{roles, numbers, incarnations, began, vacancies, leaders}
}
