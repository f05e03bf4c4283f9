// Package trace checks that a history of real steps is one that the models of lab/model
// allow. Each rule has the guard and the effect of the steps in steps.txt, which names them
// as the models do; a test of lab/model fails if a model changes and the table does not.
//
// The models count ticks of one margin, so that the trust window is one tick shorter than
// the lease. The checker measures the same intervals exactly: a deadline counts from when
// a heartbeat was sent, the silence of a session from when the last one was performed.
// Blur widens what clocks of real hosts cannot order.
//
// Events outside of all models are left out: a session ended by an administrator or closed by
// force is outside from then on. Its steps are counted and allowed.
package trace

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/steplog"
	"github.com/exactly-one/tenure/internal/steps"
)

// Table has a line for each step of the models: file, name, digest, kind. The kind - means
// that no history has the step.
//
//go:embed steps.txt
var Table string

// Checker replays a history. It is not safe for concurrent use.
type Checker struct {
	// Header says what a history has. With Frozen, what depends on the clocks of nodes is
	// not judged: they stand still at times. Blur is how far times may be wrong.
	steplog.Header

	Steps   int                // that were replayed
	Outside int                // sessions that left the models
	Seen    map[steps.Kind]int // moments of a real server that were judged

	nodes    map[string]*node
	sessions map[int64]*session
	roles    map[string]*role
	hosts    map[int64]time.Duration // by session of an agent: until when it is trusted
	server   server
	fenced   map[int64]steps.Step // open fenced transactions
	last     []steps.Step         // before the present one
	failure  error
}

// shown is how many steps a failure shows.
const shown = 15

// node is a node as the models have it, with its row in the registry.
type node struct {
	sessions []*session
	work     map[string]int64 // by role: the term whose work has not returned
	lease    time.Duration    // of its next session
	margin   time.Duration
	row      *nodeRow // nil: removed
}

type nodeRow struct {
	life      int // of the server, in which the node joined
	joined    time.Duration
	heartbeat time.Duration
	lease     time.Duration
}

// session has the variables conn, open, silent, sent, done, late, trust, has and leads.
type session struct {
	number       int64
	node         *node
	lease        time.Duration
	margin       time.Duration
	failoverWait time.Duration
	synchronous  bool
	started      time.Duration // the server, by its clock
	born         time.Duration

	conn     int // 0 given up, 1 joined, 2 the first heartbeat was acknowledged
	open     bool
	closed   bool // by the node
	outside  bool
	gone     bool          // its node was forgotten by force
	life     int           // of the server
	silent   time.Duration // since when
	sent     time.Duration // the last heartbeat
	done     bool          // the server has performed it
	late     bool          // a statement was performed after trust had ended
	deadline time.Duration
	gaveUp   time.Duration // when
	tried    map[string]bool
	releases map[string]bool
	got      map[string]int64 // terms that the server began
	leads    map[string]int64
	led      map[string]time.Duration // since when
	free     map[string]bool          // the last look saw no lock of a role that it leads
}

// role is a role on the server.
type role struct {
	locker *session
	row    *term // the last term; nil if there is none
	used   int64 // the highest number
	begun  int   // the life of the server in which a term has begun, if lives are seen
	terms  map[int64]*term
}

type term struct {
	number   int64
	session  *session
	life     int
	timeline int
	clean    bool
}

// server has the variables up, lifeRow and first.
type server struct {
	life, timeline int
	down           bool
	lifeRow        bool
	first          bool
	started, born  time.Duration // as its clock showed them
	ahead          time.Duration // its clock
	stepped        bool          // ever
	excused        time.Duration // until when its times are false
}

// New returns a checker of a history that begins with an empty installation.
func New() *Checker {
	return &Checker{
		nodes: map[string]*node{}, sessions: map[int64]*session{}, roles: map[string]*role{}, fenced: map[int64]steps.Step{}, hosts: map[int64]time.Duration{},
		server: server{lifeRow: true, first: true}, Seen: map[steps.Kind]int{},
	}
}

// Failure returns the first step that the models do not allow, or nil.
func (c *Checker) Failure() error { return c.failure }

// Record replays a step. After a step that is not allowed it does nothing.
func (c *Checker) Record(s steps.Step) {
	if c.failure != nil {
		return
	}
	c.Steps++
	if c.Nodes {
		c.imply(s)
	}
	rule, known := rules[s.Kind]
	if seen := observed[s.Kind]; seen != nil && c.Server {
		rule = seen
	}
	if !known {
		c.failure = fmt.Errorf("no rule is for the step %q", s.Kind)
		return
	}
	if wrong := rule(c, s); wrong != "" {
		c.failure = c.explain(s, wrong)
		return
	}
	if c.last = append(c.last, s); len(c.last) >= 2*shown {
		c.last = slices.Delete(c.last, 0, len(c.last)-shown)
	}
}

// Disallowed is a step that the models do not allow.
type Disallowed struct {
	Step   steps.Step
	Guard  string // of the model, and the values that it has
	Model  string // the steps of the models, one on a line
	State  string // of the session
	Before []steps.Step
}

func (d *Disallowed) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "step not allowed: %s\n  model: %s\n  requires: %s", Line(d.Step), d.Model, d.Guard)
	if d.State != "" {
		fmt.Fprintf(&text, "\n  state: %s", d.State)
	}
	text.WriteString("\n  after:")
	for _, s := range d.Before {
		text.WriteString("\n    " + Line(s))
	}
	return text.String()
}

// Line describes a step in one line.
func Line(s steps.Step) string {
	text := fmt.Sprintf("%.6fs %s", s.At.Seconds(), s.Kind)
	for _, part := range []struct {
		name  string
		value any
		show  bool
	}{
		{"session", s.Session, s.Session != 0}, {"role", s.Role, s.Role != ""}, {"term", s.Term, s.Term != 0},
		{"transaction", s.Tx, s.Tx != 0}, {"node", cut(s.Node), s.Node != ""}, {"trust", s.Trust, s.Trust != 0},
	} {
		if part.show {
			text += fmt.Sprintf(" %s=%v", part.name, part.value)
		}
	}
	return text
}

func cut(id string) string { return id[:min(8, len(id))] }

func (c *Checker) explain(s steps.Step, guard string) error {
	d := &Disallowed{Step: s, Guard: guard, Model: strings.Join(Models(s.Kind), "\n         "), Before: c.last[max(0, len(c.last)-shown):]}
	if x := c.sessions[s.Session]; x != nil {
		d.State = fmt.Sprintf("conn=%d open=%v trust=%v silent=%v leads=%v work=%v",
			x.conn, x.open, max(0, x.deadline-s.At), s.At-x.silent, x.leads, x.node.work)
	}
	return d
}

// Models returns the names of the models' steps for a kind.
func Models(kind steps.Kind) (names []string) {
	for line := range strings.Lines(Table) {
		fields := strings.Split(strings.TrimSpace(line), " | ")
		if len(fields) == 4 && slices.Contains(strings.Split(fields[3], ", "), string(kind)) {
			names = append(names, fields[0]+" "+fields[1])
		}
	}
	return names
}

// Beyond are the steps that no model has: they are several of its steps together, or make a
// session leave the models.
var Beyond = []steps.Kind{steps.Dies, steps.Kills, steps.ClockSteps, steps.Recreates, steps.RollsBack, steps.Leaves, steps.Sees}

// Kinds returns the kinds that have a rule.
func Kinds() (kinds []steps.Kind) {
	for kind := range rules {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, cmp.Compare[steps.Kind])
	return kinds
}

func (c *Checker) node(id string) *node {
	n := c.nodes[id]
	if n == nil {
		n = &node{work: map[string]int64{}}
		c.nodes[id] = n
	}
	return n
}

func (c *Checker) role(name string) *role {
	r := c.roles[name]
	if r == nil {
		r = &role{terms: map[int64]*term{}}
		c.roles[name] = r
	}
	return r
}

// inside returns the session of a step, or nil if it has left the models.
func (c *Checker) inside(s steps.Step) *session {
	if x := c.sessions[s.Session]; x != nil && !x.outside {
		return x
	}
	return nil
}

// holds is inside for the steps of a session that trusts. At the moment in which a node
// gives up its session, another goroutine may still emit one.
func (c *Checker) holds(s steps.Step) *session {
	x := c.inside(s)
	if x != nil && x.conn == 0 && s.At <= x.gaveUp+c.Blur {
		return nil
	}
	return x
}

// trusts is trust > 0.
func (c *Checker) trusts(x *session, now time.Duration) bool {
	return x.conn == 2 && !x.outside && (c.Frozen || now < x.deadline+c.Blur)
}

// works returns a role for which work of a session runs, or "".
func (x *session) works() string {
	for name, term := range x.got {
		if term != 0 && x.node.work[name] == term {
			return name
		}
	}
	return ""
}

func (x *session) giveUp(now time.Duration) {
	if x.conn > 0 {
		x.gaveUp = now
	}
	x.conn = 0
	clear(x.leads)
}

func (c *Checker) leave(x *session) {
	if !x.outside {
		x.outside = true
		c.Outside++
	}
	clear(x.leads)
}

// endOnServer is the end of a session on the server, which frees its locks.
func (c *Checker) endOnServer(x *session) {
	x.open = false
	for _, r := range c.roles {
		if r.locker == x {
			r.locker = nil
		}
	}
}
