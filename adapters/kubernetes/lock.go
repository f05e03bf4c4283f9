package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/exactly-one/tenure"
)

// Lock is a role as a lock of client-go's leaderelection. Use it as
// LeaderElectionConfig.Lock, or as LeaderElectionResourceLockInterface of a manager's
// options, for one elector at a time. It is safe for concurrent use.
type Lock struct {
	node     *tenure.Node
	election *tenure.Election
	config   Config

	calls sync.Mutex // one Create or Update at a time; taken before mu

	mu       sync.Mutex
	holder   *run  // whose term the elector has not released, or nil; guarded by mu
	lastTerm int64 // the highest number seen; guarded by mu
}

var _ resourcelock.Interface = (*Lock)(nil)

// New returns a lock for a role. The node campaigns for the role only while an elector
// asks for it; the caller closes the node after the elector has stopped. The error
// matches tenure.ErrInvalidConfig if the elector could lead for longer than the node
// trusts its term, and tenure.ErrDuplicateRole if the node has an election for the
// role.
func New(node *tenure.Node, role tenure.Role, config Config) (*Lock, error) {
	config = config.withDefaults()
	if err := config.validate(node.Timing()); err != nil {
		return nil, err
	}
	election, err := node.ElectionWith(role, tenure.ElectionConfig{NoReacquire: true})
	if err != nil {
		return nil, err
	}
	return &Lock{node: node, election: election, config: config}, nil
}

// Identity returns the node's name and id, as one word.
func (l *Lock) Identity() string { return identity(l.node.Name(), l.node.ID()) }

// Describe returns the name of the role.
func (l *Lock) Describe() string { return "tenure/" + l.election.Role().Name() }

// RecordEvent logs an event of the elector.
func (l *Lock) RecordEvent(event string) {
	l.node.Logger().Info("leader election: "+event, "role", l.election.Role(), "identity", l.Identity())
}

// Get returns the record of the present leader. Its holder is this node only while the
// term is valid; without a leader it has no holder. LeaderTransitions is the number of
// the term.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, l.config.RenewDeadline)
	defer cancel()
	record, err := l.record(ctx)
	if err != nil {
		return nil, nil, err
	}
	raw, err := json.Marshal(record)
	return &record, raw, err
}

// Create is Update: a role needs no object.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

// Update acquires the role for the holder of the record, renews its term, or resigns if
// the record has no holder. The error matches:
//
//   - tenure.ErrNotLeader if ctx is not of Context or has ended;
//   - tenure.ErrHeld if another node leads;
//   - tenure.ErrTermEnded if the term of the run is no longer valid.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.calls.Lock()
	defer l.calls.Unlock()
	r, hadTerm := l.runOf(ctx)
	switch {
	case record.HolderIdentity == "":
		return l.release(ctx)
	case record.HolderIdentity != l.Identity():
		return fmt.Errorf("%w: the lock of %s cannot acquire the role for %s", tenure.ErrInvalidConfig, l.Identity(), record.HolderIdentity)
	case hadTerm:
		return r.renew(ctx, record)
	}
	if err := l.acquire(ctx, r); err != nil {
		return err
	}
	if err := r.renew(ctx, record); err != nil {
		_ = l.release(ctx)
		return err
	}
	return nil
}

// Guard registers a piece of work, such as a reconciliation, with the present term;
// see [tenure.Term.Guard]. The guard's term fences transactions.
func (l *Lock) Guard() (*tenure.Guard, error) { return l.election.Guard() }

// Lead returns a function for OnStartedLeading. It calls work with the elector's term.
// The context ends with the elector's and with the term, and the role is not released
// before work has returned.
func (l *Lock) Lead(work func(ctx context.Context, term *tenure.Term)) func(context.Context) {
	return func(ctx context.Context) {
		guard, err := l.election.Guard()
		if err != nil {
			return // the term is over already; OnStoppedLeading follows
		}
		defer guard.Done()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		stop := context.AfterFunc(guard.Context(), func() { cancel(context.Cause(guard.Context())) })
		defer stop()
		work(ctx, guard.Term())
	}
}
