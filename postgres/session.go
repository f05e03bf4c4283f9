package postgres

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/internal/wakeup"
	"github.com/exactly-one/tenure/postgres/internal/link"
	"github.com/exactly-one/tenure/postgres/internal/memory"
	"github.com/exactly-one/tenure/postgres/internal/server"
	"github.com/exactly-one/tenure/postgres/internal/signal"
)

// session is one incarnation of a node: the session connection and the watch. All
// its methods except Abort are called by one goroutine.
type session struct {
	backend      *Backend
	opening      tenure.SessionOptions
	log          *slog.Logger
	conn         *pgx.Conn
	network      net.Conn // under conn; closed by Abort
	server       server.Server
	installation uuid.UUID
	space        int32 // first key of node locks
	incarnation  int32
	openedAt     time.Duration // on the node's monotonic clock

	listener     *connListener
	watch        *watch
	deaths       memory.Deaths        // noticed by the watch
	staleSession staleSession         // as it was when the session joined
	silence      *signal.SilenceTimer // of the watch connection; made before it
	table        lockTable
	remnants     remnants
	terminator   blockerTerminator

	registry  registryCache               // the last answer of Members, by node
	members   []tenure.Member             // the same in order; nil before the first read
	heldRoles map[string]*heldRole        // by role; their locks are held
	keys      map[tenure.LockKey]struct{} // of held roles, of the node and of the installation
	known     map[string]tenure.LockKey   // by role: keys found in the rows of roles
	blocked   memory.BlockedRows          // roles whose rows other sessions held at the last attempt
	beats     int                         // heartbeats so far
	earlier   membershipRead              // of the last heartbeat
	elsewhere ledElsewhere
	reunion   reunion
	reapedAt  time.Duration // when reapIfWatchDown last checked
	freedAt   time.Time     // when roles were last released; zero if none were
	abort     func()

	unanswered  atomic.Bool // a statement waits for its answer
	silenceSeen bool        // by the last heartbeat: another node is silent
	woken       bool        // Wait has returned true since the last call of Requests

	trying            bool          // of Diagnose: everything is in a transaction, to be rolled back
	reportedWatchDown bool          // whether the registry has the watch connection as down
	reportFailed      time.Duration // when reportWatchDown last failed; 0 if never
}

// membershipRead is the membership as of a heartbeat.
type membershipRead struct {
	membership int64
	at         time.Time // when the heartbeat was sent
}

// reunion records when a session looks whether all nodes are back.
type reunion struct {
	checkedAt time.Duration // on the node's monotonic clock
	checkAt   time.Duration // when it looks next
}

var (
	_ tenure.Session         = (*session)(nil)
	_ tenure.RegistrySession = (*session)(nil)
)

// connListener receives the notices and notifications of the session connection.
// It is created before the connection.
type connListener struct {
	signal.ChangeSignal
	pid          uint32
	nodes        string // the channel of changes to the registry of nodes only
	nodesChanged func() // called when the registry of nodes may have changed
	changedNodes signal.ChangedNodes
	warnings     []string // on the statement in progress; of the session's goroutine
	moved        chan struct{}

	joined       atomic.Bool               // a node may have joined: a notification has said so
	requests     atomic.Bool               // a request may wait: a notification or a heartbeat has said so
	received     atomic.Pointer[time.Time] // when the last notification of another session about nodes arrived
	nodesAwaited atomic.Bool               // a term waits for nodes to come back
}

func newConnListener(nodes string, nodesChanged func()) *connListener {
	return &connListener{nodes: nodes, nodesChanged: nodesChanged, moved: make(chan struct{}, 1)}
}

// maxWarnings is how many warnings on one statement are logged.
const maxWarnings = 10

func (e *connListener) Notice(n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" && len(e.warnings) < maxWarnings {
		e.warnings = append(e.warnings, n.Code+" "+n.Message)
	}
}

// Notification wakes the engine and, in case it waits for the first other node to
// join, the watch. Of the session's own notifications it only notes the nodes.
func (e *connListener) Notification(n *pgconn.Notification) {
	aboutNode := e.changedNodes.Note(n.Payload)
	if n.PID == e.pid {
		return
	}
	if !aboutNode {
		e.requests.Store(true)
	}
	if n.Payload != link.RolesOnly {
		now := time.Now()
		e.received.Store(&now)
	}
	if n.Channel != e.nodes || e.nodesAwaited.Load() {
		e.Announce()
	}
	if n.Channel == e.nodes {
		e.joined.Store(true)
		e.announceNodes()
	}
	wakeup.Send(e.moved)
}

// announceNodes reports a possible change of the registry of nodes.
func (e *connListener) announceNodes() {
	if e.nodesChanged != nil {
		e.nodesChanged()
	}
}

// announceAnyNode reports a possible change of any node.
func (e *connListener) announceAnyNode() {
	e.changedNodes.Note(link.AnyNode)
	e.announceNodes()
}

// Incarnation implements [tenure.Session].
func (s *session) Incarnation() int64 { return int64(s.incarnation) }

// query runs a prepared statement and hands each row to scan. It is the only
// way to the session connection after opening: no deadline, and nothing is sent
// once trust has ended.
func (s *session) query(name link.Statement, scan func(pgx.Rows) error, args ...any) error {
	if !s.opening.MaySend() {
		return fmt.Errorf("%w: %s was not sent: trust has ended", tenure.ErrSessionLost, name)
	}
	s.listener.warnings = s.listener.warnings[:0]
	s.unanswered.Store(true)
	err := link.ForEach(s.conn, name, scan, args...)
	s.unanswered.Store(false)
	if err == nil && !s.trying {
		err = pgdial.Idle(s.conn.PgConn())
	}
	return classify(s.conn, string(name), err)
}

// warningAsError returns an error for a warning: a canceled wait for a synchronous
// replica reports success with a warning.
func (s *session) warningAsError(name link.Statement) error {
	if len(s.listener.warnings) == 0 {
		return nil
	}
	return fmt.Errorf("%s: the server warned: %v", name, s.listener.warnings)
}

// Close implements [tenure.Session]. All steps except closing the connection are
// optional: if one fails, the other nodes detect the end like a death. Leaving costs the
// server and all other nodes work, so candidates for just released roles get a head
// start.
func (s *session) Close() error {
	if wait := time.Until(s.freedAt.Add(headStart)); wait > 0 {
		<-time.After(wait)
	}
	s.watch.leave()
	s.backend.lineages.Forget(s.opening.Node.ID)
	err := s.query(stmtLeave, nil, s.opening.Node.ID, s.incarnation)
	if err == nil {
		s.backend.recent.Flushed(s.opening.Node.ID)
	}
	if !errors.Is(err, tenure.ErrSessionLost) {
		err = errors.Join(err, s.query(stmtMoved, nil, s.backend.names.NodesChannel(), s.nodePayload()))
	}
	link.Discard(s.conn) // frees the node lock
	s.Abort()
	s.terminator.wait()
	if err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	return nil
}

// LockConn is the optional method of a [tenure.Session]. Under TLS it is the connection below.
func (s *session) LockConn() (syscall.RawConn, error) {
	network, ok := s.network.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("a connection of type %T cannot be shared with another process", s.network)
	}
	return network.SyscallConn()
}

// Abort implements [tenure.Session].
func (s *session) Abort() { s.abort() }

// onceAbort returns the implementation of Abort.
func (s *session) onceAbort() func() {
	return sync.OnceFunc(func() {
		if s.unanswered.Load() { // the server hangs
			s.backend.connect.Dialer.Avoid(s.conn)
		}
		_ = s.network.Close() // makes a read or write in progress return
		s.watch.abort()
		s.terminator.abort()
	})
}

// nodePayload is the payload of notifications about this node.
func (s *session) nodePayload() string { return s.opening.Node.ID.String() }
