package postgres

import (
	"context"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/simcalls"
	"github.com/exactly-one/tenure/postgres/internal/install"
)

// repeater repeats calls in a database whose clock_timestamp() shows what each connection
// sets. So the functions of the schema run as they are. The built-in function is renamed
// in that database.
type repeater struct {
	t            *testing.T
	ctx          context.Context
	b            *Backend
	dsn          string
	installation uuid.UUID
	space        int32
	other        *pgx.Conn   // for what no session sends
	idle         []*pgx.Conn // without locks

	repeated    map[string]int
	differences int

	// Of a schedule.
	calls    []simcalls.Call
	place    int
	done     map[int]bool // calls that were repeated with an earlier one
	sessions map[int64]*repeatedSession
	nodes    map[int64]uuid.UUID
	terms    map[string]map[int64]int64 // by role: the number of a simulated one
	fences   map[int64]pgx.Tx
	known    map[string]bool // roles with a row
}

// repeatedSession is a session of a schedule.
type repeatedSession struct {
	conn     *pgx.Conn
	node     simcalls.Node
	margin   time.Duration
	settling bool
	held     map[string]bool          // roles whose locks it has; "" for the node lock
	closed   map[string]simcalls.Role // rows as it last closed them
}

const (
	renameClock = `ALTER FUNCTION pg_catalog.clock_timestamp() RENAME TO clock_of_machine`
	stepClock   = `
CREATE FUNCTION pg_catalog.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN coalesce(nullif(current_setting('simulated.clock', true), '')::timestamptz, pg_catalog.clock_of_machine());
END
$$`
	// A watch that waits tries each lock for a millisecond, and the server logs nothing.
	shortWaits = `SET log_lock_waits = on; SET deadlock_timeout = '1ms'; SET log_min_messages = fatal; SET statement_timeout = '1min'`
)

func newRepeater(t *testing.T) *repeater {
	t.Helper()
	dsn := pgtest.Shared(t).Database(t)
	r := &repeater{t: t, ctx: t.Context(), dsn: dsn, other: pgtest.Conn(t, dsn), repeated: map[string]int{}}
	for _, sql := range []string{renameClock, stepClock, shortWaits} {
		r.exec(r.other, sql)
	}
	r.b = backendOn(t, dsn, Config{})
	if err := r.b.Migrate(r.ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.other.QueryRow(r.ctx, r.b.names.SQL("SELECT id FROM {installation}")).Scan(&r.installation); err != nil {
		t.Fatal(err)
	}
	r.space = install.NodeSpace(r.installation)
	return r
}

func (r *repeater) exec(conn *pgx.Conn, sql string, args ...any) int64 {
	r.t.Helper()
	tag, err := conn.Exec(r.ctx, sql, args...)
	if err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
	return tag.RowsAffected()
}

// perform runs a statement of the schema at the time of a call, and returns how many rows
// it read or wrote.
func (r *repeater) perform(conn *pgx.Conn, c simcalls.Call, sql string, args ...any) int64 {
	r.t.Helper()
	r.setClock(conn, c)
	return r.exec(conn, r.b.names.SQL(sql), args...)
}

func (r *repeater) setClock(conn *pgx.Conn, c simcalls.Call) {
	r.t.Helper()
	r.exec(conn, "SELECT set_config('simulated.clock', $1, false)", instant(c.Clock).Format("2006-01-02 15:04:05.999999+00"))
}

// check runs a function that must return true.
func (r *repeater) check(c simcalls.Call, conn *pgx.Conn, sql string, args ...any) {
	r.t.Helper()
	var yes bool
	if err := conn.QueryRow(r.ctx, sql, args...).Scan(&yes); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
	if !yes {
		r.differ(c, "%s with %v is not true", sql, args)
	}
}

func (r *repeater) connection() *pgx.Conn {
	if n := len(r.idle); n > 0 {
		conn := r.idle[n-1]
		r.idle = r.idle[:n-1]
		return conn
	}
	conn := pgtest.Conn(r.t, r.dsn)
	r.exec(conn, shortWaits)
	return conn
}

// reset ends everything of a schedule.
func (r *repeater) reset() {
	r.t.Helper()
	r.endFences()
	r.freeAll()
	r.done, r.nodes = map[int]bool{}, map[int64]uuid.UUID{}
	r.terms, r.known = map[string]map[int64]int64{}, map[string]bool{}
}

// truncate empties the tables.
func (r *repeater) truncate() {
	r.t.Helper()
	// Set by hand: an installation for each schedule would take longer than the schedule.
	r.exec(r.other, r.b.names.SQL("TRUNCATE {terms}, {history}, {nodes}, {node_history}, {requests}"))
	clear(r.known)
}

// freeAll frees all locks, as a crash does.
func (r *repeater) freeAll() {
	r.t.Helper()
	for _, s := range r.sessions {
		r.exec(s.conn, "SELECT pg_advisory_unlock_all()")
		r.idle = append(r.idle, s.conn)
	}
	r.sessions = map[int64]*repeatedSession{}
}

// term returns the number of a simulated term. That of none is 0.
func (r *repeater) term(role string, simulated int64) (number int64, known bool) {
	if simulated == 0 {
		return 0, true
	}
	number, known = r.terms[role][simulated]
	if !known {
		return -1, false
	}
	return number, true
}

func (r *repeater) begins(role string, simulated, number int64) {
	if r.terms[role] == nil {
		r.terms[role] = map[int64]int64{}
	}
	r.terms[role][simulated] = number
}

func (r *repeater) holds(c simcalls.Call, role string) { r.sessions[c.Session].held[role] = true }

func (r *repeater) key(role string) tenure.LockKey {
	return tenure.NamedRole(role).LockKey(r.installation)
}

func lineage(l simcalls.Life) string { return strconv.Itoa(l.Timeline) }
func epoch(l simcalls.Life) string   { return strconv.Itoa(l.Boot) }

// open repeats the opening of a session: its node lock, and the row of its node.
func (r *repeater) open(c simcalls.Call) {
	node := c.Nodes[0]
	s := &repeatedSession{
		conn: r.connection(), node: node, margin: c.Margin, settling: c.Settling, held: map[string]bool{"": true}, closed: map[string]simcalls.Role{},
	}
	r.sessions[c.Session], r.nodes[c.Session] = s, node.ID
	r.exec(s.conn, "SELECT set_config('tenure.incarnation', $1, false)", strconv.FormatInt(c.Session, 10))
	r.check(c, s.conn, "SELECT pg_try_advisory_lock($1::int, $2::int)", r.space, c.Session)
	r.perform(s.conn, c, joinNodes, append([]any{
		node.ID, c.Session, "node", "host", int64(milliseconds(node.Lease)), lineage(c.Life), epoch(c.Life), []int32{int32(c.Previous)},
	}, append(descriptionColumns(tenure.Description{Status: tenure.StatusActive}), false)...)...)
}

// taken is what {take} says about a role.
type taken struct {
	number, last int64
	began        *time.Time
	vacant, left float64
	ledBy        int32
}

// taking is a way to call {take}.
type taking int

const (
	lockAndBegin taking = iota
	lockOnly            // the rows are those of another server
	examined            // the session has the locks
)

// take calls {take}, and returns what it says by role.
func (r *repeater) take(c simcalls.Call, roles []simcalls.Role, how taking) map[string]taken {
	r.t.Helper()
	s, n := r.sessions[c.Session], len(roles)
	names, keys, yieldTerms, yieldFor := make([]string, n), make([]int64, n), make([]int64, n), make([]int64, n)
	for i, role := range roles {
		names[i], keys[i] = role.Name, r.key(role.Name).Key
		yieldTerms[i], _ = r.term(role.Name, role.YieldTerm)
		yieldFor[i] = int64(min(milliseconds(role.YieldFor), math.MaxInt32))
		if !r.known[role.Name] {
			r.perform(s.conn, c, sessionStatements[stmtAddRoles], []string{role.Name}, []string{r.key(role.Name).String()})
			r.known[role.Name] = true
		}
	}
	lives := []any{lineage(c.Life), epoch(c.Life), how == examined, c.Life.New}
	if how == lockOnly {
		lives = []any{"", "", false, false}
	}
	r.setClock(s.conn, c)
	rows, err := s.conn.Query(r.ctx, r.b.names.SQL(sessionStatements[stmtTake]), slices.Concat(
		[]any{names, keys, noPairs, noPairs, yieldTerms, yieldFor, s.node.ID, []string{"node"}, c.Session, int64(milliseconds(s.node.Lease))},
		lives, []any{s.settling, noPairs, noTimes, r.space})...)
	got := map[string]taken{}
	if err == nil {
		var role string
		var row taken
		_, err = pgx.ForEachRow(rows, []any{&role, &row.number, &row.last, &row.began, &row.vacant, &row.left, &row.ledBy}, func() error {
			if _, twice := got[role]; twice {
				r.differ(c, "{take} returns %s twice", role)
			}
			got[role] = row
			return nil
		})
	}
	if err != nil {
		r.t.Fatalf("seed %d, call %d: {take}: %v", r.calls[0].Seed, r.place, err)
	}
	return got
}

// reason reads how a term ended.
func (r *repeater) reason(role string, term int64) (reason string) {
	r.t.Helper()
	const read = "SELECT coalesce(max(end_reason), 'no row') FROM {history} WHERE role = $1 AND term = $2"
	if err := r.other.QueryRow(r.ctx, r.b.names.SQL(read), role, term).Scan(&reason); err != nil {
		r.t.Fatal(err)
	}
	return reason
}

// close repeats the closing of terms.
func (r *repeater) close(c simcalls.Call, roles []simcalls.Role) {
	names, keys := make([]string, len(roles)), make([]string, len(roles))
	for i, role := range roles {
		names[i], keys[i] = role.Name, r.key(role.Name).String()
	}
	s := r.sessions[c.Session]
	r.perform(s.conn, c, sessionStatements[stmtClose], names, keys, lineage(c.Life), epoch(c.Life), noPairs, noTimes)
	for _, want := range roles {
		s.closed[want.Name] = want
		var got struct {
			term          int64
			reason, cause string
			endedAt       *time.Time
		}
		const read = "SELECT term, coalesce(end_reason, ''), end_cause, ended_at FROM {terms} WHERE role = $1"
		if err := r.other.QueryRow(r.ctx, r.b.names.SQL(read), want.Name).Scan(&got.term, &got.reason, &got.cause, &got.endedAt); err != nil {
			r.t.Fatal(err)
		}
		if number, _ := r.term(want.Name, want.Term); got.term != number {
			r.differ(c, "%s: the row has the term %d; want %d", want.Name, got.term, number)
		}
		switch {
		case want.Term == 0:
		case got.reason != string(want.Reason):
			r.differ(c, "%s: the term ended as %q; in the simulation as %q", want.Name, got.reason, want.Reason)
		case got.endedAt == nil || !got.endedAt.Equal(instant(want.EndedAt)):
			r.differ(c, "%s: the term ended at %v; in the simulation at %v", want.Name, got.endedAt, instant(want.EndedAt))
		case want.Unobserved != (got.cause == "no node observed the end"):
			r.differ(c, "%s: the cause is %q; no node observed the end in the simulation: %t", want.Name, got.cause, want.Unobserved)
		}
	}
}

// end repeats the record of a release.
func (r *repeater) end(c simcalls.Call) {
	n := len(c.Roles)
	names, terms, reasons, targets, reserve := make([]string, n), make([]int64, n), make([]string, n), make([]*uuid.UUID, n), make([]int64, n)
	var over int64
	for i, role := range c.Roles {
		names[i], reasons[i], reserve[i] = role.Name, string(role.Reason), int64(milliseconds(role.Reserve))
		terms[i], _ = r.term(role.Name, role.Term)
		if role.Target != uuid.Nil {
			targets[i] = &role.Target
		}
		if role.Over {
			over++
		}
	}
	s := r.sessions[c.Session]
	if ended := r.perform(s.conn, c, sessionStatements[stmtEnd], names, terms, reasons, targets, reserve, s.node.ID,
		make([]string, n), make([]string, n), make([]*int64, n)); ended != over {
		r.differ(c, "%d terms end; in the simulation %d of %v", ended, over, c.Roles)
	}
}

// fence repeats the fence of a transaction, which stays open if it passes.
func (r *repeater) fence(c simcalls.Call) {
	role := c.Roles[0]
	term, _ := r.term(role.Name, role.Term)
	conn := r.connection()
	tx, err := conn.Begin(r.ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	sql, args := r.b.fenceQuery([]termRef{{role.Name, term, role.Node}})
	passes := r.exec(conn, sql, args...) == 1
	if passes {
		r.fences[c.Tx] = tx
	} else {
		r.endFence(tx)
	}
	if passes != c.Passes {
		r.differ(c, "the transaction of term %d of %s passes the fence: %t; in the simulation: %t", role.Term, role.Name, passes, c.Passes)
	}
}

// endFences ends all transactions, as a crash does.
func (r *repeater) endFences() {
	r.t.Helper()
	for _, tx := range r.fences {
		r.endFence(tx)
	}
	r.fences = map[int64]pgx.Tx{}
}

func (r *repeater) endFence(tx pgx.Tx) {
	r.t.Helper()
	if err := tx.Rollback(r.ctx); err != nil {
		r.t.Fatal(err)
	}
	r.idle = append(r.idle, tx.Conn())
}

// watch repeats a look of a watch at its predecessors, and asks whether a session has
// ended.
func (r *repeater) watch(c simcalls.Call) {
	blind := make([]int32, len(c.Blind))
	for i, session := range c.Blind {
		blind[i] = int32(session)
	}
	// Set by hand: which watches are down, the simulator reads at the nodes.
	r.exec(r.other, r.b.names.SQL("UPDATE {nodes} SET watching = incarnation <> ALL ($1) WHERE watching = (incarnation = ANY ($1))"), blind)
	r.setClock(r.other, c)
	var event string
	var died, seen int64
	var waited bool
	var at time.Time
	const noWait, current = 0, 1
	err := r.other.QueryRow(r.ctx, r.b.names.SQL(watchStatements[stmtWatch]), c.Session, c.Stale, r.space, current, noWait, int64(milliseconds(c.Margin))).
		Scan(&event, &died, &seen, &waited, &at)
	if err != nil {
		r.t.Fatalf("{watch}: %v", err)
	}
	if event == "timeout" || event == "alone" {
		event, died = "", 0
	}
	if event != c.Event || died != c.Died {
		r.differ(c, "{watch} sees %q of session %d; the simulated watch %q of session %d", event, died, c.Event, c.Died)
	}
	if event != "" {
		r.repeated["watch "+event]++
	}
	asked := make([]int32, len(c.Asked))
	for i, session := range c.Asked {
		asked[i] = int32(session)
	}
	var ended bool
	if err := r.other.QueryRow(r.ctx, r.b.names.SQL("SELECT {ended}($1, $2)"), r.space, asked).Scan(&ended); err != nil {
		r.t.Fatalf("{ended}: %v", err)
	}
	if ended != c.AnyEnds {
		r.differ(c, "{ended} says %t of the sessions %v; in the simulation %t", ended, c.Asked, c.AnyEnds)
	}
}

// change repeats a call that is answered with little or nothing.
func (r *repeater) change(c simcalls.Call) {
	s := r.sessions[c.Session]
	switch c.Kind {
	case simcalls.Beats:
		beats := r.perform(s.conn, c, sessionStatements[stmtHeartbeat], s.node.ID, c.Session, 0, 0, 0.0, 0.0, false, 0, r.installation,
			r.space, noPairs, int64(milliseconds(s.margin)), noTexts)
		if (beats == 0) != c.Rowless {
			r.differ(c, "a heartbeat writes %d rows; the node has none in the simulation: %t", beats, c.Rowless)
		}
	case simcalls.Corrects:
		r.perform(r.other, c, install.CorrectTimes)
	case simcalls.Deaths:
		if found := r.perform(r.other, c, watchStatements[stmtDead], c.Session, "nodes", instant(c.Nodes[0].DiedAt)); found != 1 {
			r.differ(c, "%d nodes are marked dead", found)
		}
	case simcalls.Leaves:
		if left := r.perform(r.other, c, sessionStatements[stmtLeave], r.nodes[c.Session], c.Session); left != 1 {
			r.differ(c, "%d nodes leave", left)
		}
	case simcalls.Frees:
		r.free(c, s)
	case simcalls.Unfences:
		if tx := r.fences[c.Tx]; tx != nil {
			delete(r.fences, c.Tx)
			r.endFence(tx)
		}
	case simcalls.Crashes:
		r.freeAll()
	case simcalls.Tables:
		r.restore(c)
	default:
		r.t.Fatalf("an unknown call: %v", c.Kind)
	}
}

// free frees a lock of a session. Without locks, it is over.
func (r *repeater) free(c simcalls.Call, s *repeatedSession) {
	if len(c.Roles) == 0 {
		r.check(c, s.conn, "SELECT pg_advisory_unlock($1::int, $2::int)", r.space, c.Session)
		delete(s.held, "")
	} else {
		r.check(c, s.conn, "SELECT pg_advisory_unlock($1::bigint)", r.key(c.Roles[0].Name).Key)
		delete(s.held, c.Roles[0].Name)
	}
	if len(s.held) == 0 {
		r.idle = append(r.idle, s.conn)
		delete(r.sessions, c.Session)
	}
}

// restore replaces the tables by those that a crash or a promotion left.
func (r *repeater) restore(c simcalls.Call) {
	r.endFences()
	r.truncate()
	timeOf := func(at time.Duration, known bool) *time.Time {
		if !known {
			return nil
		}
		found := instant(at)
		return &found
	}
	// Set by hand: which commits are lost, the simulated server has drawn.
	const node = `
INSERT INTO {nodes} (id, incarnation, name, hostname, lease_ms, last_heartbeat, status, died_at, pid, backend_start, server_lineage, server_epoch)
VALUES ($1, $2, 'node', 'host', $3, $4, $5, $6, 0, '2000-01-01', $7, $8)`
	for _, n := range c.Nodes {
		status := map[bool]string{true: "dead", false: "active"}[n.Dead]
		r.perform(r.other, c, node, n.ID, n.Session, int64(milliseconds(n.Lease)), instant(n.Heartbeat), status, timeOf(n.DiedAt, n.Dead),
			lineage(n.Life), epoch(n.Life))
	}
	// Set by hand: for the same reason.
	const role = `
INSERT INTO {terms} (role, lock_key, term, node_id, node_name, incarnation, lease_ms, acquired_at, ended_at, end_reason, end_cause,
    server_lineage, server_epoch, reserved_for, reserved_until)
VALUES ($1, $2, $3, $4, 'node', $5, $6, $7, $8, nullif($9, ''), $10, $11, $12, $13, $14)`
	for _, w := range c.Roles {
		r.known[w.Name] = true
		if w.Term == 0 {
			r.perform(r.other, c, sessionStatements[stmtAddRoles], []string{w.Name}, []string{r.key(w.Name).String()})
			continue
		}
		number, known := r.term(w.Name, w.Term)
		if !known {
			r.differ(c, "%s: the term %d never began", w.Name, w.Term)
			continue
		}
		cause := map[bool]string{true: "no node observed the end", false: ""}[w.Unobserved]
		var target *uuid.UUID
		if w.Target != uuid.Nil {
			target = &w.Target
		}
		r.perform(r.other, c, role, w.Name, r.key(w.Name).String(), number, w.Node, w.Session, int64(milliseconds(w.Lease)), instant(w.Begun),
			timeOf(w.EndedAt, w.Over), string(w.Reason), cause, lineage(w.Life), epoch(w.Life), target, timeOf(w.ReservedUntil, target != nil))
	}
}
