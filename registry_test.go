package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
)

// registry is a database that keeps a registry of nodes.
type registry struct {
	*database

	mu         sync.Mutex
	known      tenure.Description
	written    []string // what was written, in short
	onOpen     func()
	onDescribe func() error
	onMembers  func()
}

func newRegistry() *registry { return &registry{database: newDatabase()} }

// entry is a session with a registry.
type entry struct {
	*conn
	registry *registry
}

func (r *registry) Open(ctx context.Context, options tenure.SessionOptions) (tenure.Session, error) {
	session, err := r.database.Open(ctx, options)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	hook := r.onOpen
	r.known = options.Description
	r.mu.Unlock()
	if hook != nil {
		hook()
	}
	return entry{session.(*conn), r}, nil
}

func (e entry) WriteDescription(description tenure.Description) error {
	if err := e.sendable(); err != nil {
		return err
	}
	r := e.registry
	r.mu.Lock()
	hook := r.onDescribe
	r.mu.Unlock()
	if hook != nil {
		if err := hook(); err != nil {
			return err
		}
	}
	word := string(description.Status)
	if description.Drained {
		word = "drained"
	}
	e.say("%s", word)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = description
	r.written = append(r.written, word)
	return nil
}

func (e entry) Members() ([]tenure.Member, error) {
	r := e.registry
	r.mu.Lock()
	hook := r.onMembers
	r.mu.Unlock()
	if hook != nil {
		hook()
	}
	if err := e.sendable(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return []tenure.Member{{NodeInfo: e.options.Node, Description: r.known}}, nil
}

func (e entry) Holders(roles []string) ([]tenure.RoleHolder, error) {
	if err := e.sendable(); err != nil {
		return nil, err
	}
	e.db.mu.Lock()
	defer e.db.mu.Unlock()
	var holders []tenure.RoleHolder
	for _, role := range roles {
		if leader, ok := e.db.leaders[role]; ok && e.db.holders[role] != nil {
			holders = append(holders, tenure.RoleHolder{Role: role, Term: leader.Term, Node: leader.NodeID})
		}
	}
	return holders, nil
}

// status returns what the registry says of the node.
func (r *registry) status() string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known.Drained {
		return "drained"
	}
	return string(r.known.Status)
}

// refuseAll makes Open fail, or nil, succeed again.
func (d *database) refuseAll(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuse = err
}

// change changes the hooks.
func (r *registry) change(do func(*registry)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do(r)
}

func version(v string) func(*tenure.Description) {
	return func(d *tenure.Description) { d.Version = v }
}

func TestUpdateDescriptionWritesChangesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		want(t, "at first", db.status(), "active")
		for range 2 { // what the registry has is not written again
			if err := node.UpdateDescription(t.Context(), version("v1")); err != nil {
				t.Error(err)
			}
		}
		want(t, "written", len(db.written), 1)
		members, err := node.Members(t.Context())
		if err != nil || len(members) != 1 || members[0].Version != "v1" {
			t.Errorf("members are %v, %v", members, err)
		}
		want(t, "Description", node.Description().Version, "v1")
	})
}

func TestUpdateDescriptionRejectsInvalidValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		for name, change := range map[string]func(*tenure.Description){
			"dead":      func(d *tenure.Description) { d.Status = tenure.StatusDead },
			"port":      func(d *tenure.Description) { d.HTTPPort = 70_000 },
			"grpc port": func(d *tenure.Description) { d.GRPCPort = -1 },
			"label":     func(d *tenure.Description) { d.Labels = map[string]string{"": "x"} },
			"text":      func(d *tenure.Description) { d.Roles = []string{"a\nb"} },
			"weight":    func(d *tenure.Description) { d.Spreads = map[string]float64{"s": 0} },
		} {
			wantError(t, name, node.UpdateDescription(t.Context(), change), tenure.ErrInvalidConfig)
		}
		want(t, "status", node.Description().Status, tenure.StatusActive)
		want(t, "written", len(db.written), 0)
	})
}

// A description that changes without a session, or while one is being opened,
// reaches the registry with the next session.
func TestDescriptionReachesRegistryInNextSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		opening, resume := make(chan struct{}), make(chan struct{})
		db.change(func(r *registry) {
			r.onOpen = func() {
				r.change(func(r *registry) { r.onOpen = nil })
				close(opening)
				<-resume
			}
		})
		db.last().kill()
		synctest.Wait()
		wantError(t, "without a session", node.UpdateDescription(t.Context(), version("v1")), tenure.ErrSessionLost)
		<-opening // with v1
		wantError(t, "while one is opened", node.UpdateDescription(t.Context(), version("v2")), tenure.ErrSessionLost)
		close(resume)
		synctest.Wait()
		want(t, "the registry has", db.known.Version, "v2")
	})
}

// A failed write of the description is repeated.
func TestFailedDescriptionWriteIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		full := errors.New("disk full")
		db.change(func(r *registry) { r.onDescribe = func() error { return full } })
		wantError(t, "Describe", node.UpdateDescription(t.Context(), version("v1")), full)
		db.change(func(r *registry) { r.onDescribe = nil })
		time.Sleep(time.Second)
		synctest.Wait()
		want(t, "the registry has", db.known.Version, "v1")
		want(t, "sessions", db.opened, 1)
	})
}

// A node does not keep a description that the registry cannot have: it could not open its
// next session with it.
func TestDescriptionThatRegistryRefusesIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		wantError(t, "v1", node.UpdateDescription(t.Context(), version("v1")), nil)
		refused := fmt.Errorf("%w: no such character", tenure.ErrInvalidConfig)
		db.change(func(r *registry) { r.onDescribe = func() error { return refused } })
		wantError(t, "v2", node.UpdateDescription(t.Context(), version("v2")), refused)
		db.change(func(r *registry) { r.onDescribe = nil })
		want(t, "the node has", node.Description().Version, "v1")
		db.last().kill()
		time.Sleep(time.Minute)
		synctest.Wait()
		want(t, "the registry has", db.known.Version, "v1")
		want(t, "sessions", db.opened, 2)
	})
}

// A change made during a write that fails is written immediately: a node that was
// undrained must not lead while the registry says that it is draining.
func TestChangeDuringFailedDescriptionWriteIsWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		outcome := make(chan error)
		db.change(func(r *registry) { r.onDescribe = func() error { return <-outcome } })
		timedOut := errors.New("statement timeout")
		first := make(chan error, 1)
		go func() { first <- node.UpdateDescription(t.Context(), version("v1")) }()
		synctest.Wait()
		second := make(chan error, 1)
		go func() { second <- node.UpdateDescription(t.Context(), version("v2")) }()
		synctest.Wait()
		db.change(func(r *registry) { r.onDescribe = nil })
		outcome <- timedOut
		synctest.Wait()
		want(t, "the registry has", db.known.Version, "v2")
		wantError(t, "the first update", <-first, timedOut)
		wantError(t, "the second update", <-second, nil)
		want(t, "sessions", db.opened, 1)
	})
}

func TestUpdateDescriptionReturnsSessionLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		db.change(func(r *registry) {
			r.onDescribe = func() error {
				r.change(func(r *registry) { r.onDescribe = nil })
				return errGone
			}
		})
		wantError(t, "Describe", node.UpdateDescription(t.Context(), version("v1")), tenure.ErrSessionLost)
		time.Sleep(time.Second)
		synctest.Wait()
		want(t, "the registry has", db.known.Version, "v1")
	})
}

// Concurrent changes of different fields all take effect.
func TestConcurrentDescriptionChangesTakeEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				err := node.UpdateDescription(t.Context(), func(d *tenure.Description) {
					if d.Labels == nil {
						d.Labels = map[string]string{}
					}
					d.Labels[fmt.Sprint(i)] = "x"
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		want(t, "labels", len(db.known.Labels), 20)
	})
}

func TestRegistryCallsWithoutRegistryFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		lead(t, e)
		_, err := node.Members(t.Context())
		wantError(t, "Members", err, tenure.ErrUnsupported)
		_, err = node.Holders(t.Context(), []string{"r"})
		wantError(t, "Holders", err, tenure.ErrUnsupported)
		wantError(t, "Describe", node.UpdateDescription(t.Context(), version("v1")), tenure.ErrUnsupported)
		want(t, "takes effect", node.Description().Version, "v1")
		if err := node.Drain(t.Context(), nil); err != nil {
			t.Errorf("Drain: %v", err)
		}
		want(t, "held", db.holder("r") == nil, true)
		if err := node.Undrain(t.Context()); err != nil {
			t.Errorf("Undrain: %v", err)
		}
		time.Sleep(2 * time.Second)
		want(t, "leads again", e.IsLeader(), true)
	})
}

func TestHoldersReturnsLeadersAndReservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		holders, err := node.Holders(t.Context(), []string{"r", "other"})
		if err != nil || len(holders) != 1 || holders[0] != (tenure.RoleHolder{Role: "r", Term: term.Number(), Node: node.ID()}) {
			t.Errorf("holders are %v, %v", holders, err)
		}
	})
}

// A call whose caller has stopped waiting still runs, and so do the calls
// behind it.
func TestRegistryCallOutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		asked, resume := make(chan struct{}), make(chan struct{})
		db.change(func(r *registry) {
			r.onMembers = func() {
				r.change(func(r *registry) { r.onMembers = nil })
				close(asked)
				<-resume
			}
		})
		impatient, cancel := context.WithCancel(t.Context())
		first, second := make(chan error), make(chan error)
		ask := func(ctx context.Context, done chan<- error) {
			_, err := node.Members(ctx)
			done <- err
		}
		go ask(impatient, first)
		<-asked
		go ask(t.Context(), second)
		synctest.Wait()
		cancel()
		wantError(t, "the impatient", <-first, context.Canceled)
		_, err := node.Members(impatient)
		wantError(t, "asked too late", err, context.Canceled)
		close(resume)
		wantError(t, "the next", <-second, nil)
		db.refuseAll(errors.New("down"))
		db.last().kill()
		synctest.Wait()
		_, err = node.Members(t.Context())
		wantError(t, "without a session", err, tenure.ErrSessionLost)
		closeNode(t, node)
		_, err = node.Members(t.Context())
		wantError(t, "when closed", err, tenure.ErrClosed)
	})
}

// A call that is queued when trust ends fails.
func TestRegistryCallFailsWhenTrustEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		stalled, resume := make(chan struct{}), make(chan struct{})
		db.last().set(func(c *conn) {
			c.onHeartbeat = func() error {
				close(stalled)
				<-resume
				return errGone
			}
		})
		<-stalled
		begun := time.Now()
		described := make(chan error)
		go func() { described <- node.UpdateDescription(t.Context(), version("v1")) }()
		_, err := node.Members(t.Context())
		wantError(t, "Members", err, tenure.ErrTrustExpired)
		wantError(t, "Describe", <-described, tenure.ErrTrustExpired)
		if waited := time.Since(begun); waited > 10*time.Second {
			t.Errorf("waited %v, longer than a lease", waited)
		}
		close(resume)
	})
}

// A call that is queued or running when Close aborts the session fails.
func TestRegistryCallFailsWhenNodeCloses(t *testing.T) {
	t.Parallel()
	for range 200 {
		db := newRegistry()
		node, err := tenure.Open(t.Context(), db, tenure.Config{Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for {
					_, err := node.Members(context.Background())
					if errors.Is(err, tenure.ErrClosed) {
						return
					}
				}
			})
			all.Go(func() {
				for i := 0; ; i++ {
					err := node.UpdateDescription(context.Background(), version(fmt.Sprint(i)))
					if errors.Is(err, tenure.ErrSessionLost) {
						return
					}
				}
			})
		}
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = node.Close(ended) // forced: it may say so
		all.Wait()
		closeNode(t, node)
	}
}

var _ tenure.RegistrySession = entry{}
