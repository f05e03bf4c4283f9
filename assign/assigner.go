package assign

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/doorbell"
	"github.com/exactly-one/tenure/internal/wakeup"
	"github.com/exactly-one/tenure/postgres"
)

// Assigner assigns the rows of a table while its node leads a role. It is safe
// for concurrent use.
type Assigner struct {
	member   *cluster.Member
	backend  *postgres.Backend
	database postgres.Database
	config   Config

	mu       sync.Mutex
	election *tenure.Election // created by the first Run
	status   Status
}

// New returns an assigner for a member. database must be the database of the
// member's backend and safe for concurrent use, like a pool. Its user needs the
// privileges of [Grants]. The error matches tenure.ErrUnsupported if the
// backend is not PostgreSQL, and tenure.ErrInvalidConfig or
// tenure.ErrInvalidRole if the configuration is invalid.
func New(member *cluster.Member, database postgres.Database, config Config) (*Assigner, error) {
	backend, ok := member.Node().Backend().(*postgres.Backend)
	if !ok {
		return nil, fmt.Errorf("%w: assignment needs sessions on PostgreSQL", tenure.ErrUnsupported)
	}
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	return &Assigner{member: member, backend: backend, database: database, config: config}, nil
}

// Run campaigns for the role and assigns rows in each term, until ctx ends. The error
// matches tenure.ErrInvalidConfig or dberr.ErrPrivilege if the table cannot be used; other
// errors come from [tenure.Node.Election] and [tenure.Election.Run]. Later database errors
// are logged and retried.
func (a *Assigner) Run(ctx context.Context) error {
	if err := a.check(ctx); errors.Is(err, tenure.ErrInvalidConfig) || errors.Is(err, dberr.ErrPrivilege) {
		return err
	}
	election, err := a.ensureElection()
	if err != nil {
		return err
	}
	return election.Run(ctx, a.Lead)
}

// check validates the table before the first term.
func (a *Assigner) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, window(a.member.Node()))
	defer cancel()
	_, err := readTable(ctx, a.database, a.config)
	return err
}

// ensureElection returns the election of Run.
func (a *Assigner) ensureElection() (*tenure.Election, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.election != nil {
		return a.election, nil
	}
	election, err := a.member.Node().Election(a.config.Role)
	if err != nil {
		return nil, err
	}
	a.election = election
	return election, nil
}

// Lead assigns rows in a term until it ends or is stopping, and returns nil, or an error if
// the database cannot be reached for long although the node's session can. It is for
// programs with several tasks as the leader of one role: call it from the function of
// [tenure.Election.Run] instead of using [Assigner.Run].
func (a *Assigner) Lead(ctx context.Context, term *tenure.Term) error {
	rung := make(chan struct{}, 1)
	l := &loop{
		pass: pass{
			bell:   doorbell.New(debounce, func() { wakeup.Send(rung) }),
			member: a.member, backend: a.backend, database: a.database, config: a.config, term: term,
			log: a.member.Node().Logger().With("role", term.Role().Name(), "term", term.Number(), "table", a.config.Table.Sanitize()),
		},
		wake: make(chan struct{}, 1), rung: rung, passed: a.passed,
	}
	a.leads(true)
	defer a.leads(false)
	return l.run(ctx)
}
