package tenuretest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/tenuretest"
)

// atOnce is the bound on what follows a change immediately. The bubble's time
// passes only while all goroutines wait.
const atOnce = time.Millisecond

func TestOccupiedRoleIsLedAfterVacate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, role := tenuretest.NewDatabase(), tenure.NamedRole("r")
		db.Occupy(role)
		db.Occupy(role) // once more changes nothing
		a := campaign(t, db, "a", role, tenure.Config{})
		time.Sleep(3 * lease) // a stranger's lease does not end
		a.wantStandby()
		leader, err := a.Leader(t.Context())
		if err != nil || leader.NodeName != "stranger" || leader.Term != leader.AcquiredAt.UnixMilli() || !leader.Valid() {
			t.Errorf("leader %+v, error %v; want the stranger with a valid lease", leader, err)
		}
		if err := db.Request(t.Context(), tenure.Request{Kind: tenure.RequestStepDown, Role: "r"}); err != nil {
			t.Errorf("asking the stranger to step down: %v", err)
		}

		db.Vacate(role)
		if term := a.leadsWithin(atOnce); term.Number() <= leader.Term {
			t.Errorf("term %d follows the stranger's, %d", term.Number(), leader.Term)
		}
		db.Vacate(role) // no longer the stranger's
		a.leads()
		db.Vacate(tenure.NamedRole("unknown"))
	})
}

func TestOccupyEndsTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, role := tenuretest.NewDatabase(), tenure.NamedRole("r")
		a := campaign(t, db, "a", role, tenure.Config{})
		term := a.leads()
		db.Occupy(role)
		endsWithin(t, term, atOnce, tenure.ErrSessionLost)
		time.Sleep(lease)
		a.wantStandby()
		db.Vacate(role)
		a.leadsWithin(atOnce)
	})
}

func TestRevokeEndsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, role, other := tenuretest.NewDatabase(), tenure.NamedRole("r"), tenure.NamedRole("other")
		a := campaign(t, db, "a", role, tenure.Config{})
		first, second := a.leads(), a.join(a.Node(), other).leads()
		b := campaign(t, db, "b", role, tenure.Config{})
		b.wantStandby()

		db.Revoke(role)
		if err := db.Fence(first); !errors.Is(err, tenure.ErrFenced) {
			t.Errorf("fencing with a revoked term: %v", err)
		}
		endsWithin(t, first, atOnce, tenure.ErrSessionLost)
		endsWithin(t, second, atOnce, tenure.ErrConnection)
		if term := b.leads(); term.Number() <= first.Number() {
			t.Errorf("term %d follows term %d", term.Number(), first.Number())
		}
		time.Sleep(2 * lease)
		b.leads()
		a.wantStandby()
	})
}

// A node that is alone leads again, and a role that is revoked again and again
// changes hands each time.
func TestRevokedRoleChangesHandsEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, role := tenuretest.NewDatabase(), tenure.NamedRole("r")
		a := campaign(t, db, "a", role, tenure.Config{})
		first := a.leads()
		db.Revoke(role)
		a.wantStandby()
		a.leadsWithin(100 * time.Millisecond)
		if err := db.Fence(first); !errors.Is(err, tenure.ErrFenced) {
			t.Errorf("fencing with an earlier term of the leader's: %v", err)
		}
		b := campaign(t, db, "b", role, tenure.Config{})
		for range 20 {
			db.Revoke(role)
			b.leads()
			a.wantStandby()
			time.Sleep(time.Second)
			a, b = b, a
		}
	})
}

// The role of a revoked leader is free only when its term has ended.
func TestRevokeLeavesNoOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, role := tenuretest.NewDatabase(), tenure.NamedRole("r")
		a := campaign(t, db, "a", role, tenure.Config{})
		b := campaign(t, db, "b", role, tenure.Config{})
		for range 50 {
			old, seen := a.leads(), make(chan bool, 1)
			go func() {
				if _, err := b.WaitForLeadership(t.Context()); err == nil {
					seen <- old.Valid()
				}
			}()
			db.Revoke(role)
			if <-seen {
				t.Fatal("the old term is still valid when the next leader leads")
			}
			time.Sleep(time.Second)
			a, b = b, a
		}
	})
}

func TestExpireMovesTheRole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, role := tenuretest.NewDatabase(), tenure.NamedRole("r")
		a, b := campaign(t, db, "a", role, tenure.Config{}), campaign(t, db, "b", role, tenure.Config{})
		old := a.leads()
		if err := db.Fence(old); err != nil {
			t.Errorf("fencing with a term that stands: %v", err)
		}
		db.Expire(role)
		next := b.leads()
		if !old.Valid() {
			t.Error("the old leader has noticed already")
		}
		if err := db.Fence(old); !errors.Is(err, tenure.ErrFenced) {
			t.Errorf("fencing with the old term: %v", err)
		}
		if err := db.Fence(next); err != nil {
			t.Errorf("fencing with the new term: %v", err)
		}
		endsWithin(t, old, lease/3+atOnce, tenure.ErrSessionLost) // at the next heartbeat
		b.leads()
	})
}

func TestSilenceMovesTheRole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, role := tenuretest.NewDatabase(), tenure.NamedRole("r")
		a, b := campaign(t, db, "a", role, tenure.Config{}), campaign(t, db, "b", role, tenure.Config{})
		old := a.leads()
		began := time.Now()
		db.Silence(role)
		endsWithin(t, old, lease-lease/10+atOnce, tenure.ErrTrustExpired)
		b.wantStandby()
		if err := db.Fence(old); err != nil {
			t.Errorf("fencing with a term whose lease still runs in the database: %v", err)
		}
		b.leadsWithin(lease)
		if took := time.Since(began); took != lease {
			t.Errorf("the next term began %v after the silence, want %v", took, lease)
		}
		time.Sleep(lease)
		a.wantStandby()
		if !a.Node().Connected() {
			t.Error("the node that was silent has no new session")
		}
	})
}

func TestShortSilenceKeepsTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, role := tenuretest.NewDatabase(), tenure.NamedRole("r")
		a := campaign(t, db, "a", role, tenure.Config{})
		term := a.leads()
		resume := db.Silence(role)
		db.Silence(role) // the same silence
		time.Sleep(lease / 2)
		resume()
		resume()
		time.Sleep(3 * lease)
		if a.leads() != term {
			t.Error("another term began")
		}
	})
}

// A node whose answers come after its trust has ended does not believe them.
func TestLateAnswersDoNotReviveTrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, role := tenuretest.NewDatabase(), tenure.NamedRole("r")
		a := campaign(t, db, "a", role, tenure.Config{})
		guard, err := a.Guard() // keeps the session, which must wait for it
		if err != nil {
			t.Fatal(err)
		}
		resume := db.Silence(role)
		time.Sleep(2 * lease)
		resume()
		endsWithin(t, guard.Term(), atOnce, tenure.ErrTrustExpired)
		a.wantStandby()
		guard.Done()
		if term := a.leadsWithin(lease); term.Number() <= guard.Term().Number() {
			t.Errorf("term %d follows term %d", term.Number(), guard.Term().Number())
		}
	})
}

func TestFailReturnsItsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, role, broken := tenuretest.NewDatabase(), tenure.NamedRole("r"), errors.New("broken")
		a := campaign(t, db, "a", role, tenure.Config{})
		term := a.leads()
		db.Fail(broken)
		for doing, err := range map[string]error{
			"Leader":  func() error { _, err := a.Leader(t.Context()); return err }(),
			"Request": db.Request(t.Context(), tenure.Request{Kind: tenure.RequestStepDown, Role: "r"}),
			"Fence":   db.Fence(term),
			"Listen":  db.Listen(t.Context(), func() { t.Error("Listen woke its caller") }),
			"Refresh": a.Refresh(t.Context()),
			"Open":    func() error { _, err := db.Open(t.Context(), tenure.SessionOptions{}); return err }(),
		} {
			if !errors.Is(err, broken) {
				t.Errorf("%s: got error %v, want %v", doing, err, broken)
			}
		}
		time.Sleep(lease / 2)
		a.leads()
		endsWithin(t, term, lease/2+atOnce, tenure.ErrTrustExpired)
		time.Sleep(time.Minute)
		a.wantStandby()
		db.Fail(nil)
		a.leadsWithin(5 * time.Second)
	})
}

func TestFailEndsListening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, broken, ended := tenuretest.NewDatabase(), errors.New("broken"), make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), atOnce)
		defer cancel()
		go func() { ended <- db.Listen(ctx, func() {}) }()
		synctest.Wait()
		db.Fail(broken)
		if err := <-ended; !errors.Is(err, broken) {
			t.Errorf("Listen: got error %v, want %v", err, broken)
		}
	})
}

func TestFailAndRevokeEndLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, role := tenuretest.NewDatabase(), tenure.NamedRole("r")
		a := campaign(t, db, "a", role, tenure.Config{})
		term := a.leads()
		db.Fail(errors.New("broken"))
		db.Revoke(role)
		endsWithin(t, term, atOnce, tenure.ErrSessionLost)
		db.Fail(dberr.ErrPrivilege)
		if _, err := tenure.Open(t.Context(), db, tenure.Config{}); !errors.Is(err, tenure.ErrRefused) {
			t.Errorf("opening a node: got error %v, want ErrRefused", err)
		}
		db.Fail(nil)
		a.leadsWithin(5 * time.Second)
	})
}

// A knob that needs a leader says so, instead of doing nothing.
func TestKnobsNeedALeader(t *testing.T) {
	db, role := tenuretest.NewDatabase(), tenure.NamedRole("r")
	for name, knob := range map[string]func(tenure.Role){
		"Revoke": db.Revoke, "Expire": db.Expire, "Silence": func(r tenure.Role) { db.Silence(r) },
	} {
		for _, occupied := range []bool{false, true} {
			if occupied {
				db.Occupy(role)
			}
			func() {
				defer func() {
					if message, _ := recover().(string); !strings.Contains(message, name+": no node leads \"r\"") {
						t.Errorf("%s without a leading node: panic with %q", name, message)
					}
				}()
				knob(role)
			}()
			db.Vacate(role)
		}
	}
}
