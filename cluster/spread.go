package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster/internal/placement"
)

// defaultMoveDelay is that of SpreadConfig.
const defaultMoveDelay = time.Second

// SpreadRole is one of the roles that members share.
type SpreadRole struct {
	Role tenure.Role
	// Requires are labels that a node must have to lead the role. While no live
	// node has all of them, nobody leads it.
	Requires map[string]string
	// Prefers are labels of the nodes that should lead the role: the more of
	// them, the better. They decide where a role goes that nobody leads, as far
	// as every node gets its share. A role that is led moves for their sake only
	// when that is asked for; see [PlanRebalance].
	Prefers map[string]string
	// PreferredNode is the name or id of the node that should lead the role. It
	// counts more than Prefers, and as Prefers does.
	PreferredNode string
}

// Partitions returns n roles for the parts of something: name/0 and so on.
func Partitions(name string, n int) []SpreadRole {
	roles := make([]SpreadRole, max(n, 0))
	for i := range roles {
		roles[i].Role = tenure.NamedRole(fmt.Sprintf("%s/%d", name, i))
	}
	return roles
}

// SpreadConfig configures a [Spread]. All members that share the roles should
// be given the same ones.
type SpreadConfig struct {
	// Roles are what is shared. Their names must differ.
	Roles []SpreadRole
	// Weight is this member's share in relation to that of the others: with
	// weight 2 it leads twice as many roles as a member with 1. Default 1.
	Weight float64
	// MoveDelay is for how long nodes must neither have come nor gone before
	// roles move away from those that lead them, so that a cluster that starts
	// does not move them again and again. What nobody leads is led at once.
	// Default 1 s.
	MoveDelay time.Duration
	// Election configures the elections for the roles. NoReacquire has no
	// meaning here, and ReconnectGrace none either: a role that was lost is led
	// by another member.
	Election tenure.ElectionConfig
}

// Spread shares roles among the members of a cluster: each leads its share, and
// when a member comes or goes, as few roles move as possible. Every member
// decides by itself, in the same way, from the same registry; nobody is in
// charge. That at most one leads a role is, as ever, up to the election for it:
// members that disagree for a moment cannot make two leaders. It is safe for
// concurrent use.
type Spread struct {
	member *Member
	name   string
	config SpreadConfig
	names  []string // of the roles, sorted
	roles  map[string]tenure.Role
	places []placement.Role

	wake chan struct{} // makes the loop look again

	mu          sync.Mutex
	changed     chan struct{} // closed when one of the following has changed
	running     bool
	plan        placement.Plan
	leaves      bool // the plan is one without this member
	handingOver int  // how many wait until the roles are handed over
	dirty       bool // what this member does may not be what it should
	elections   map[string]*tenure.Election
	candidacies map[string]*candidacy
}

// Spread returns the part of this member in roles that are shared under a name.
// Nothing happens before [Spread.Run]. The error matches tenure.ErrInvalidConfig
// or tenure.ErrInvalidRole if a setting cannot be used.
func (m *Member) Spread(name string, config SpreadConfig) (*Spread, error) {
	config.Weight = cmp.Or(config.Weight, 1)
	config.MoveDelay = cmp.Or(config.MoveDelay, defaultMoveDelay)
	config.Election.NoReacquire = true // whether to stand again is decided here
	config.Election.ReconnectGrace = 0
	s := &Spread{
		member: m, name: name, config: config, roles: make(map[string]tenure.Role, len(config.Roles)),
		wake: make(chan struct{}, 1), changed: make(chan struct{}),
		elections: map[string]*tenure.Election{}, candidacies: map[string]*candidacy{},
	}
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("spread %q: %w", name, err)
	}
	s.names = slices.Sorted(maps.Keys(s.roles))
	return s, nil
}

// validate checks the configuration and takes over the roles.
func (s *Spread) validate() error {
	if err := tenure.NamedRole(s.name).Validate(); err != nil {
		return fmt.Errorf("the name cannot be used: %w", err)
	}
	if weight := s.config.Weight; !(weight > 0) || math.IsInf(weight, 0) {
		return fmt.Errorf("%w: the weight is %v; it must be more than 0", tenure.ErrInvalidConfig, weight)
	}
	if s.config.MoveDelay < 0 {
		return fmt.Errorf("%w: the move delay is %v; it must not be negative", tenure.ErrInvalidConfig, s.config.MoveDelay)
	}
	for _, r := range s.config.Roles {
		if err := r.Role.Validate(); err != nil {
			return err
		}
		name := r.Role.Name()
		if _, twice := s.roles[name]; twice {
			return fmt.Errorf("%w: the role %q is listed twice", tenure.ErrInvalidConfig, name)
		}
		s.roles[name] = r.Role
		s.places = append(s.places, placement.Role{
			Name: name, Requires: maps.Clone(r.Requires), Prefers: maps.Clone(r.Prefers), PreferredNode: r.PreferredNode,
		})
	}
	return nil
}

// Name returns the name under which the roles are shared.
func (s *Spread) Name() string { return s.name }

// Held returns the names of the roles that this member leads now, sorted.
func (s *Spread) Held() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var held []string
	for name, c := range s.candidacies {
		if c.election.IsLeader() {
			held = append(held, name)
		}
	}
	slices.Sort(held)
	return held
}

// SpreadPlan says who shall lead the roles of a spread.
type SpreadPlan struct {
	Placed   map[string]NodeID // by role
	Unplaced []UnplacedRole    // ordered by role
}

// UnplacedRole is a role that no live node may lead.
type UnplacedRole struct {
	Role   string
	Reason string
}

// Plan returns where this member thinks that the roles belong. It is empty until
// Run has looked at the registry.
func (s *Spread) Plan() SpreadPlan {
	s.mu.Lock()
	plan := s.plan // never changed, only replaced
	s.mu.Unlock()
	public := SpreadPlan{Placed: make(map[string]NodeID, len(plan.Placed)), Unplaced: unplacedRoles(plan)}
	for role, node := range plan.Placed {
		public.Placed[role] = NodeID(node)
	}
	return public
}

// Unplaced returns the roles that no live node may lead, with the reasons.
func (s *Spread) Unplaced() []UnplacedRole {
	s.mu.Lock()
	defer s.mu.Unlock()
	return unplacedRoles(s.plan)
}

func unplacedRoles(plan placement.Plan) []UnplacedRole {
	unplaced := make([]UnplacedRole, len(plan.Unplaced))
	for i, u := range plan.Unplaced {
		unplaced[i] = UnplacedRole(u)
	}
	return unplaced
}

// Run takes part until the context ends: it calls work, each time in a goroutine
// of its own, for every role that belongs here, as [tenure.Election.Run] does.
// When the context ends, it hands the roles over to the members that stay, waits
// until work has returned, and returns nil.
//
// If work returns while its term stands, the role is given up; after
// tenure.Done this member leaves it alone until Run is called again, otherwise it
// leads again later, unless another member has taken the role by then: one that
// nobody leads for longer than the node's CheckInterval is led by the next
// member that may.
//
// The error matches tenure.ErrAlreadyStarted if the spread runs already,
// tenure.ErrClosed if the member leaves meanwhile, tenure.ErrUnsupported if the
// backend has no registry, and tenure.ErrDuplicateRole if the node stands for one
// of the roles otherwise.
func (s *Spread) Run(ctx context.Context, work tenure.Work) error {
	s.mu.Lock()
	if s.running {
		s.mu.Unlock()
		return fmt.Errorf("spread %q: %w", s.name, tenure.ErrAlreadyStarted)
	}
	s.running = true
	s.mu.Unlock()
	err := newSpreadRun(ctx, s, work).run(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running, s.plan = false, placement.Plan{}
	s.broadcastLocked()
	if err != nil {
		return fmt.Errorf("spread %q: %w", s.name, err)
	}
	return nil
}

// broadcastLocked wakes handOverAll and others that wait for a change.
func (s *Spread) broadcastLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// poke makes the loop look again.
func (s *Spread) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
