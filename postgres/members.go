package postgres

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/wakeup"
	"github.com/exactly-one/tenure/postgres/internal/install"
	"github.com/exactly-one/tenure/postgres/internal/link"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
)

// The columns from the second to the one before name change often, the others
// seldom: see registryCache. A death has no requester.
const registryColumns = `
SELECT
    id,
    incarnation,
    status,
    drained,
    last_heartbeat,
    (1000 * extract(epoch FROM clock_timestamp() - last_heartbeat))::double precision,
    current_connections,
    current_jobs,
    in_flight,
    cpu_usage,
    memory_usage,
    name,
    hostname,
    ip_address,
    http_port,
    grpc_port,
    roles,
    worker_capabilities,
    labels,
    version,
    spreads,
    CASE WHEN status = 'dead' THEN '' ELSE status_by END,
    started_at,
    lease_ms
FROM {nodes}`

const (
	readRegistry       = registryColumns + ` ORDER BY incarnation`
	readRegistryOfSome = registryColumns + ` WHERE id = ANY ($1::uuid[])`
)

// descriptionColumns are the columns of a node's row for its description, in the order of
// the statements.
func descriptionColumns(d tenure.Description) []any {
	orEmpty := func(texts []string) []string { return append([]string{}, texts...) }
	return []any{
		string(d.Status), d.Drained, d.Address, d.HTTPPort, d.GRPCPort,
		orEmpty(d.Roles), orEmpty(d.Capabilities), object(d.Labels), d.Version, object(d.Spreads), d.StatusBy,
	}
}

// object encodes a map for a column of JSON. The map was checked before: the keys
// are texts, and the numbers finite.
func object[V any](m map[string]V) string {
	if m == nil {
		return "{}"
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func scanMember(row pgx.CollectableRow) (tenure.Member, error) {
	var m tenure.Member
	err := scanInto(row, &m, true)
	return m, err
}

// scanInto reads a row of the registry, or only its frequently changing columns.
func scanInto(row pgx.CollectableRow, m *tenure.Member, whole bool) error {
	var (
		status        string
		lease, silent float64
	)
	into := []any{
		&m.ID, &m.Incarnation, &status, &m.Drained, &m.LastHeartbeat, &silent,
		&m.Connections, &m.Jobs, &m.InFlight, &m.CPU, &m.Memory,
		&m.Name, &m.Host, &m.Address, &m.HTTPPort, &m.GRPCPort,
		&m.Roles, &m.Capabilities, &m.Labels, &m.Version, &m.Spreads, &m.StatusBy, &m.StartedAt, &lease,
	}
	if !whole {
		clear(into[firstSeldom:]) // not decoded
	}
	if err := row.Scan(into...); err != nil {
		return err
	}
	m.Status, m.SilentFor = tenure.NodeStatus(status).OrDead(), link.FromMilliseconds(silent)
	if whole {
		m.Lease = link.FromMilliseconds(lease)
	}
	return nil
}

// firstSeldom is the first rarely changing column of readRegistry.
const firstSeldom = 11

// registryCache keeps the last reading of each node: decoding lists and maps takes most
// of the time of a read, and they seldom change. The returned members share them.
type registryCache map[[16]byte]cachedMember

type cachedMember struct {
	raw    [][]byte // the columns from firstSeldom on, as the server sent them
	member tenure.Member
}

// sentID reads an id as the server sent it: as text if its statement was not prepared yet.
func sentID(raw []byte) (uuid.UUID, error) {
	if len(raw) == len(uuid.UUID{}) {
		return uuid.FromBytes(raw)
	}
	return uuid.ParseBytes(raw)
}

// scan reads a row into next. After the last row next replaces the cache.
func (c registryCache) scan(row pgx.CollectableRow, next registryCache) (tenure.Member, error) {
	raw := row.RawValues()
	if len(raw) < firstSeldom {
		return tenure.Member{}, fmt.Errorf("the server returned %d columns of a node", len(raw))
	}
	key, err := sentID(raw[0])
	if err != nil {
		return tenure.Member{}, fmt.Errorf("the server returned no id of a node: %w", err)
	}
	seldom := raw[firstSeldom:]
	known, found := c[key]
	if found && slices.EqualFunc(known.raw, seldom, bytes.Equal) {
		err := scanInto(row, &known.member, false)
		next[key] = known
		return known.member, err
	}
	m, err := scanMember(row)
	copied := make([][]byte, len(seldom))
	for i, column := range seldom {
		copied[i] = bytes.Clone(column)
	}
	next[key] = cachedMember{copied, m}
	return m, err
}

// WriteDescription implements [tenure.RegistrySession].
func (s *session) WriteDescription(description tenure.Description) error {
	found := false
	err := s.query(stmtDescribe, func(pgx.Rows) error {
		found = true
		return nil
	}, append([]any{s.opening.Node.ID, s.incarnation}, descriptionColumns(description)...)...)
	if sqlstate.Has(err, sqlstate.Untranslatable) {
		return fmt.Errorf("%w: the database cannot keep the node's labels: %w", tenure.ErrInvalidConfig, err)
	}
	if err != nil {
		return err
	}
	if !found {
		return superseded("the node has a newer session or was found dead")
	}
	return s.query(stmtNotify, nil, s.backend.names.NodesChannel(), s.nodePayload()) // the ring is the same
}

// Members implements [tenure.RegistrySession].
func (s *session) Members() ([]tenure.Member, error) {
	s.listener.changedNodes.Take() // notified before the read
	members := make([]tenure.Member, 0, len(s.registry))
	next := make(registryCache, len(s.registry))
	err := s.query(stmtMembers, func(rows pgx.Rows) error {
		m, err := s.registry.scan(rows, next)
		members = append(members, m)
		return err
	})
	if err != nil {
		s.members = nil // what was taken is read with everything
		return nil, err
	}
	s.registry, s.members = next, members
	return slices.Clone(members), nil
}

// RefreshMembers is Members, but reads only nodes reported as changed. The session's own
// connection receives the reports, so none is lost while it lives.
func (s *session) RefreshMembers() ([]tenure.Member, error) {
	ids, anyNode := s.listener.changedNodes.Take()
	if anyNode || s.members == nil {
		return s.Members()
	}
	if len(ids) == 0 {
		return slices.Clone(s.members), nil
	}
	members := slices.DeleteFunc(s.members, func(m tenure.Member) bool { return slices.Contains(ids, m.ID) })
	s.members = nil // if the read fails, what was taken is read with everything
	err := s.query(stmtMembersOf, func(rows pgx.Rows) error {
		m, err := s.registry.scan(rows, s.registry)
		members = append(members, m)
		return err
	}, ids)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(members, func(a, b tenure.Member) int { return cmp.Compare(a.Incarnation, b.Incarnation) })
	s.members = members
	return slices.Clone(members), nil
}

// Holders implements [tenure.RegistrySession].
func (s *session) Holders(roles []string) ([]tenure.RoleHolder, error) {
	holders := make([]tenure.RoleHolder, 0, len(roles))
	err := s.query(stmtLeading, func(rows pgx.Rows) error {
		var h tenure.RoleHolder
		err := rows.Scan(&h.Role, &h.Term, &h.Node, &h.Reserved)
		holders = append(holders, h)
		return err
	}, append([]string{}, roles...))
	return holders, err
}

// Members returns the nodes in the registry, including dead ones, oldest session
// first. It is safe for concurrent use, like the other methods on nodes.
func (b *Backend) Members(ctx context.Context) ([]tenure.Member, error) {
	var members []tenure.Member
	err := b.reader.Ask(ctx, "read nodes", func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, b.names.SQL(readRegistry))
		if err == nil {
			members, err = pgx.CollectRows(rows, scanMember)
		}
		return err
	})
	return members, err
}

const (
	// A node must not be marked dead before its lease is over: until then it may
	// trust its terms.
	markDead = `
WITH corrected AS (` + install.CorrectTimes + `
), dead AS (
    UPDATE {nodes} n
    SET status = 'dead', died_at = clock_timestamp()
    WHERE status <> 'dead'
        AND last_heartbeat < clock_timestamp() - greatest($1::bigint, lease_ms) * interval '1 millisecond'
    RETURNING id
), forgotten AS (
    DELETE FROM {requests} r USING dead WHERE r.node_id = dead.id AND r.role <> ''
)
SELECT id FROM dead ORDER BY id`

	// The node can no longer trust a session. The next term after a restart of the
	// server may have to wait for it, so its row stays until then.
	trustOver = `greatest(last_heartbeat + lease_ms * interval '1 millisecond', trust_until) < clock_timestamp()`

	// All watches must look for the sessions of dead nodes, as after stmtNext.
	announceDead = `
SELECT nextval({releases:regclass}), nextval({membership:regclass}), pg_notify($1, '` + link.AnyNode + `')`

	// For how long the row of a dead node must stay, in milliseconds.
	readTrust = `
SELECT (1000 * extract(epoch FROM
    greatest(last_heartbeat + lease_ms * interval '1 millisecond', trust_until) - clock_timestamp()))::double precision
FROM {nodes}
WHERE id = $1 AND status = 'dead'`

	// The server may still keep the session of a dead node. If its lease is over, so is
	// its trust. Once the row is gone no other node can know this: the session is
	// terminated together with the row. It may end after this statement, so the setting
	// lets the statement close its terms, see {keep_leader}. A request may date from the
	// moment of the death.
	forgetNode = `
WITH corrected AS (` + install.CorrectTimes + `
), gone AS (
    DELETE FROM {nodes} n WHERE id = $1 AND status = 'dead' AND ` + trustOver + ` RETURNING *, set_config('tenure.incarnation', incarnation::text, true)
), forgotten AS (
    DELETE FROM {requests} r USING gone WHERE r.node_id = gone.id
), ended AS MATERIALIZED (
    SELECT pg_terminate_backend(l.pid)
    FROM pg_locks l
    JOIN gone ON gone.incarnation = l.objid::bigint
    WHERE ` + nodeLocksOf + ` = ` + install.ReadSpace + `::oid
        AND l.pid <> pg_backend_pid()
        AND gone.last_heartbeat + gone.lease_ms * interval '1 millisecond' < clock_timestamp()
)` + closeTermsOfGone + `
SELECT gone.incarnation, e.count > 0 FROM gone, (SELECT count(*) FROM ended) e`

	// Waits until the session of an incarnation has ended.
	awaitEnd = `SELECT pg_advisory_xact_lock_shared(` + install.ReadSpace + `, $1)`

	// A node stays until the server has ended its session.
	forgetNodes = `
WITH corrected AS (` + install.CorrectTimes + `
), gone AS (
    DELETE FROM {nodes}
    WHERE status = 'dead'
        AND last_heartbeat < clock_timestamp() - $1 * interval '1 millisecond'
        AND ` + trustOver + `
        AND pg_try_advisory_xact_lock_shared(` + install.ReadSpace + `, incarnation)
    RETURNING *
), forgotten AS (
    DELETE FROM {requests} r USING gone WHERE r.node_id = gone.id
)` + closeTermsOfGone + `
SELECT id FROM gone ORDER BY id`

	// If a dead node left a term open and no node has led the role since, the term
	// would stay open forever once the node's row is gone: it is closed as the next
	// leader would have closed it, see stmtClose.
	closeTermsOfGone = `, closed AS (
    UPDATE {terms} t
    SET ended_at = {term_end}(gone.last_heartbeat, gone.lease_ms, gone.died_at, NULL),
        last_seen = {last_sign}(gone.last_heartbeat, t.acquired_at),
        end_reason = CASE
            WHEN gone.last_heartbeat + gone.lease_ms * interval '1 millisecond' <= gone.died_at THEN 'lease_expired'
            ELSE 'crashed'
        END
    FROM gone
    WHERE t.node_id = gone.id AND t.incarnation = gone.incarnation AND t.ended_at IS NULL
)`
)

// Members read the registry of nodes only when a session reports a possible change. Every
// statement with a change of a node's status or description is followed by a
// notification. The watch covers everything else.

// ReportsNodeChanges returns true: sessions report every change of the registry of nodes,
// apart from loads and heartbeats. See cluster.Store.
func (*Backend) ReportsNodeChanges() bool { return true }

// MarkDead marks silent nodes as dead and returns their ids. A node is silent if its last
// heartbeat is older than the threshold and than its own lease. MarkDead is the fallback
// for deaths undetected by the other nodes.
func (b *Backend) MarkDead(ctx context.Context, threshold time.Duration) ([]uuid.UUID, error) {
	return b.changeNodes(ctx, "mark dead nodes", markDead, threshold.Milliseconds())
}

// Forget removes a dead node from the registry and terminates its session if the server
// still keeps it. It waits until the node's lease has expired. If no dead node has this
// id, the error matches tenure.ErrUnknownNode.
func (b *Backend) Forget(ctx context.Context, node uuid.UUID) error {
	for {
		gone, err := b.forget(ctx, node)
		if err != nil || gone {
			return err
		}
		left, err := b.readTrust(ctx, node)
		if err != nil {
			return err
		}
		if !wakeup.Sleep(ctx, max(time.Millisecond, left)) {
			return fmt.Errorf("forget a node: it may trust its last session for another %v: %w", left.Round(time.Millisecond), context.Cause(ctx))
		}
	}
}

// forget removes a dead node unless it may still trust a session, and reports whether
// there was one. If it terminates a session, it notifies the candidates once more when
// the session has ended: until then, the session holds its roles.
func (b *Backend) forget(ctx context.Context, node uuid.UUID) (gone bool, err error) {
	err = b.reader.Ask(ctx, "forget a node", func(ctx context.Context, conn *pgx.Conn) error {
		var (
			incarnation int32
			ended       bool
		)
		err := conn.QueryRow(ctx, b.names.SQL(forgetNode), node).Scan(&incarnation, &ended)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		gone = true
		notify := func() error {
			_, err := conn.Exec(ctx, b.names.SQL(sessionStatements[stmtMoved]), b.names.ElectionsChannel(), node.String())
			return err
		}
		if err := notify(); err != nil || !ended {
			return err
		}
		if err := b.awaitEnd(ctx, conn, incarnation); err != nil {
			return err
		}
		return notify()
	})
	return gone, err
}

// awaitEnd waits until the session of an incarnation has ended, or for endTimeout.
func (b *Backend) awaitEnd(ctx context.Context, conn *pgx.Conn, incarnation int32) error {
	const endTimeout = 5 * time.Second
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d", endTimeout.Milliseconds())); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, b.names.SQL(awaitEnd), incarnation)
		return err
	})
	if sqlstate.Has(err, sqlstate.LockNotAvailable) { // the node is forgotten all the same
		return nil
	}
	return err
}

// readTrust returns for how long a dead node may still trust its last session.
func (b *Backend) readTrust(ctx context.Context, node uuid.UUID) (time.Duration, error) {
	var left float64
	err := b.reader.Ask(ctx, "forget a node", func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, b.names.SQL(readTrust), node).Scan(&left)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = fmt.Errorf("%w that is dead: %s", tenure.ErrUnknownNode, node)
	}
	return link.FromMilliseconds(left), err
}

// ForgetDead removes dead nodes if their last heartbeat is older than olderThan and their
// lease has expired. It returns their ids. Joining nodes do the same for nodes dead for a
// day.
func (b *Backend) ForgetDead(ctx context.Context, olderThan time.Duration) ([]uuid.UUID, error) {
	return b.changeNodes(ctx, "forget dead nodes", forgetNodes, olderThan.Milliseconds())
}

// changeNodes runs a statement, sends a notification and returns the ids of the changed
// nodes.
func (b *Backend) changeNodes(ctx context.Context, doing, sql string, args ...any) ([]uuid.UUID, error) {
	var changed []uuid.UUID
	err := b.reader.Ask(ctx, doing, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, b.names.SQL(sql), args...)
		if err == nil {
			changed, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		}
		if err == nil && len(changed) > 0 {
			_, err = conn.Exec(ctx, b.names.SQL(announceDead), b.names.ElectionsChannel())
		}
		return err
	})
	return changed, err
}
