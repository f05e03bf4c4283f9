package processor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/reach"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/retry"
)

// GroupConfig configures a group. The zero value is ready to use.
type GroupConfig struct {
	// RetryCooldown and RetryInterval are the pauses between attempts to lead while
	// another node leads: RetryCooldown after the first attempt, then doubling up to
	// RetryInterval. They matter only if all notifications of a vacancy are lost: on
	// receipt of one, a node campaigns immediately. If one is not set, it is equal to the
	// other. If neither is set, the node's CheckInterval applies.
	RetryCooldown time.Duration
	RetryInterval time.Duration
	// Election contains other settings of the election.
	Election tenure.ElectionConfig
}

// Group is a set of processors, running together on the leader of one role. It is safe for
// concurrent use.
type Group struct {
	node     *tenure.Node
	election *tenure.Election
	backend  *postgres.Backend
	tables   schema.Tables
	database Database

	lastServers sync.Map // by the processor's name: the server on which it last ran

	mu         sync.Mutex
	processors map[string]Config
	running    int // calls of Run: a second one is refused, but only later
}

// NewGroup returns a group for a role. database must be the database of the node's
// backend. The error matches tenure.ErrUnsupported if this is not PostgreSQL; other errors
// come from [tenure.Node.Election].
func NewGroup(node *tenure.Node, role tenure.Role, database Database, config GroupConfig) (*Group, error) {
	backend, ok := node.Backend().(*postgres.Backend)
	if !ok {
		return nil, fmt.Errorf("%w: processors need sessions on PostgreSQL", tenure.ErrUnsupported)
	}
	if config.RetryCooldown < 0 || config.RetryInterval < 0 || config.RetryInterval > 0 && config.RetryInterval < config.RetryCooldown {
		return nil, invalid("the retry cooldown is %v and the interval %v; neither may be negative, and the interval must not be shorter",
			config.RetryCooldown, config.RetryInterval)
	}
	if cooldown := cmp.Or(config.RetryCooldown, config.RetryInterval); cooldown > 0 && config.Election.Retry == nil {
		config.Election.Retry = retry.ExponentialBackoff{Base: cooldown, Max: cmp.Or(config.RetryInterval, cooldown)}
	}
	election, err := node.ElectionWith(role, config.Election)
	if err != nil {
		return nil, err
	}
	return &Group{node: node, election: election, backend: backend, tables: tablesOf(backend, database), database: database, processors: map[string]Config{}}, nil
}

// Election returns the election of the group's role.
func (g *Group) Election() *tenure.Election { return g.election }

// Add adds a processor. The error matches tenure.ErrInvalidConfig if the
// configuration is invalid, the name is taken, or the group is running.
func (g *Group) Add(config Config) error {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running > 0 {
		return invalid("the group is running: add %s before Run", config.Name)
	}
	if _, taken := g.processors[config.Name]; taken {
		return invalid("the group already has a processor %s", config.Name)
	}
	g.processors[config.Name] = config
	return nil
}

// Run campaigns for the group's role and, in each term, runs all processors, until ctx
// ends. If no processor can reach the database for some time, although the node's session
// can, the node leaves the role to other nodes. Run returns the errors of
// [tenure.Election.Run].
func (g *Group) Run(ctx context.Context) error {
	g.mu.Lock()
	g.running++
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.running--
	}()
	return g.election.Run(ctx, g.lead)
}

// lead runs the processors in one term.
func (g *Group) lead(ctx context.Context, term *tenure.Term) error {
	logger := g.node.Logger().With("role", term.Role().Name(), "term", term.Number())
	wake := newWake(len(g.processors))
	var loops, listening sync.WaitGroup
	listen, stop := context.WithCancel(ctx)
	listening.Go(func() { wake.listen(listen, g.backend, g.node, logger) })
	configs := slices.Collect(maps.Values(g.processors))
	timing := g.node.Timing()
	tails := newTails(g.database, configs, wake.loops, timing.Lease-timing.Margin, wake.bell.Looked)
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	shared := &trouble{watch: reach.Watch{Database: g.database}, of: len(configs), failing: map[*loop]struct{}{}, giveUp: giveUp}
	rows := &states{database: g.database, tables: g.tables, term: term, names: slices.Collect(maps.Keys(g.processors)), reading: make(chan struct{}, 1)}
	measuring := &recorder{database: g.database, tables: g.tables, term: term, log: logger}
	for i, config := range configs {
		l := &loop{
			config: config, node: g.node, database: g.database, tables: g.tables, term: term,
			reader: newReader(g.database, config.Log, config.Selection, config.columns()), tail: tails[i], states: rows,
			log: logger.With("processor", config.Name), wake: wake.loops[i], inserts: &wake.inserts, changes: &wake.changes,
			skipping: skipInterval * time.Duration(len(configs)), lastServers: &g.lastServers, trouble: shared,
		}
		measuring.loops = append(measuring.loops, l)
		loops.Go(func() { l.run(ctx) })
	}
	listening.Go(func() { measuring.run(listen) }) // exits when listen ends
	loops.Wait()
	stop()
	listening.Wait()
	return shared.reason
}
