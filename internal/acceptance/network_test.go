package acceptance_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/netns"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// The leader's network loses every packet of one direction or of both: it falls
// silent, or cannot hear.
func TestRoleIsTakenOverWhenNetworkStalls(t *testing.T) {
	t.Parallel()
	for name, directions := range map[string][]faultwire.Direction{
		"both directions": nil,
		"to the server":   {faultwire.ToServer},
		"to the client":   {faultwire.ToClient},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "to the server" {
				pgtest.Long(t)
			}
			t.Parallel()
			c := newCluster(t)
			leader := c.joinWired("leader", address(pgtest.Shared(t)))
			term := leader.leads()
			rival := c.join("rival")
			since := time.Now()
			leader.wire.Stall(directions...)
			rival.leadsWithin(lease+slack/2, since)
			ended(t, term)
			leader.wire.Resume()
			giveBack(t, rival, leader) // it is a node like any other again
		})
	}
}

// Only the session connection carries leadership.
func TestOnlyStalledSessionConnectionEndsTerm(t *testing.T) {
	t.Parallel()
	t.Run("the session", func(t *testing.T) {
		t.Parallel()
		c := newCluster(t)
		leader := c.joinWired("leader", address(pgtest.Shared(t)))
		term := leader.leads()
		rival := c.join("rival")
		since := time.Now()
		leader.session().Stall()
		c.someoneElse(term.Number(), leader, rival)
		if took := time.Since(since); took > lease+slack {
			t.Errorf("the role was led again after %v", took)
		}
		ended(t, term)
	})
	for name, stall := range map[string]func(*faultwire.Conn){
		"the watch":     func(c *faultwire.Conn) { c.Stall() },
		"the watch cut": func(c *faultwire.Conn) { c.Cut() },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "the watch cut" {
				pgtest.Long(t)
			}
			t.Parallel()
			c := newCluster(t)
			leader := c.joinWired("leader", address(pgtest.Shared(t)))
			term := leader.leads()
			c.join("rival")
			admin := pgtest.Conn(t, c.dsn)
			stall(leader.watch())
			// For longer than a lease.
			const beats = "SELECT last_heartbeat > clock_timestamp() - $2::interval AND started_at < clock_timestamp() - 2 * $2::interval FROM "
			eventually(t, admin, beats+c.quoted("nodes")+" WHERE id = $1", leader.ID(), lease)
			if !term.Valid() {
				t.Error("the leader lost its term although only its watch connection failed")
			}
			if seen := c.checks.terms(); len(seen) != 1 {
				t.Errorf("there were %d terms, want 1", len(seen))
			}
		})
	}
}

// The leader runs behind a separate network, whose cable is pulled: no FIN, no RST,
// no answer.
func TestRoleIsTakenOverWhenNetworkIsCut(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	apart, err := netns.New(t.Context(), 1)
	if errors.Is(err, netns.ErrUnavailable) {
		t.Skip("NOT TESTED:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := apart.Close(); err != nil {
			t.Error(err)
		}
	})
	server := pgtest.Start(t, pgtest.Options{
		Settings: map[string]string{"listen_addresses": "127.0.0.1," + apart.Host(0)},
		HBA:      []string{"host all all " + apart.CIDR() + " trust"},
	})
	c := clusterOn(t, server.DSN(), "public")
	c.migrate()
	far := fmt.Sprintf("postgres://postgres@%s:%d/postgres?sslmode=disable", apart.Host(0), server.Port)
	leader := c.spawn(childIdle, order{DSN: far, Schema: c.schema, Name: "leader", Lease: lease, Roles: 1}, apart.Within(0)...)
	first := leader.await("acquired", time.Time{})
	rival := c.join("rival")

	since := time.Now()
	if err := apart.Isolate(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	term, _ := rival.leadsWithin(lease+slack/2, since)
	begun := time.Now()
	if term.Number() <= first.Term {
		t.Errorf("Invariant 2: term %d came after term %d", term.Number(), first.Term)
	}
	over, follow := leader.await("ended", since), leader.await("follow", since)
	if follow.Last >= begun.UnixNano() {
		t.Error("Invariant 1: the leader still said that it leads when its rival did")
	}
	if over.At >= begun.UnixNano() {
		t.Errorf("the context of the leader's term ended %v after the next term had begun", time.Duration(over.At-begun.UnixNano()))
	}
	t.Logf("the leader's term ended %v before the next one began", time.Duration(begun.UnixNano()-over.At).Round(time.Millisecond))
}
