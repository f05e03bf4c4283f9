package tenure_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

func TestRequestDrainsAndUndrainsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		ask := func(kind tenure.RequestKind) {
			_ = db.Request(t.Context(), tenure.Request{Kind: kind, Node: node.ID(), Target: uuid.New()})
			synctest.Wait()
		}
		ask(tenure.RequestDrain)
		want(t, "status", db.status(), "drained")
		wantError(t, "cause", context.Cause(term.Context()), tenure.ErrHandedOver)
		ask(tenure.RequestUndrain)
		want(t, "status", db.status(), "active")
		time.Sleep(2 * time.Second)
		term = lead(t, e)
		guard, _ := term.Guard()
		ask(tenure.RequestDrain)
		ask(tenure.RequestUndrain) // interrupts
		want(t, "status", db.status(), "active")
		guard.Done()
		time.Sleep(10 * time.Second) // the reservation for the target ends
		want(t, "leads again", e.IsLeader(), true)
	})
}

// The function of OnDrain also gets the request that arrived before it was registered,
// unless the program has decided otherwise since.
func TestRequestBeforeOnDrainIsRepeated(t *testing.T) {
	for _, undrained := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			db := newRegistry()
			node := open(t, db)
			defer closeNode(t, node)
			_ = db.Request(t.Context(), tenure.Request{Kind: tenure.RequestDrain, Node: node.ID(), By: "ann"})
			synctest.Wait()
			want(t, "status", db.status(), "drained")
			if undrained {
				wantError(t, "Undrain", node.Undrain(t.Context()), nil)
			}
			var requests []tenure.Request
			node.OnDrain(func(_ context.Context, r tenure.Request) error {
				requests = append(requests, r)
				return nil
			})
			synctest.Wait()
			if undrained {
				want(t, "requests", len(requests), 0)
			} else if len(requests) != 1 || requests[0].Kind != tenure.RequestDrain || requests[0].By != "ann" {
				t.Errorf("got requests %+v, want the one to drain", requests)
			}
		})
	}
}

// The requester of a status is recorded with it, but not with the next status.
// The terms that end for it record the requester too.
func TestStatusRequesterIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		var log strings.Builder
		node := open(t, db, func(cfg *tenure.Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		defer func() {
			closeNode(t, node)
			for _, by := range []string{"ann", "bob", "cem", "dan"} {
				want(t, "the log names "+by, strings.Contains(log.String(), `msg="received a request for the node"`) && strings.Contains(log.String(), " by="+by), true)
			}
		}()
		e, _ := elect(t, node, tenure.ElectionConfig{})
		lead(t, e)
		by := func() string {
			synctest.Wait()
			db.mu.Lock()
			defer db.mu.Unlock()
			return string(db.known.Status) + " by " + db.known.StatusBy
		}
		ask := func(kind tenure.RequestKind, by string) {
			_ = db.Request(t.Context(), tenure.Request{Kind: kind, Node: node.ID(), By: by})
		}
		ask(tenure.RequestDrain, "ann")
		want(t, "asked to drain", by(), "draining by ann")
		want(t, "roles", db.last().count("release r stepped_down by ann"), 1)
		ask(tenure.RequestDrain, "bob")
		want(t, "asked again", by(), "draining by bob")
		ask(tenure.RequestDrain, "")
		wantError(t, "Drain", node.Drain(t.Context(), nil), nil)
		want(t, "a change without a requester", by(), "draining by bob")
		wantError(t, "Undrain", node.Undrain(t.Context()), nil)
		want(t, "on its own", by(), "active by ")
		wantError(t, "Drain", node.Drain(t.Context(), nil), nil)
		want(t, "on its own", by(), "draining by ")
		ask(tenure.RequestUndrain, "cem")
		want(t, "asked to come back", by(), "active by cem")
		wantError(t, "Describe", node.UpdateDescription(t.Context(), func(d *tenure.Description) {
			want(t, "known to who changes it", d.StatusBy, "")
			d.Version = "v2"
		}), nil)
		want(t, "of another change", by(), "active by cem")
		ask(tenure.RequestDrain, "ann")
		ask(tenure.RequestDrain, "dan") // taken together
		want(t, "two together", by(), "draining by dan")
		for _, unfit := range []string{"\x00", "\xff"} {
			err := node.UpdateDescription(t.Context(), func(d *tenure.Description) { d.StatusBy = unfit })
			wantError(t, unfit, err, tenure.ErrInvalidConfig)
		}
	})
}

// Requests are handled one after the other. The next request, or the end of the
// node, interrupts the current one.
func TestOnDrainHandlesOneRequestAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		var (
			mu   sync.Mutex
			said []string
		)
		say := func(word string) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, word)
		}
		node.OnDrain(func(ctx context.Context, r tenure.Request) error {
			say("begin " + r.By)
			<-ctx.Done()
			say("end " + r.By)
			return ctx.Err()
		})
		for _, by := range []string{"1", "2", "3"} {
			_ = db.Request(t.Context(), tenure.Request{Kind: tenure.RequestDrain, Node: node.ID(), By: by})
			synctest.Wait()
		}
		closeNode(t, node)
		_ = db.Request(t.Context(), tenure.Request{Kind: tenure.RequestDrain, Node: node.ID(), By: "4"})
		synctest.Wait()
		want(t, "said", strings.Join(said, ", "), "begin 1, end 1, begin 2, end 2, begin 3, end 3")
	})
}

// The database may have recorded a status when the node took the request, so
// the node writes its description again after the request.
func TestRequestWithoutChangeRewritesRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		refused := errors.New("not now")
		node.OnDrain(func(context.Context, tenure.Request) error {
			db.change(func(r *registry) { r.known.Status = tenure.StatusDraining })
			return refused
		})
		_ = db.Request(t.Context(), tenure.Request{Kind: tenure.RequestDrain, Node: node.ID()})
		want(t, "status", db.status(), "active")
		want(t, "written", len(db.written), 1)
	})
}

// A request for the node that the session has taken is not lost with the session: neither
// if the call that took it reports the loss, nor if the check of another request does.
func TestRequestForNodeOutlivesSession(t *testing.T) {
	for name, lose := range map[string]func(*conn) error{
		"in the call that takes it":       func(*conn) error { return errGone },
		"in the check of another request": func(c *conn) error { c.kill(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newRegistry()
				node := open(t, db)
				defer closeNode(t, node)
				slots := slotElections(t, node, 1, 1)
				startAll(t, slots)
				want(t, "leads", led(slots), "s/1 ")
				first := db.last()
				first.set(func(c *conn) { c.onTaken = func() error { return lose(first) } })
				db.mu.Lock()
				db.requests = []tenure.Request{ // one call takes both
					{Kind: tenure.RequestHandOver, Role: "s/1", Target: uuid.New()},
					{Kind: tenure.RequestDrain, Node: node.ID(), By: "ann"},
				}
				db.notifyLocked()
				db.mu.Unlock()
				time.Sleep(time.Minute)
				want(t, "sessions", db.last().number, int64(2))
				want(t, "status of a node that was asked to drain", db.status(), "drained")
				want(t, "requester", node.Description().StatusBy, "ann")
				want(t, "leads", led(slots), "")
			})
		})
	}
}

// A session asks for the requests that its first heartbeat reports: no notification says which
// an earlier session has left.
func TestFirstHeartbeatReportsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		db.mu.Lock()
		db.requests = []tenure.Request{{Kind: tenure.RequestDrain, Node: node.ID(), By: "ann"}}
		db.reportRequests = true
		db.mu.Unlock()
		db.last().kill()
		reopened := time.Now()
		for db.last().number == 1 || !node.Connected() {
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		want(t, "status", db.status(), "drained")
		if waited := time.Since(reopened); waited > time.Second {
			t.Errorf("it took %v", waited)
		}
	})
}
