package kubernetes_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/postgres"
)

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// leaseObject is a Lease on an API server.
type leaseObject struct {
	mu      sync.Mutex
	record  resourcelock.LeaderElectionRecord
	version int // 0: it does not exist
}

// leaseLock locks a Lease as client-go does: an update of another version is refused.
type leaseLock struct {
	object *leaseObject
	name   string
	seen   int
}

func (l *leaseLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.object.mu.Lock()
	defer l.object.mu.Unlock()
	if l.object.version == 0 {
		return nil, nil, apierrors.NewNotFound(leases, role)
	}
	l.seen = l.object.version
	record := l.object.record
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (l *leaseLock) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.seen = 0
	return l.Update(context.Background(), record)
}

func (l *leaseLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.object.mu.Lock()
	defer l.object.mu.Unlock()
	if l.seen != l.object.version {
		return apierrors.NewConflict(leases, role, errors.New("another version"))
	}
	l.object.record = record
	l.object.version++
	l.seen = l.object.version
	return nil
}

func (l *leaseLock) RecordEvent(string) {}
func (l *leaseLock) Identity() string   { return l.name }
func (l *leaseLock) Describe() string   { return "lease/" + role }

// move is a program whose instances move from client-go to Tenure.
type move struct {
	testing.TB
	dsn   string
	lease leaseObject

	working  atomic.Int64
	overlaps atomic.Int64
	leaders  sync.Map // the names of the instances that work
}

func newMove(t *testing.T) *move {
	t.Helper()
	return &move{TB: t, dsn: pgtest.Shared(t).Database(t)}
}

// work lasts until its context ends.
func (m *move) work(ctx context.Context, name string) {
	if m.working.Add(1) > 1 {
		m.overlaps.Add(1)
	}
	defer m.working.Add(-1)
	m.leaders.Store(name, true)
	defer m.leaders.Delete(name)
	<-ctx.Done()
}

// release is a version of the program. It returns when the context and its work have ended.
type release func(ctx context.Context, m *move, name string) error

// elect leads by client-go.
func (m *move) elect(ctx context.Context, name string, lead func(context.Context) error) error {
	ended := make(chan error, 1)
	var started atomic.Bool
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          &leaseLock{object: &m.lease, name: name},
		LeaseDuration: 1500 * time.Millisecond,
		RenewDeadline: 700 * time.Millisecond,
		RetryPeriod:   100 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				started.Store(true)
				ended <- lead(ctx)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	if !started.Load() {
		return nil
	}
	return <-ended
}

func oldRelease(ctx context.Context, m *move, name string) error {
	return m.elect(ctx, name, func(ctx context.Context) error {
		m.work(ctx, name)
		return nil
	})
}

// firstRelease campaigns in Tenure while it holds the Lease, as the page shows.
func firstRelease(ctx context.Context, m *move, name string) error {
	return m.elect(ctx, name, func(ctx context.Context) error { return secondRelease(ctx, m, name) })
}

func secondRelease(ctx context.Context, m *move, name string) error {
	config := postgres.RunConfig{Node: tenure.Config{StopTimeout: 100 * time.Millisecond}}
	return postgres.RunWith(ctx, m.dsn, tenure.NamedRole(role), config, func(ctx context.Context, _ *tenure.Term) error {
		m.work(ctx, name)
		return nil
	})
}

// start runs an instance until stop is called, or the test ends.
func (m *move) start(name string, version release) (stop func()) {
	m.Helper()
	return postgrestest.Run(m, func(ctx context.Context) error { return version(ctx, m, name) })
}

func (m *move) await(name string) {
	m.Helper()
	waiter := &postgrestest.Installation{TB: m}
	waiter.Await(name+" to lead", func() bool {
		_, leads := m.leaders.Load(name)
		return leads
	})
}

// TestMoveInTwoReleasesNeverOverlaps replaces two instances of a program one by one, first by release
// 1 and then by release 2, and no two of them ever work at the same time.
func TestMoveInTwoReleasesNeverOverlaps(t *testing.T) {
	t.Parallel()
	m := newMove(t)
	stopFirst := m.start("old 1", oldRelease)
	m.await("old 1")
	m.start("old 2", oldRelease)()
	stopSecond := m.start("both 2", firstRelease)
	stopFirst()
	m.await("both 2")
	m.start("both 1", firstRelease)()
	stopFirst = m.start("new 1", secondRelease)
	stopSecond()
	m.await("new 1")
	m.start("new 2", secondRelease)
	stopFirst()
	m.await("new 2")
	if overlaps := m.overlaps.Load(); overlaps > 0 {
		t.Errorf("two instances worked at the same time %d times", overlaps)
	}
}

// TestMoveWithoutFirstReleaseOverlaps: client-go and Tenure do not exclude each other, which
// the test above would notice.
func TestMoveWithoutFirstReleaseOverlaps(t *testing.T) {
	t.Parallel()
	m := newMove(t)
	m.start("old", oldRelease)
	m.await("old")
	m.start("new", secondRelease)
	m.await("new")
	if m.overlaps.Load() == 0 {
		t.Error("an old instance and one of release 2 did not work at the same time")
	}
}
