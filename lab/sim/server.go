package sim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/simcalls"
	"github.com/exactly-one/tenure/internal/steps"
)

// server is the database server, as far as the protocol depends on it. Its
// methods are called with World.mu held.
type server struct {
	world        *World
	rnd          *stream
	up           bool
	started      identity
	life         life
	backends     []*backend // in order of incarnation
	locks        map[lockID]*lock
	roles        map[string]*roleRow
	nodes        map[uuid.UUID]*nodeRow
	requests     []tenure.Request
	offers       []*offer
	offerIDs     int64
	open         []*transaction
	transactions int64            // that began
	cursors      map[string]int64 // by role: the next event of its log
	last         int64            // incarnation drawn from the sequence
	lostAt       time.Duration    // when a notification was last lost
	defects      Defects
	installed    uuid.UUID
	dropped      bool     // the schema was dropped
	former       *primary // that a replica has replaced
	tail         logTail

	stepped   time.Duration // by how much the clock is ahead of the true time
	steppedAt time.Duration // when that was last changed; 0 if never

	// Term numbers come from the server's clock. Those of the servers differ by less than
	// clocksDiffer.
	clocks       *stream
	clocksDiffer time.Duration
	ahead        time.Duration // of the slowest

	calls *callLog // nil records nothing

	crashAtBegin func(leader *Machine) // called when the next term has begun; nil for nothing
}

// identity identifies the server, and since when it has kept its locks.
type identity struct {
	timeline int // changes with a failover
	boot     int // changes with a restart
}

// Defects are faults of the database, or of the statements sent to it, for
// tests that a checker notices them.
type Defects struct {
	CountTerms         bool // the number of a term is one more than that in the row
	RepeatTerms        bool // a term has the number of the one before
	NoServerLag        bool // a new term does not wait on another server
	WaitAnew           bool // that wait counts from when each candidate took the lock
	WaitEarly          bool // that wait ignores that the server was restarted cleanly
	NoInstallationLock bool // a new installation does not wait for sessions of the old one
	NoCompare          bool // a cursor moves from wherever it is
	NoSettle           bool // a commit that was not answered counts as decided
	NoFence            bool // fenced transactions do not hold off a new term
	Relock             bool // a role that is held is locked again
	NoReaper           bool // sessions that the idle timeout does not cover live on

	NoReunion   bool // that wait is over before all nodes are back
	DeadReunion bool // that wait does not include nodes that were found dead
	AnyReunion  bool // that wait is over when the nodes are back that an asynchronous replica has
	AnyClock    bool // that wait ends on a promoted standby whose clock may be behind
	LastHolder  bool // that wait is over for the node that held the last term in the table
	ForgetEarly bool // a dead node is forgotten although it may trust its session

	StalledWatch        bool // no node notices that a watch connection is blocked
	HeartbeatsDoNotLook bool // no heartbeat checks for silent nodes
	FalseTimes          bool // heartbeats of a clock that was ahead are never corrected
	FalseReservations   bool // neither are reservations
	FalseStart          bool // a server that started under a clock that was ahead keeps that time
	DeadHidden          bool // the reaper does not look at nodes that were marked dead
	UnnoticedDeaths     bool // no node detects that a node has died
	SilentChanges       bool // no node is notified that a node changed its description
}

// nodeRow is a node in the registry.
type nodeRow struct {
	info          tenure.NodeInfo
	description   tenure.Description // replaced, never changed
	incarnation   int64
	session       *backend // of that incarnation; it may have ended
	lease         time.Duration
	started       time.Duration // of the node's first session
	lastHeartbeat time.Duration
	opened        time.Duration // the session
	life          identity      // of the server, in which it was opened
	trustUntil    time.Duration // of another process with the id of the node
	load          tenure.Load
	leaving       bool // it received a request to drain, and has not updated its description since
	dead          bool
	diedAt        time.Duration // when the death was noticed
}

func newServer(w *World) *server {
	s := &server{
		world: w, rnd: w.stream("server"),
		up: true, started: identity{1, 1}, life: life{byMigration: true},
		locks: map[lockID]*lock{}, roles: map[string]*roleRow{}, nodes: map[uuid.UUID]*nodeRow{}, cursors: map[string]int64{},
	}
	s.tail.rnd, s.clocks = w.stream("log"), w.stream("clocks of servers")
	s.installed = s.newInstallation()
	return s
}

// wall is a time of the server's clock.
func (s *server) wall(at time.Duration) time.Time { return s.world.start.Add(at - clockBase) }

// connect starts a backend for a new session: a new incarnation, the node lock, the
// node's row, the notification. Backends that the same node left behind are its stale
// sessions: they keep their locks until the new session's watch ends them.
func (s *server) connect(c *session) *backend {
	s.last++
	b := &backend{
		server: s, client: c, incarnation: s.last,
		node: c.opening.Node, timing: c.opening.Timing,
		fencedSince: map[string]time.Duration{}, beatAt: s.world.now(), installed: s.installed,
	}
	b.down = c.down
	b.longest = s.longestLease()
	s.life.meet(s.clock())
	b.bornAt, b.upAt = s.since(s.life.born), s.since(s.life.up())
	row, returns := s.nodes[b.node.ID]
	if returns && !row.dead {
		b.stale = row.session
	}
	s.backends = append(s.backends, b)
	s.tryLock(b, nodeLock(b.incarnation))
	s.register(b)
	b.joins()
	b.opened()
	b.restartIdleTimer()
	s.world.log("server", "%s opened session %d", c.process, b.incarnation)
	s.joined(b, returns)
	return b
}

// notify wakes every session, except those whose notification is lost.
func (s *server) notify() { s.notifyAllBut(nil, (*session).noticed) }

// notifyAllBut sends a notification to every session but one, as notify does.
func (s *server) notifyAllBut(but *backend, noticed func(*session)) {
	for _, b := range s.backends {
		if b == but {
			continue
		}
		if s.rnd.chance(s.world.network.Loss) {
			s.world.log("server", "notification of %s lost", b.client.process)
			s.lostAt = s.world.now()
			continue
		}
		b.down.send(func() { noticed(b.client) })
	}
}

// crash ends every session and transaction, and all locks are lost. If silent, no
// client receives a message: it finds out when it sends something. Otherwise the server
// shuts down cleanly.
func (s *server) crash(silent bool) {
	s.world.log("server", "crashes")
	s.up = false
	s.emit(steps.Step{Kind: map[bool]steps.Kind{true: steps.Crashes, false: steps.Stops}[silent]})
	if silent {
		s.life.forget()
		s.loseTail()
	}
	s.flush()
	for _, b := range slices.Clone(s.backends) {
		b.end("the server went down", !silent)
	}
	clear(s.locks)
	s.called(simcalls.Call{Kind: simcalls.Crashes})
	for _, t := range slices.Clone(s.open) {
		t.end("the server went down")
	}
}

// start accepts connections again. The locks are gone, so to the protocol it is another
// server.
func (s *server) start() {
	s.up = true
	s.started.boot++
	s.life.started = s.clock()
	s.emit(steps.Step{Kind: steps.Starts})
	s.world.log("server", "starts as %d.%d", s.started.timeline, s.started.boot)
}

// startIfDown starts the server unless it runs.
func (s *server) startIfDown() {
	if !s.up {
		s.start()
	}
}

// backendOf returns the newest backend of a machine's process, or nil.
func (s *server) backendOf(m *Machine) *backend {
	for _, b := range slices.Backward(s.backends) {
		if b.client.process == m.process {
			return b
		}
	}
	return nil
}

// snapshot is what an asynchronous replica has received.
type snapshot struct {
	roles     map[string]*roleRow
	nodes     map[uuid.UUID]*nodeRow
	cursors   map[string]int64
	installed uuid.UUID
	dropped   bool
}

// replicate returns a copy of the tables as they are now.
func (s *server) replicate() snapshot {
	return snapshot{copyRows(s.roles), copyRows(s.nodes), maps.Clone(s.cursors), s.installed, s.dropped}
}

func copyRows[K comparable, V any](rows map[K]*V) map[K]*V {
	rows = maps.Clone(rows)
	for key, row := range rows {
		copied := *row
		rows[key] = &copied
	}
	return rows
}

// restore replaces the tables by those of a snapshot.
func (s *server) restore(tables snapshot) {
	s.roles, s.nodes, s.cursors = tables.roles, tables.nodes, tables.cursors
	s.installed, s.dropped = tables.installed, tables.dropped
	s.requests, s.offers = nil, nil
	s.flush()
	s.world.checker.promoted(tables)
	s.recordTables()
}

// promote makes a replica the server, with what it had received.
func (s *server) promote(replica snapshot) {
	s.former = &primary{s.started, s.life, s.replicate()}
	s.restore(replica)
	s.promotes()
	s.started.timeline++
	s.life.forget()
	s.setClock()
	s.start()
}

// setClock draws by how much the clock of another server is ahead of the slowest.
func (s *server) setClock() {
	if s.clocksDiffer > 0 {
		s.ahead = pick(s.clocks, 0, s.clocks.between(0, s.clocksDiffer), s.clocksDiffer-1)
	}
}

// primary is a server that a replica has replaced, as it was then.
type primary struct {
	identity identity
	life     life
	tables   snapshot
}

// restart makes the last primary, which never restarted, the server again.
func (s *server) restart() {
	s.world.replay.stop()
	s.stopCalls()
	s.restore(s.former.tables)
	s.up, s.started, s.life = true, s.former.identity, s.former.life
	s.world.log("server", "is %d.%d again", s.started.timeline, s.started.boot)
}

// recreate replaces the tables by empty ones.
func (s *server) recreate() {
	s.stopCalls()
	s.restore(snapshot{roles: map[string]*roleRow{}, nodes: map[uuid.UUID]*nodeRow{}, cursors: map[string]int64{}, installed: s.installed})
	s.life.born, s.life.byMigration = s.clock(), true
	s.emit(steps.Step{Kind: steps.Recreates})
	s.world.log("server", "the tables are made anew")
}

// leaders returns the rows of the roles that have a leader.
func (s *server) leaders(names []string) []tenure.Leader {
	if len(names) == 0 {
		names = slices.Collect(maps.Keys(s.roles))
	}
	now := s.clock()
	var leaders []tenure.Leader
	for _, name := range names {
		row := s.roles[name]
		if row == nil || row.ended || row.term == 0 || row.holder.ended {
			continue
		}
		node := s.nodes[row.node]
		if node == nil {
			continue
		}
		until := node.lastHeartbeat + row.lease
		leaders = append(leaders, tenure.Leader{
			Role: name, Term: row.term, NodeID: row.node, NodeName: node.info.Name, Host: node.info.Host,
			AcquiredAt: s.wall(row.acquired), LeaseUntil: s.wall(until), ValidFor: until - now,
			Address: node.description.Address, HTTPPort: node.description.HTTPPort, GRPCPort: node.description.GRPCPort, Labels: node.description.Labels,
		})
	}
	slices.SortFunc(leaders, func(a, b tenure.Leader) int { return cmp.Compare(a.Role, b.Role) })
	return leaders
}

// request records a request for the leader of a role, or for a node, and wakes
// it.
func (s *server) request(r tenure.Request) error {
	if r.Kind == tenure.RequestDrain || r.Kind == tenure.RequestUndrain {
		return s.requestOfNode(r)
	}
	if !s.isLed(r.Role) || r.Term != 0 && r.Term != s.roles[r.Role].term {
		return tenure.ErrNoLeader
	}
	s.enqueue(r)
	return nil
}

// isLed reports whether the session of a role's leader lives.
func (s *server) isLed(role string) bool {
	row := s.roles[role]
	return row != nil && !row.ended && row.term > 0 && !row.holder.ended
}

// checkTarget returns an error if a node cannot be the target of a hand-over.
func (s *server) checkTarget(node uuid.UUID) error {
	switch {
	case !s.isAlive(node):
		return tenure.ErrUnknownNode
	case !s.isActive(node):
		return tenure.ErrNotActive
	}
	return nil
}

// enqueue records a request.
func (s *server) enqueue(r tenure.Request) {
	s.flush()
	r.At = s.wall(s.clock())
	s.requests = append(s.requests, r)
	s.notify()
}
