package postgres

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

// recentTerms are the terms of nodes since the last heartbeat of their session. The
// commits of their begins may not have been flushed: if the server crashes, it may forget
// them, and the next session of the node records them.
type recentTerms struct {
	mu     sync.Mutex
	byNode map[uuid.UUID][]recentTerm
}

type recentTerm struct {
	role        string
	number      int64
	incarnation int32
	acquiredAt  time.Time
	vacancy     time.Duration // negative if unknown
}

// add remembers the just begun terms of a session.
func (r *recentTerms) add(node uuid.UUID, incarnation int32, roles []*heldRole) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byNode == nil {
		r.byNode = map[uuid.UUID][]recentTerm{}
	}
	for _, h := range roles {
		if h.term > 0 {
			r.byNode[node] = append(r.byNode[node], recentTerm{h.role.Name(), h.term, incarnation, h.acquiredAt, h.vacancy})
		}
	}
}

// flushed forgets the terms of a node after a durable commit of its session was
// acknowledged: the server flushed all earlier commits with it.
func (r *recentTerms) flushed(node uuid.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byNode, node)
}

// recordLostTerms records the terms forgotten by the server. The node's connection ended
// with the server, $8 milliseconds ago.
const recordLostTerms = `
INSERT INTO {history}
    (role, term, node_id, node_name, incarnation, acquired_at, ended_at, end_reason, ended_by, vacant_ms)
SELECT
    r.role, r.term, $6, $7, r.incarnation, r.acquired_at,
    greatest(r.acquired_at, clock_timestamp() - coalesce($8::double precision, 0) * interval '1 millisecond'),
    'server_changed', '', nullif(r.vacant_ms, -1)
FROM unnest($1::text[], $2::bigint[], $3::int[], $4::timestamptz[], $5::double precision[])
    AS r(role, term, incarnation, acquired_at, vacant_ms)
WHERE NOT EXISTS (SELECT FROM {terms} t WHERE t.role = r.role AND t.term = r.term)
ON CONFLICT (role, term) DO NOTHING`

// arguments are the arguments of recordLostTerms for a node, except the last three; nil
// if the node has no recent terms.
func (r *recentTerms) arguments(node uuid.UUID) []any {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.byNode[node])
	if n == 0 {
		return nil
	}
	roles, numbers, incarnations := make([]string, n), make([]int64, n), make([]int32, n)
	began, vacancies := make([]time.Time, n), make([]float64, n)
	for i, t := range r.byNode[node] {
		roles[i], numbers[i], incarnations[i], began[i] = t.role, t.number, t.incarnation, t.acquiredAt
		vacancies[i] = -1
		if t.vacancy >= 0 {
			vacancies[i] = float64(t.vacancy) / float64(time.Millisecond)
		}
	}
	return []any{roles, numbers, incarnations, began, vacancies}
}
