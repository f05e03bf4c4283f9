package tenure

import (
	"fmt"
	"maps"

	"github.com/exactly-one/tenure/internal/endreason"
)

// Election returns a new election for a role, with default settings. The election is not
// started. An error matches ErrInvalidRole, or ErrDuplicateRole if the node already has an
// election for the role.
func (n *Node) Election(role Role) (*Election, error) {
	return n.ElectionWith(role, ElectionConfig{})
}

// ElectionWith is Election with settings.
func (n *Node) ElectionWith(role Role, cfg ElectionConfig) (*Election, error) {
	if err := role.Validate(); err != nil {
		return nil, err
	}
	if cfg.ReconnectGrace < 0 {
		return nil, fmt.Errorf("%w: the reconnect grace is %v; it must be at least 0", ErrInvalidConfig, cfg.ReconnectGrace)
	}
	cfg.Requires, cfg.Prefers = maps.Clone(cfg.Requires), maps.Clone(cfg.Prefers)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closing {
		return nil, ErrClosed
	}
	if n.elections[role.Name()] != nil {
		return nil, fmt.Errorf("%w: %s", ErrDuplicateRole, role)
	}
	e := &Election{node: n, role: role, cfg: cfg.shared()}
	if err := n.prepareTakeOverLocked(cfg); err != nil {
		return nil, err
	}
	if err := n.joinGroupLocked(e); err != nil {
		return nil, err
	}
	n.elections[role.Name()] = e
	return e, nil
}

// Forget removes the election from its node, which then keeps nothing of it. Use it on a
// node that leads many roles, each for a short time. The election must have stopped, and
// the work of its last term must have returned: otherwise Forget changes nothing, and the
// error matches ErrAlreadyStarted. It is idempotent and does not wait.
//
// A forgotten election cannot be started: the errors of Start, Run, Campaign and
// TryAcquire match ErrStopped. [Node.Election] makes a new one for the role. Until the
// session ends, it remembers the names of the roles the node has led. The database keeps a
// row for each role, with the number of its last term.
func (e *Election) Forget() error {
	n := e.node
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case e.forgotten:
		return nil
	case e.State() != Stopped || e.term != nil || e.attempt.mayHoldLock():
		return fmt.Errorf("%w: forget %s: shut the election down first", ErrAlreadyStarted, e.role)
	}
	e.forgotten = true
	e.requestStopLocked(endreason.Shutdown, ErrStopping) // ends WaitForLeadership
	delete(n.elections, e.role.Name())
	n.leaveGroupLocked(e)
	return nil
}
