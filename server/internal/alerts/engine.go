package alerts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/reach"
	"github.com/exactly-one/tenure/internal/wakeup"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/server/internal/notifiers"
	"github.com/exactly-one/tenure/server/internal/series"
)

// Config configures an engine. Database must be set.
type Config struct {
	// Database is the database of the node's backend. Its user needs the privileges of
	// [postgres.Backend.WorkGrants].
	Database postgres.Database
	// Rules replace the rules in the database when the engine begins to run. Nil keeps
	// the rules of the database; an empty list removes them.
	Rules []Rule
	// Notifiers are this process's ways to send. The engine does not close them.
	Notifiers notifiers.Set
	// Prefix begins the names of metrics. Default "tenure".
	Prefix string
	// Cluster is the name of the cluster in notifications, and URL the address of the
	// dashboard; both may be empty.
	Cluster, URL string
	// Links returns the links of an alert in notifications. Default none.
	Links func(notifiers.Alert) []notifiers.Link
	// Interval is the time between two evaluations. Default 10 s; at least 10 ms.
	Interval time.Duration
	// MaxSeries is how many series the leader keeps: see [series.Config].
	MaxSeries int
}

const (
	defaultInterval = 10 * time.Second
	leastInterval   = 10 * time.Millisecond

	// roundTimeout bounds one round of the leader.
	roundTimeout = 30 * time.Second
	// writeRetry is the time between attempts to write the rules.
	writeRetry = 5 * time.Second
)

// Engine evaluates rules where it leads, and sends the notifications. It is safe
// for concurrent use.
type Engine struct {
	config Config
	wake   chan struct{} // the rules of the configuration are to be written

	// Measurements stay from term to term: after a crash of its server the database has
	// no earlier samples, and a window without them looks well.
	store *series.Store
	clock clock // of the term's rounds

	mu       sync.Mutex
	rules    []Rule
	set      notifiers.Set
	roleOf   map[string]string // by the rule, as of the last round; not changed
	leads    bool
	present  map[alertKey]alert
	took     time.Duration // by the last evaluation
	shown    time.Time     // when the last round succeeded, or the term began
	reloaded chan struct{} // closed when the notifiers change
}

// New makes an engine. An error matches tenure.ErrInvalidConfig.
func New(config Config) (*Engine, error) {
	config.Prefix = cmp.Or(config.Prefix, "tenure")
	config.Interval = cmp.Or(config.Interval, defaultInterval)
	if config.Interval < leastInterval {
		return nil, fmt.Errorf("%w: the interval is %v; it must be at least %v", tenure.ErrInvalidConfig, config.Interval, leastInterval)
	}
	e := &Engine{
		config: config, wake: make(chan struct{}, 1), reloaded: make(chan struct{}),
		store: series.New(series.Config{Prefix: config.Prefix, MaxSeries: config.MaxSeries}),
	}
	if err := e.Reload(config.Rules, config.Notifiers); err != nil {
		return nil, err
	}
	return e, nil
}

// Reload replaces the notifiers, and the rules unless they are nil. After it returns, the
// caller can close the old notifiers; an attempt in progress with them continues. An
// error matches tenure.ErrInvalidConfig, and then nothing has changed.
func (e *Engine) Reload(rules []Rule, set notifiers.Set) error {
	names := map[string]bool{}
	for _, r := range rules {
		if err := Validate(r); err != nil {
			return err
		}
		if names[r.Name] {
			return fmt.Errorf("%w: two alerts have the name %q", tenure.ErrInvalidConfig, r.Name)
		}
		names[r.Name] = true
		for _, address := range r.Notify {
			if _, _, err := set.Find(address); err != nil {
				return fmt.Errorf("the alert %q: %w", r.Name, err)
			}
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rules, e.set = rules, set
	close(e.reloaded)
	e.reloaded = make(chan struct{})
	e.wakeWriter()
	return nil
}

func (e *Engine) wakeWriter() {
	wakeup.Send(e.wake)
}

// Run writes the rules to the database, and campaigns for the role
// [cluster.MetricsAggregatorRole] until the context ends, and returns nil then. In each
// term it evaluates and sends. If the node is not on PostgreSQL, the error matches
// tenure.ErrUnsupported. Other errors are from [tenure.Election.Run]. Run must not be
// called while another call of it runs.
func (e *Engine) Run(ctx context.Context, node *tenure.Node) error {
	backend, ok := node.Backend().(*postgres.Backend)
	if !ok {
		return fmt.Errorf("%w: alerts need sessions on PostgreSQL", tenure.ErrUnsupported)
	}
	election, err := node.Election(cluster.MetricsAggregatorRole)
	if err != nil {
		return err
	}
	t := tablesOf(backend, e.config.Database)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.wakeWriter()
	var writing sync.WaitGroup
	writing.Go(func() { e.writeRules(ctx, t, node) })
	defer writing.Wait()
	defer cancel()
	err = election.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		return e.lead(ctx, &termWork{
			reach: reach.Watch{Database: t.database}, engine: e, tables: t, term: term, node: node.Name(), unreadable: map[uuid.UUID]bool{}, outboxFilled: make(chan struct{}),
			log: node.Logger().With("role", term.Role().Name(), "term", term.Number()),
		})
	})
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil // it ended before the election began
	}
	return err
}

// writeRules writes the rules whenever the configuration has changed, and tries
// again until it has.
func (e *Engine) writeRules(ctx context.Context, t tables, node *tenure.Node) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.wake:
		}
		for rules := e.configured(); rules != nil; rules = e.configured() {
			attempt, cancel := context.WithTimeout(ctx, roundTimeout)
			err := t.writeRules(attempt, rules, node.Name())
			cancel()
			if err == nil || ctx.Err() != nil {
				break
			}
			node.Logger().Warn("writing the alert rules failed", "error", err, "again_in", writeRetry)
			if !wakeup.Sleep(ctx, writeRetry) {
				return
			}
		}
	}
}

// configured are the rules of this process's configuration; nil if it has none.
func (e *Engine) configured() []Rule {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rules
}

// notifiers returns this process's ways to send, and a channel. A change closes the
// channel.
func (e *Engine) notifiers() (set notifiers.Set, changed <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.set, e.reloaded
}

// show publishes whether this node leads, and the leader's alerts.
func (e *Engine) show(leads bool, present map[alertKey]alert, took time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leads, e.present, e.took, e.shown = leads, present, took, time.Now()
}

// lead works for one term, or until it is asked to end. The error says why another node
// should lead.
func (e *Engine) lead(ctx context.Context, l *termWork) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel()
	beside.Go(func() {
		select {
		case <-l.term.Stopping():
			cancel()
		case <-ctx.Done():
		}
	})
	e.clock.begin()
	l.evaluator = newEvaluator(e.store)
	e.show(true, nil, 0)
	defer e.show(false, nil, 0)
	tick := time.NewTicker(e.config.Interval)
	defer tick.Stop()
	delivers := false
	for {
		exist, err := l.Exist(ctx)
		if exist && !delivers {
			delivers = true
			beside.Go(func() { l.deliver(ctx) })
		}
		if exist || err != nil { // the attempt reports the error
			if err := l.attempt(ctx); err != nil {
				return err
			}
		} else { // there never was a rule
			e.show(true, nil, 0)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// firing are the firing alerts known to the leader.
func (e *Engine) firing() []alert {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []alert
	for _, a := range e.present {
		if a.State == Firing {
			all = append(all, a)
		}
	}
	return all
}

// knowRoles keeps the roles of rules for the links of their alerts.
func (e *Engine) knowRoles(rules []Rule) {
	roles := make(map[string]string, len(rules))
	for _, r := range rules {
		roles[r.Name] = RoleOf(r)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.roleOf = roles
}

// roles returns the role in the condition of each rule, if it names one.
func (e *Engine) roles() map[string]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.roleOf
}

// batch is the contents of a message about some alerts.
func (e *Engine) batch(incident string, some []notifiers.Alert) notifiers.Batch {
	if e.config.Links != nil {
		some = slices.Clone(some)
		roles := e.roles()
		for i := range some {
			some[i].Role = cmp.Or(some[i].Labels["role"], roles[some[i].Name])
			some[i].Links = e.config.Links(some[i])
		}
	}
	return notifiers.Batch{Cluster: e.config.Cluster, URL: e.config.URL, Incident: incident, Alerts: some}
}
