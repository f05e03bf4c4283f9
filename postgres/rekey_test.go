package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// patient makes a lease long: these sessions send few heartbeats, or none.
func patient(o *peerOptions) { o.timing.Lease = time.Minute }

// tryWith makes one attempt for a role with its own key.
func (p *peer) tryWith(role tenure.Role) tenure.AcquireResult {
	p.t.Helper()
	attempts, err := p.TryAcquire([]tenure.AcquireRequest{{Role: role}})
	if err != nil {
		p.t.Fatalf("try to acquire: %v", err)
	}
	return attempts[0]
}

// A candidate that knows the old key of a role begins no term after the key has
// changed, and one with the new key does.
func TestCandidateWithOldKeyCannotLead(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	ctx := t.Context()
	leader, candidate, other := open(t, b, patient), open(t, b, patient), open(t, b, patient)
	key := rand.Int64() // tests share a database
	named, keyed := tenure.NamedRole("scheduler"), tenure.NamedRole("scheduler").WithKey(key)
	first := leader.take("scheduler")
	candidate.refused("scheduler") // from now on it knows the key
	if _, _, err := b.Rekey(ctx, keyed); !errors.Is(err, dberr.ErrHasLeader) {
		t.Fatalf("while a node leads: %v; want ErrHasLeader", err)
	}
	leader.release("scheduler", history.EndResigned)
	before, after, err := b.Rekey(ctx, keyed)
	if err != nil || after != fmt.Sprint(key) || before != named.LockKey(leader.installation).String() {
		t.Fatalf("%q, %v", before, err)
	}
	for range 2 {
		if got := candidate.try("scheduler")[0]; got.Outcome != tenure.OutcomeFailed || !errors.Is(got.Err, tenure.ErrKeyMismatch) {
			t.Fatalf("a candidate with the old key: %+v; want ErrKeyMismatch", got)
		}
	}
	if len(candidate.heldRoles) > 0 {
		t.Errorf("it holds %v", candidate.heldRoles)
	}
	second := other.tryWith(keyed)
	if second.Outcome != tenure.OutcomeGranted || second.Term <= first.Term {
		t.Fatalf("a candidate with the new key: %+v after term %d", second, first.Term)
	}
	if _, _, err := b.Rekey(ctx, named); !errors.Is(err, dberr.ErrHasLeader) {
		t.Errorf("while the next node leads: %v; want ErrHasLeader", err)
	}
	other.release("scheduler", history.EndResigned)
	if before, _, err := b.Rekey(ctx, named); err != nil || before != fmt.Sprint(key) {
		t.Fatalf("back: %q, %v", before, err)
	}
	if third := candidate.take("scheduler"); third.Term <= second.Term {
		t.Errorf("term %d follows term %d", third.Term, second.Term)
	}
}

// The key of a role stays if the role is unknown, if another role has the key, or if a
// session holds one of the two locks.
func TestRekeyIsRefused(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	ctx := t.Context()
	p := open(t, b, patient)
	for _, role := range []string{"scheduler", "other"} {
		p.take(role)
		p.release(role, history.EndResigned)
	}
	named := tenure.NamedRole("scheduler")
	other := tenure.NamedRole("other").LockKey(p.installation).Key
	for role, want := range map[tenure.Role]error{
		tenure.NamedRole("unheard-of"): dberr.ErrUnknownRole,
		tenure.NamedRole(""):           tenure.ErrInvalidRole,
		named.WithKey(other):           tenure.ErrKeyMismatch,
	} {
		if _, _, err := b.Rekey(ctx, role); !errors.Is(err, want) {
			t.Errorf("%q: %v; want %v", role, err, want)
		}
	}
	foreign := pgtest.Conn(t, pgtest.Shared(t).DSN())
	wanted := tenure.NamedRole("scheduler").WithKey(other + 1)
	for _, key := range []int64{named.LockKey(p.installation).Key, other + 1} {
		if _, err := foreign.Exec(ctx, `SELECT pg_advisory_lock($1)`, key); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.Rekey(ctx, wanted); !errors.Is(err, dberr.ErrHasLeader) {
			t.Errorf("while another session holds %d: %v; want ErrHasLeader", key, err)
		}
		if _, err := foreign.Exec(ctx, `SELECT pg_advisory_unlock($1)`, key); err != nil {
			t.Fatal(err)
		}
	}
	if before, _, err := b.Rekey(ctx, named); err != nil || before != named.LockKey(p.installation).String() {
		t.Errorf("to the same key: %q, %v", before, err)
	}
	if _, _, err := b.Rekey(ctx, wanted); err != nil {
		t.Error(err)
	}
}

// While the key of a role changes again and again, candidates with either key never
// lead at the same time.
func TestRekeyNeverMakesTwoLeaders(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	named := tenure.NamedRole("scheduler")
	roles := []tenure.Role{named, named.WithKey(rand.Int64())}
	peers := []*peer{open(t, b, patient), open(t, b, patient)}
	peers[0].take("scheduler")
	peers[0].release("scheduler", history.EndResigned)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var (
		leading atomic.Int32
		terms   [2]atomic.Int64
		group   sync.WaitGroup
	)
	for i, p := range peers {
		group.Go(func() { // exits when ctx ends
			for ctx.Err() == nil {
				<-time.After(rand.N(50 * time.Millisecond)) // the key changes while no node leads
				_, err := p.Heartbeat(tenure.Load{})        // otherwise the other one ends the session
				var attempts []tenure.AcquireResult
				if err == nil {
					attempts, err = p.TryAcquire([]tenure.AcquireRequest{{Role: roles[i]}})
				}
				if err != nil {
					t.Error(err)
					return
				}
				if attempts[0].Outcome != tenure.OutcomeGranted {
					continue
				}
				if n := leading.Add(1); n != 1 {
					t.Errorf("%d leaders", n)
				}
				terms[i].Add(1)
				leading.Add(-1)
				if err := p.Release([]tenure.ReleaseRequest{{Role: roles[i], Term: attempts[0].Term, Reason: history.EndResigned}}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for n := 0; (n < 20 || terms[0].Load() == 0 || terms[1].Load() == 0) && ctx.Err() == nil; n++ {
		if _, _, err := b.Rekey(ctx, roles[n%2]); err != nil && !errors.Is(err, dberr.ErrHasLeader) && ctx.Err() == nil {
			t.Error(err)
		}
	}
	cancel()
	group.Wait()
	if terms[0].Load() == 0 || terms[1].Load() == 0 {
		t.Errorf("%d terms with the first key, %d with the second; want some of each", terms[0].Load(), terms[1].Load())
	}
}
