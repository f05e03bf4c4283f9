package gocron

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
)

// LockerConfig configures a Locker. The zero value is ready to use.
type LockerConfig struct {
	// Prefix precedes the name of a job in the name of its role. Default: "gocron/".
	Prefix string
	// MinInterval is the least time between the starts of two runs of a job, by the
	// database's clock. If a node's clock is late by less than half of it, the node skips
	// a tick already run by another node. A skipped attempt counts as a start, so
	// MinInterval must be at most half of the interval of every job. Default: 500 ms.
	MinInterval time.Duration
}

// Locker runs each job on one node at a time. Pass it to
// gocron.WithDistributedLocker, and give each job a name. It is safe for concurrent
// use.
type Locker struct {
	node   *tenure.Node
	past   historian
	config LockerConfig

	mu   sync.Mutex
	jobs map[string]*jobLock
}

var _ gocron.Locker = (*Locker)(nil)

// historian is a backend with a history of terms.
type historian interface {
	History(ctx context.Context, query history.Query) ([]history.Term, error)
}

// NewLocker returns a Locker for campaigns of a node. The caller closes the node after
// the scheduler. The error matches tenure.ErrUnsupported if the node's backend keeps no
// history of terms, and tenure.ErrInvalidConfig if a setting is out of range.
func NewLocker(node *tenure.Node, config LockerConfig) (*Locker, error) {
	config.Prefix = cmp.Or(config.Prefix, "gocron/")
	config.MinInterval = cmp.Or(config.MinInterval, 500*time.Millisecond)
	if config.MinInterval < 10*time.Millisecond {
		return nil, fmt.Errorf("%w: the minimum interval is %v; it must be at least 10ms", tenure.ErrInvalidConfig, config.MinInterval)
	}
	past, ok := node.Backend().(historian)
	if !ok {
		return nil, fmt.Errorf("%w: locks of jobs need a backend with a history of terms", tenure.ErrUnsupported)
	}
	return &Locker{node: node, past: past, config: config, jobs: map[string]*jobLock{}}, nil
}

// Lock begins a term of the role of a job. An error makes gocron skip the tick. Lock
// returns one in these cases:
//
//   - the job runs on any node;
//   - it began on any node less than MinInterval ago;
//   - the database does not answer within half of MinInterval.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	job, err := l.job(key)
	if err != nil {
		return nil, err
	}
	if !job.running.TryLock() {
		return nil, fmt.Errorf("%w: job %q runs on this node", tenure.ErrHeld, key)
	}
	if err := job.acquire(ctx); err != nil {
		job.running.Unlock()
		return nil, fmt.Errorf("job %q: %w", key, err)
	}
	return job, nil
}

// Task returns a function for gocron.NewTask, for the job with the name key. It calls job
// in the term begun by Lock, and returns tenure.ErrNotLeader without one.
func (l *Locker) Task(key string, job Job) func(context.Context) error {
	return func(ctx context.Context) error {
		lock, err := l.job(key)
		if err != nil {
			return err
		}
		guard, err := lock.election.Guard()
		if err != nil {
			return err
		}
		return run(ctx, guard, job)
	}
}

// job returns the lock of a job.
func (l *Locker) job(key string) (*jobLock, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if job := l.jobs[key]; job != nil {
		return job, nil
	}
	election, err := l.node.ElectionWith(tenure.NamedRole(l.config.Prefix+key), tenure.ElectionConfig{NoReacquire: true})
	if err != nil {
		return nil, err
	}
	l.jobs[key] = &jobLock{locker: l, election: election}
	return l.jobs[key], nil
}

// jobLock is the lock of one job on this node.
type jobLock struct {
	locker   *Locker
	election *tenure.Election
	running  sync.Mutex    // from Lock to Unlock
	guard    *tenure.Guard // of the present run; guarded by running
}

// acquire begins a term, unless the job began a moment ago elsewhere.
func (j *jobLock) acquire(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, j.locker.config.MinInterval/2)
	defer cancel()
	term, err := j.election.TryAcquire(limited)
	if err != nil {
		return err
	}
	if err = j.refuseRepetition(limited, term); err == nil {
		j.guard, err = term.Guard()
	}
	if err != nil {
		_ = j.release(ctx, term)
	}
	return err
}

// refuseRepetition returns an error if the last term began less than MinInterval before
// this one: then its node has run the same tick. No other term can begin during the check.
func (j *jobLock) refuseRepetition(ctx context.Context, term *tenure.Term) error {
	terms, err := j.locker.past.History(ctx, history.Query{Role: j.election.Role().Name(), Limit: 2})
	if err != nil {
		return err
	}
	for _, past := range terms {
		if past.Term >= term.Number() {
			continue
		}
		if since := term.AcquiredAt().Sub(past.Began); since.Abs() < j.locker.config.MinInterval { // negative if the clock was set back
			return fmt.Errorf("%w: node %s began this run %v earlier", tenure.ErrHeld, past.NodeName, since)
		}
	}
	return nil
}

// Unlock ends the term after the job.
func (j *jobLock) Unlock(ctx context.Context) error {
	defer j.running.Unlock()
	j.guard.Done()
	return j.release(ctx, j.guard.Term())
}

// release frees the role, also for a job canceled by gocron. The role needs no leader until
// the next run. Without an answer of the database, trust ends within a lease, and the role
// with the session.
func (j *jobLock) release(ctx context.Context, term *tenure.Term) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), j.locker.node.Timing().Lease)
	defer cancel()
	return errors.Join(term.Complete(ctx, 0), j.election.Shutdown(ctx))
}
