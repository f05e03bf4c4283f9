package gocron

import (
	"context"

	"github.com/go-co-op/gocron/v2"

	"github.com/exactly-one/tenure"
)

// Elector runs the jobs of a scheduler only while its node leads. Pass it to
// gocron.WithDistributedElector. It is safe for concurrent use.
type Elector struct{ election *tenure.Election }

var _ gocron.Elector = (*Elector)(nil)

// NewElector returns an Elector for an election. The caller starts and stops the
// election, for example with [tenure.Election.Participate].
func NewElector(election *tenure.Election) *Elector { return &Elector{election} }

// IsLeader returns nil if the node leads at this moment, by its own clocks, and
// otherwise tenure.ErrNotLeader. It does not query the database.
func (e *Elector) IsLeader(context.Context) error {
	if !e.election.IsLeader() {
		return tenure.ErrNotLeader
	}
	return nil
}

// Task returns a function for gocron.NewTask. It calls job if the node leads, and
// otherwise returns an error that matches tenure.ErrNotLeader.
func (e *Elector) Task(job Job) func(context.Context) error {
	return func(ctx context.Context) error {
		guard, err := e.election.Guard()
		if err != nil {
			return err
		}
		return run(ctx, guard, job)
	}
}
