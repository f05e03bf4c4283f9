package cron

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
)

// Config configures a scheduler. The zero value is ready to use.
type Config struct {
	// Role is what the scheduler stands for. Default the role "scheduler".
	Role tenure.Role
	// Grace is how late a tick may be run as if nothing had happened: a failover
	// takes less. Older ones are missed, and CatchUp says what becomes of them.
	// Default 1 min.
	Grace time.Duration
	// PollInterval is the time between two looks at the schedules' rows, in case
	// the news of a change is lost. Default 5 s.
	PollInterval time.Duration
	// Election configures the election further.
	Election tenure.ElectionConfig
}

// Scheduler runs schedules while its node leads a role. It is safe for
// concurrent use.
type Scheduler struct {
	node     *tenure.Node
	election *tenure.Election
	tables   schema.Tables
	database postgres.Database
	config   Config

	replaced chan struct{} // the schedules are others

	mu        sync.Mutex
	schedules []timetable
	running   bool
}

// New makes a scheduler for a node, working in a database, which must be the one
// that the node's backend is on, and safe for concurrent use, as a pool is: with
// at least one connection beside those that jobs keep busy. Its user needs the
// privileges of [postgres.Backend.WorkGrants]. It returns an error that matches
// tenure.ErrUnsupported if the backend is not PostgreSQL, and those of
// [tenure.Node.Election].
func New(node *tenure.Node, database postgres.Database, config Config) (*Scheduler, error) {
	backend, ok := node.Backend().(*postgres.Backend)
	if !ok {
		return nil, fmt.Errorf("%w: schedules need sessions on PostgreSQL", tenure.ErrUnsupported)
	}
	if config.Role == (tenure.Role{}) {
		config.Role = tenure.NamedRole("scheduler")
	}
	if config.Grace == 0 {
		config.Grace = time.Minute
	}
	if config.PollInterval == 0 {
		config.PollInterval = 5 * time.Second
	}
	switch {
	case config.Grace < 0:
		return nil, invalid("the grace is %v; it must be positive", config.Grace)
	case config.PollInterval < time.Millisecond:
		return nil, invalid("the poll interval is %v; the least is 1ms", config.PollInterval)
	}
	election, err := node.ElectionWith(config.Role, config.Election)
	if err != nil {
		return nil, err
	}
	return &Scheduler{
		node: node, election: election, tables: tablesOf(backend, database), database: database, config: config, replaced: make(chan struct{}, 1),
	}, nil
}

// Election returns the election of the scheduler's role.
func (s *Scheduler) Election() *tenure.Election { return s.election }

// Add adds a schedule. A new one ticks from the beginning of the first term that
// knows it, and so does one whose expression or zone has changed. It returns an
// error that matches tenure.ErrInvalidConfig if the schedule cannot be used, also
// for a name that is taken, or when the scheduler runs.
func (s *Scheduler) Add(schedule Schedule) error {
	parsed, err := schedule.withDefaults().parse()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running {
		return invalid("the scheduler already runs: add %s before", schedule.Name)
	}
	for _, other := range s.schedules {
		if other.Name == schedule.Name {
			return invalid("the scheduler already has a schedule %s", schedule.Name)
		}
	}
	s.schedules = append(s.schedules, parsed)
	return nil
}

// Replace has the scheduler run these schedules instead of those it has, also
// while it leads: one that is there and has the same settings goes on as before,
// a changed one as after a new term, and of one that is left out no run begins any
// more. It returns an error that matches tenure.ErrInvalidConfig if a schedule
// cannot be used, or two have one name; then nothing changes.
func (s *Scheduler) Replace(schedules ...Schedule) error {
	var all []timetable
	taken := map[string]bool{}
	for _, schedule := range schedules {
		parsed, err := schedule.withDefaults().parse()
		if err != nil {
			return err
		}
		if taken[schedule.Name] {
			return invalid("two schedules are called %s", schedule.Name)
		}
		taken[schedule.Name] = true
		all = append(all, parsed)
	}
	s.mu.Lock()
	s.schedules = all
	s.mu.Unlock()
	select {
	case s.replaced <- struct{}{}:
	default: // nobody has looked since the last time
	}
	return nil
}

// timetables are the schedules to be run.
func (s *Scheduler) timetables() []timetable {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.schedules)
}

// Run stands for the role and, in each term, runs the schedules, until the
// context ends. Then, and whenever the term is asked to end, no job starts any
// more, and those that run may finish within the node's StopTimeout. Errors are
// those of [tenure.Election.Run].
func (s *Scheduler) Run(ctx context.Context) error {
	s.mu.Lock()
	s.running = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running = false
	}()
	return s.election.Run(ctx, s.lead)
}

// lead runs the schedules under one term.
func (s *Scheduler) lead(ctx context.Context, term *tenure.Term) error {
	news, stop := s.node.Subscribe()
	defer stop()
	l := &loop{
		work:     work{node: s.node, tables: s.tables, database: s.database, term: term},
		config:   s.config,
		log:      s.node.Logger().With("role", term.Role().Name(), "term", term.Number()),
		news:     news,
		replaced: s.replaced,
		source:   s.timetables,
		active:   map[int64]*schedule{},
		finished: make(chan struct{}, 1),
	}
	l.adopt()
	l.run(ctx)
	return nil
}
