package acceptance_test

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	membership "github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/postgres"
)

// resident is a member of the cluster in the process of the test.
type resident struct {
	*membership.Member
	name       string
	backend    *postgres.Backend
	candidates []*member // for each role
	life       context.Context
	end        context.CancelFunc
	group      sync.WaitGroup // the goroutines that campaign, work and watch
}

// settle opens a member that campaigns for all roles, works while it leads, and
// records when it sees others go.
func (f *fleet) settle(name string) *resident {
	r := &resident{name: name}
	r.life, r.end = context.WithCancel(context.Background())
	var err error
	if r.backend, err = postgres.New(f.dsn, f.db); err != nil {
		f.t.Error(err)
		return nil
	}
	config := f.config
	config.Name, config.Logger = name, f.log
	ctx, cancel := context.WithTimeout(r.life, patience)
	defer cancel()
	if r.Member, err = membership.Join(f.checks.steps.Of(ctx), r.backend, config, membership.Config{Address: "127.0.0.1"}); err != nil {
		f.t.Errorf("%s: %v", name, err)
		return nil
	}
	for i, checks := range f.checkers {
		election, err := r.Node().Election(tenure.NamedRole(roleName(i)))
		if err != nil {
			f.t.Error(err)
			return nil
		}
		candidate := &member{Node: r.Node(), t: f.t, election: election}
		r.candidates = append(r.candidates, candidate)
		checks.add(candidate)
		r.group.Go(func() {
			if err := election.Run(r.life, f.work); err != nil && r.life.Err() == nil {
				f.t.Errorf("%s no longer campaigns for %s: %v", name, election.Role(), err)
			}
		})
	}
	living := membership.Filter{Statuses: []membership.NodeStatus{membership.Joining, membership.Active, membership.Draining}}
	changes := r.Watch(r.life, living)
	r.group.Go(func() {
		for change := range changes {
			if change.Kind == membership.Left {
				f.deaths.see(change.Node.ID.String())
			}
		}
	})
	return r
}

// leave has a member leave politely.
func (f *fleet) leave(r *resident) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.Shutdown(ctx); err != nil {
		f.t.Errorf("%s leaves: %v", r.name, err)
	}
	r.end()
	r.group.Wait()
	r.backend.Close()
	for i, candidate := range r.candidates {
		f.checkers[i].remove(candidate)
	}
}

// leads reports whether a member leads any role.
func (r *resident) leads() bool {
	for _, candidate := range r.candidates {
		if candidate.election.IsLeader() {
			return true
		}
	}
	return false
}

// work is what a leader does: fenced transactions.
func (f *fleet) work(ctx context.Context, term *tenure.Term) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			// What has begun when the term ends fails, as it should.
			_ = postgres.InTx(ctx, f.pool, term, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, "INSERT INTO ledger (role, term) VALUES ($1, $2)", term.Role().Name(), term.Number())
				return err
			})
		case <-ctx.Done():
			return nil
		}
	}
}

// deaths notes how long after the death of nodes others knew of it.
type deaths struct {
	mu     sync.Mutex
	killed map[string]death // by the id of the node
	took   []time.Duration  // while no process started
	amid   []time.Duration  // while others did, which takes all processors for some time
}

// death is that of a process.
type death struct {
	at   time.Time
	amid bool // others start at the same time
}

// kill kills the process of a node.
func (d *deaths) kill(p *process, node string, amid bool) {
	d.mu.Lock()
	d.killed[node] = death{time.Now(), amid}
	d.mu.Unlock()
	p.Kill()
}

// see notes that a member has seen a node go, now.
func (d *deaths) see(node string) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	switch killed, ok := d.killed[node]; {
	case !ok:
	case killed.amid:
		d.amid = append(d.amid, now.Sub(killed.at))
	default:
		d.took = append(d.took, now.Sub(killed.at))
	}
}
