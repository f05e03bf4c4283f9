package browser

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
)

// faults are those of which an operator must see the cause, the extent and the present state.
var faults = []fault{
	{name: "crash", arrange: crash, early: crashed, later: crashed, late: crashed},
	{name: "freeze", arrange: freeze, early: silent, later: fellSilent, late: fellSilent},
	{name: "cut", arrange: cut, early: silent, later: fellSilent, late: fellSilent},
	{name: "drain", arrange: drain, early: drained, later: drained, late: drained},
	{
		name: "rolling-restart", arrange: rollingRestart,
		then:  map[time.Duration]func(*world){3 * time.Second: replaceNext, 6 * time.Second: replaceNext},
		early: stopped, later: replaced, late: replaced,
	},
	{
		name: "database-outage", arrange: databaseOutage,
		then:  map[time.Duration]func(*world){20 * time.Second: func(w *world) { w.Server.Start(w) }},
		early: unreadable, later: unreadable, late: outage,
	},
	{name: "poison-event", arrange: poisonEvent, early: poisoned, later: poisoned, late: poisoned},
	{name: "failing-schedule", arrange: failingSchedule, early: failing, later: failing, late: failing},
}

const (
	at       = `\d\d:\d\d:\d\d`
	moved    = `Its 10 roles moved to api-\d \(\d\) and api-\d \(\d\)`
	ledAgain = `all roles have a leader again, after \d`
)

var (
	crashed    = shown{`api-1 crashed at ` + at, moved, ledAgain}
	fellSilent = shown{`api-1 fell silent at ` + at, moved, ledAgain}
	silent     = shown{`api-1 is silent|` + fellSilent.cause, `10 roles are still led|` + moved, `until the lease ends|` + ledAgain} // on a busy machine, the lease may have ended
	drained    = shown{`api-1 began to drain at ` + at + `, requested by anna`, moved, ledAgain}
	stopped    = shown{`api-1 stopped at ` + at, `Its 10 roles moved to api-[23]`, ledAgain}
	replaced   = shown{`3 nodes were replaced from ` + at + ` to ` + at + `: api-1, api-2 and api-3`, `Their \d\d roles moved to`, ledAgain}
	unreadable = shown{`The database cannot be read since ` + at, `10 roles stand still if their nodes cannot reach it either`, `Database down \d+ (s|min)`}
	outage     = shown{`No node reached the database from ` + at + ` to ` + at, `10 roles stood still for up to`, `over, after \d`}
	poisoned   = shown{`webhooks failed.*: the receiver answered 400`, `[23] events wait`, `next attempt|stopped: an operator must`}
	failing    = shown{`rotate-keys failed.*: exit status 3`, `\d+ failed runs?`, `next run`}
)

// tenants are the roles of which a fault stops the leader.
func tenants() (roles []string) {
	for i := range 10 {
		roles = append(roles, fmt.Sprintf("tenant-%02d", i+1))
	}
	return roles
}

// standbys makes api-2 and api-3 campaign, each for half of the roles, when another node leads all.
func (w *world) standbys(leader tenure.Member) (nodes []*tenure.Node) {
	w.Helper()
	roles := tenants()
	for _, role := range roles {
		w.AwaitLeader(role, leader.ID)
	}
	for i, name := range []string{"api-2", "api-3"} {
		node := w.node(w.backend, name, tenure.Config{})
		w.campaign(node, roles[i*5:(i+1)*5]...)
		nodes = append(nodes, node)
	}
	w.AwaitWatched(leader.ID)
	return nodes
}

// crash kills the process of a node.
func crash(t *testing.T) (*world, func()) {
	w := newWorld(t, bare, nil)
	process := w.process("api-1", 10*time.Second)
	w.standbys(w.member("api-1"))
	return w, process.Kill
}

// freeze stops the process of a node, and keeps its connections. With the default lease of 10 s, nothing
// is late after one second, and no page can show more.
func freeze(t *testing.T) (*world, func()) {
	w := newWorld(t, bare, nil)
	process := w.process("api-1", shortLease)
	w.standbys(w.member("api-1"))
	return w, func() {
		if err := process.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// shortLease makes the silence of a node visible after a second.
const shortLease = 2 * time.Second

// cut takes the network from a node that continues.
func cut(t *testing.T) (*world, func()) {
	w := newWorld(t, bare, nil)
	wire, backend := w.wired()
	w.campaign(w.node(backend, "api-1", tenure.Config{Lease: shortLease}), tenants()...)
	w.standbys(w.member("api-1"))
	return w, func() { wire.Stall() }
}

// drain is the request of an operator.
func drain(t *testing.T) (*world, func()) {
	w := newWorld(t, bare, nil)
	node := w.node(w.backend, "api-1", tenure.Config{})
	w.campaign(node, tenants()...)
	w.standbys(w.member("api-1"))
	return w, func() {
		if err := w.backend.Request(t.Context(), tenure.Request{Kind: tenure.RequestDrain, Node: node.ID(), By: "anna"}); err != nil {
			t.Fatal(err)
		}
	}
}

// rollingRestart replaces the first of three nodes. [replaceNext] replaces the others.
func rollingRestart(t *testing.T) (*world, func()) {
	w := newWorld(t, bare, nil)
	w.replica("api-1")
	w.replica("api-2")
	w.replica("api-3")
	return w, func() { replaceNext(w) }
}

// replica opens a node that campaigns for all roles.
func (w *world) replica(name string) {
	w.Helper()
	node := w.node(w.backend, name, tenure.Config{})
	w.campaign(node, tenants()...)
	if len(w.replicas) == 0 {
		for _, role := range tenants() {
			w.leads(node, role)
		}
	}
	w.replicas = append(w.replicas, node)
}

// replaceNext stops the oldest node and starts one with its name.
func replaceNext(w *world) {
	w.Helper()
	oldest := w.replicas[0]
	w.replicas = w.replicas[1:]
	postgrestest.Close(w, oldest)
	w.replica(oldest.Name())
}

// databaseOutage stops the server, which starts again later.
func databaseOutage(t *testing.T) (*world, func()) {
	server := pgtest.Start(t, pgtest.Options{})
	i := postgrestest.On(t, server, server.Schema(t))
	i.Migrate("all")
	w := newWorldOn(t, i, bare, nil)
	w.campaign(w.node(w.backend, "api-1", tenure.Config{}), tenants()...)
	w.standbys(w.member("api-1"))
	return w, func() { server.Stop(t, "immediate") }
}

// poisonEvent appends an event that a receiver refuses, and two more that wait behind it.
func poisonEvent(t *testing.T) (*world, func()) {
	w := newWorld(t, bare, nil)
	store := eventstore.New(w.backend, eventstore.Config{})
	node := w.node(w.backend, "api-1", tenure.Config{})
	w.node(w.backend, "api-2", tenure.Config{})
	group, err := processor.NewGroup(node, tenure.NamedRole("views"), w.pool, processor.GroupConfig{})
	if err != nil {
		t.Fatal(err)
	}
	err = group.Add(processor.Config{
		Name: "webhooks", Kind: "outbox", Log: store.Log(), MaxAttempts: 5, Retry: retry.FixedInterval{Interval: time.Second},
		Publish: func(_ context.Context, _ *tenure.Term, batch []processor.Event) (int, error) {
			for i, event := range batch {
				if event.Type == "refused" {
					return i, errors.New("the receiver answered 400")
				}
			}
			return len(batch), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	postgrestest.Run(t, group.Run)
	w.leads(node, "views")
	send := func(types ...string) {
		var events []eventstore.NewEvent
		for _, kind := range types {
			events = append(events, eventstore.NewEvent{Type: kind, Data: 1})
		}
		if err := store.Append(t.Context(), w.pool, events...); err != nil {
			t.Fatal(err)
		}
	}
	send("sent", "sent")
	w.Await("the first events are sent", func() bool {
		return postgrestest.Value[int64](w.Installation, "SELECT coalesce(sum(processed), 0)::bigint FROM {processors}") == 2
	})
	return w, func() { send("refused", "sent", "sent") }
}

// failingSchedule makes a job fail that runs every second.
func failingSchedule(t *testing.T) (*world, func()) {
	w := newWorld(t, bare, nil)
	node := w.node(w.backend, "api-1", tenure.Config{})
	w.node(w.backend, "api-2", tenure.Config{})
	scheduler, err := cron.New(node, w.pool, cron.Config{Role: tenure.NamedRole("scheduler")})
	if err != nil {
		t.Fatal(err)
	}
	var broken atomic.Bool
	err = scheduler.Add(cron.Schedule{Name: "rotate-keys", Expression: "* * * * * *", Job: func(context.Context, cron.Run) error {
		if broken.Load() {
			return errors.New("exit status 3")
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	postgrestest.Run(t, scheduler.Run)
	w.leads(node, "scheduler")
	w.Await("it runs", func() bool {
		return postgrestest.Value[int64](w.Installation, "SELECT count(*) FROM {runs} WHERE state = 'succeeded'") > 0
	})
	return w, func() {
		broken.Store(true)
		w.Await("a run fails", func() bool {
			return postgrestest.Value[int64](w.Installation, "SELECT count(*) FROM {runs} WHERE state = 'failed'") > 0
		})
	}
}
