package kubernetes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/exactly-one/tenure"
	tenurekubernetes "github.com/exactly-one/tenure/adapters/kubernetes"
	"github.com/exactly-one/tenure/internal/postgrestest"
)

func TestNewRefusesElectorsThatLeadLongerThanTrust(t *testing.T) {
	t.Parallel()
	node := postgrestest.New(t).Node("node-1", tenure.Config{})
	for name, config := range map[string]tenurekubernetes.Config{
		"defaults of client-go with a lease of 10 s": {},
		"negative deadline":                          {RenewDeadline: -time.Second},
		"just too long":                              {RenewDeadline: 8 * time.Second, RetryPeriod: time.Second},
	} {
		if _, err := tenurekubernetes.New(node, tenure.NamedRole(role), config); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%s: %v; want ErrInvalidConfig", name, err)
		}
	}
	if _, err := tenurekubernetes.New(node, tenure.NamedRole(role), tenurekubernetes.Config{RenewDeadline: 6 * time.Second}); err != nil {
		t.Error(err)
	}
	// The defaults are 10 s and 2 s: trust must last for more than 12 s.
	for lease, fits := range map[time.Duration]bool{13 * time.Second: false, 14 * time.Second: true, 15 * time.Second: true} {
		other := postgrestest.New(t).Node("node-2", tenure.Config{Lease: lease})
		if _, err := tenurekubernetes.New(other, tenure.NamedRole(role), tenurekubernetes.Config{}); (err == nil) != fits {
			t.Errorf("the defaults with a lease of %v: %v; want them accepted: %t", lease, err, fits)
		}
	}
}

func TestUpdateNeedsTheContextOfTheLock(t *testing.T) {
	t.Parallel()
	lock := newLock(t, postgrestest.New(t).Node("node-1", tenure.Config{}))
	own := resourcelock.LeaderElectionRecord{HolderIdentity: lock.Identity(), LeaseDurationSeconds: 1}
	if err := lock.Create(t.Context(), own); !errors.Is(err, tenure.ErrNotLeader) {
		t.Errorf("without a context: %v; want ErrNotLeader", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := lock.Context(ctx)
	cancel()
	if err := lock.Create(ended, own); !errors.Is(err, tenure.ErrNotLeader) {
		t.Errorf("after the end of the context: %v; want ErrNotLeader", err)
	}
	ctx = lock.Context(t.Context())
	if err := lock.Update(ctx, resourcelock.LeaderElectionRecord{HolderIdentity: "another"}); !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Errorf("for another identity: %v; want ErrInvalidConfig", err)
	}
	if err := lock.Create(ctx, own); err != nil {
		t.Errorf("with a context: %v", err)
	}
}

// TestRecordFollowsTheTerm: both nodes see the same holder, and none once the term is
// over; a term that is over cannot be renewed.
func TestRecordFollowsTheTerm(t *testing.T) {
	t.Parallel()
	i := postgrestest.New(t)
	node := i.Node("node-1", tenure.Config{})
	lock := newLock(i, node)
	other := newLock(i, postgrestest.OpenNode(i, i.NewBackend(), tenure.Config{Name: "node-2"}))
	expect(t, lock, "")
	own := resourcelock.LeaderElectionRecord{HolderIdentity: lock.Identity(), LeaseDurationSeconds: 15}
	ctx := lock.Context(t.Context())
	if err := lock.Update(ctx, own); err != nil {
		t.Fatal(err)
	}
	first := expect(t, lock, lock.Identity())
	if seen := expect(t, other, lock.Identity()); seen.LeaderTransitions != first.LeaderTransitions || seen.LeaderTransitions == 0 {
		t.Errorf("transitions %d on one node, %d on the other; want the number of the term on both", first.LeaderTransitions, seen.LeaderTransitions)
	}
	if err := lock.Update(ctx, own); err != nil {
		t.Errorf("renewal: %v", err)
	}
	if err := other.Update(other.Context(t.Context()), resourcelock.LeaderElectionRecord{HolderIdentity: other.Identity()}); !errors.Is(err, tenure.ErrHeld) {
		t.Errorf("the other node acquires: %v; want ErrHeld", err)
	}
	guard, err := lock.Guard()
	if err != nil {
		t.Fatal(err)
	}
	term := guard.Term()
	guard.Done()
	i.Exec(`SELECT pg_terminate_backend(pid) FROM {nodes} WHERE id = $1`, node.ID())
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, tenure.ErrSessionLost) {
		t.Errorf("the context ended with %v; want ErrSessionLost", cause)
	}
	if term.Valid() {
		t.Error("the context ended before the term")
	}
	expect(t, lock, "")
	if err := lock.Update(context.WithoutCancel(ctx), own); !errors.Is(err, tenure.ErrTermEnded) {
		t.Errorf("renewal after the end: %v; want ErrTermEnded", err)
	}
	if err := lock.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err != nil {
		t.Errorf("release after the end: %v", err)
	}
	if err := lock.Update(lock.Context(t.Context()), own); err != nil {
		t.Fatalf("the next run: %v", err)
	}
	if second := expect(t, lock, lock.Identity()); second.LeaderTransitions <= first.LeaderTransitions {
		t.Errorf("transitions %d, then %d; want more", first.LeaderTransitions, second.LeaderTransitions)
	}
	if err := lock.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err != nil {
		t.Errorf("release: %v", err)
	}
	expect(t, other, "")
}

func expect(t *testing.T, lock *tenurekubernetes.Lock, holder string) resourcelock.LeaderElectionRecord {
	t.Helper()
	record, _, err := lock.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if record.HolderIdentity != holder {
		t.Errorf("holder %q; want %q", record.HolderIdentity, holder)
	}
	return *record
}

// TestElectorWithoutReleaseKeepsRoleForItsLease: an elector without ReleaseOnCancel keeps the role for
// the duration of its lease, and no longer.
func TestElectorWithoutReleaseKeepsRoleForItsLease(t *testing.T) {
	t.Parallel()
	i := postgrestest.New(t)
	lock := newLock(i, i.Node("node-1", tenure.Config{}))
	ctx, cancel := context.WithCancel(t.Context())
	var term *tenure.Term
	returned := make(chan struct{})
	elected := electorConfig(lock, lock.Lead(func(ctx context.Context, led *tenure.Term) {
		defer close(returned)
		term = led
		cancel()
		<-ctx.Done()
	}))
	elected.ReleaseOnCancel = false
	leaderelection.RunOrDie(lock.Context(ctx), elected)
	<-returned
	stopped := time.Now()
	if !term.Valid() {
		t.Error("the term ended with the elector; want it to last until the elector's lease has expired")
	}
	if err := lock.Update(lock.Context(t.Context()), resourcelock.LeaderElectionRecord{HolderIdentity: lock.Identity()}); !errors.Is(err, tenure.ErrHeld) {
		t.Errorf("the next run acquires immediately: %v; want ErrHeld", err)
	}
	<-term.Context().Done()
	if waited := time.Since(stopped); waited < elected.LeaseDuration/2 {
		t.Errorf("the role was released after %v; want about %v", waited, elected.LeaseDuration)
	}
}

// TestReleaseWaitsForWork: the role is kept until OnStartedLeading has returned.
func TestReleaseWaitsForWork(t *testing.T) {
	t.Parallel()
	i := postgrestest.New(t)
	lock := newLock(i, i.Node("node-1", tenure.Config{StopTimeout: 100 * time.Millisecond}))
	ctx, cancel := context.WithCancel(t.Context())
	began, finish := make(chan *tenure.Term, 1), make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		leaderelection.RunOrDie(lock.Context(ctx), electorConfig(lock, lock.Lead(func(_ context.Context, term *tenure.Term) {
			began <- term
			<-term.Context().Done() // the elector's ends before
			<-finish
		})))
	}()
	term := <-began
	cancel()
	<-term.Context().Done()
	<-stopped
	other := newLock(i, postgrestest.OpenNode(i, i.NewBackend(), tenure.Config{Name: "node-2"}))
	next := resourcelock.LeaderElectionRecord{HolderIdentity: other.Identity()}
	if err := other.Update(other.Context(t.Context()), next); !errors.Is(err, tenure.ErrHeld) {
		t.Errorf("while work runs, another node acquires: %v; want ErrHeld", err)
	}
	close(finish)
	i.Await("the role is free", func() bool { return other.Update(other.Context(t.Context()), next) == nil })
}
