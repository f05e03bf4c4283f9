package acceptance_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/netns"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/sandbox"
	"github.com/exactly-one/tenure/postgres"
)

// observedFaults is how many faults of each kind an observer compares with the records,
// in observedClusters clusters of each kind. A full run is `make test-observer`.
var (
	observedFaults   = scaled("TENURE_TEST_OBSERVED_FAULTS", 2)
	observedClusters = scaled("TENURE_TEST_OBSERVED_CLUSTERS", 1)
)

// agreed is how far a record and an observer may be apart.
const agreed = 50 * time.Millisecond

// An observer outside of Tenure sees when a leader was killed, frozen or cut off, when it
// sent its last heartbeat, when its lock was free, and when the next term began. The
// records agree with it about the time for which the role was vacant, for which it was
// silent, and about the length and the roles of outages.
func TestRecordsAgreeWithObserver(t *testing.T) {
	t.Parallel()
	kinds := []struct {
		found *agreement
		place place
		fault func(*observed)
	}{
		{newAgreement("crash"), onSharedServer, (*observed).crash},
		{newAgreement("freeze"), onSharedServer, (*observed).freeze},
		{newAgreement("cut"), inNamespaces, (*observed).cut},
		{newAgreement("restart of the server"), onOwnServer, (*observed).restart},
		{newAgreement("cut of all nodes"), inNamespaces, (*observed).cutAll},
	}
	var all []*agreement
	for _, kind := range kinds {
		all = append(all, kind.found)
		t.Run(kind.found.fault, func(t *testing.T) {
			t.Parallel()
			if kind.place == inNamespaces || kind.found.fault == "freeze" {
				pgtest.Long(t)
			}
			t.Run("clusters", func(t *testing.T) { // it waits for all of them
				for i, count := range shares(observedFaults, observedClusters) {
					t.Run(fmt.Sprint(i+1), func(t *testing.T) {
						t.Parallel()
						o := newObserved(t, kind.found, kind.place, 1+2*i)
						o.join()
						for range count {
							time.Sleep(rand.N(lease / 3)) // a fault comes at any time between two heartbeats
							kind.fault(o)
						}
					})
				}
			})
			kind.found.report(t)
		})
	}
	t.Cleanup(func() { publish(t, all) }) // after all of them
}

// place is where the nodes and the server of a test run.
type place int

const (
	onSharedServer place = iota
	onOwnServer
	inNamespaces // the nodes; the server is their own
)

// shares divides a number of faults among clusters.
func shares(faults, clusters int) []int {
	var all []int
	for i := range clusters {
		if n := faults*(i+1)/clusters - faults*i/clusters; n > 0 {
			all = append(all, n)
		}
	}
	return all
}

// observed is a leader and a standby, both in separate processes, and their observer.
type observed struct {
	*cluster
	found           *agreement
	server          *pgtest.Server
	apart           *netns.Network // nil if the nodes run where the test does
	conn            *pgx.Conn
	backend         *postgres.Backend
	out             *lookout
	roles           int
	leader, standby *process
	spaces          map[*process]int // the namespaces of the nodes
	births          int
}

func newObserved(t *testing.T, found *agreement, where place, roles int) *observed {
	t.Helper()
	o := &observed{found: found, roles: roles, spaces: map[*process]int{}}
	switch where {
	case onSharedServer:
		o.server, o.cluster = pgtest.Shared(t), newCluster(t)
	case onOwnServer:
		o.server, o.cluster = newServer(t, pgtest.Options{})
	case inNamespaces:
		o.apart = newNetwork(t, 2)
		o.server, o.cluster = newServer(t, pgtest.Options{
			Settings: map[string]string{"listen_addresses": "127.0.0.1," + o.apart.Host(0)},
			HBA:      []string{"host all all " + o.apart.CIDR() + " trust"},
		})
	}
	o.migrate()
	o.conn = pgtest.Conn(t, o.dsn)
	var err error
	if o.backend, err = postgres.New(o.dsn, o.db); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.backend.Close)
	return o
}

// newNetwork makes network namespaces for as long as the test runs.
func newNetwork(t *testing.T, namespaces int) *netns.Network {
	t.Helper()
	network, err := netns.New(t.Context(), namespaces)
	if errors.Is(err, netns.ErrUnavailable) {
		t.Skip("NOT TESTED:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := network.Close(); err != nil {
			t.Error(err)
		}
	})
	return network
}

// join starts a leader, a standby and the observer. One more role is vacant all the time:
// its leader was killed, and no node campaigns for it.
func (o *observed) join() {
	o.t.Helper()
	o.out = o.lookFrom(o.dsn)
	gone := o.spawn(0, o.roles+1)
	gone.await("acquired", time.Time{})
	o.leader = o.spawn(0, o.roles)
	eventually(o.t, o.conn, "SELECT watching FROM "+o.quoted("nodes")+" WHERE name = $1", o.leader.Name)
	gone.Kill()
	o.leader.await("acquired", time.Time{})
	o.standby = o.spawn(1, o.roles)
	o.settle()
}

// spawn starts a node, if nodes run in namespaces in the one that is named.
func (o *observed) spawn(space, roles int) *process {
	o.births++
	dsn, before := o.dsn, []string(nil)
	if o.apart != nil {
		dsn = fmt.Sprintf("postgres://postgres@%s:%d/postgres?sslmode=disable", o.apart.Host(0), o.server.Port)
		before = o.apart.Within(space)
	}
	p := o.cluster.spawn(childIdle, order{DSN: dsn, Schema: o.schema, Name: fmt.Sprintf("observed %d", o.births), Lease: lease, Roles: roles, Gap: pace}, before...)
	o.spaces[p] = space
	return p
}

// settle waits until both nodes have sessions, and the leader of each role has sent a
// heartbeat in its term.
func (o *observed) settle() {
	o.t.Helper()
	eventually(o.t, o.conn, "SELECT count(*) = 2 FROM "+o.quoted("nodes")+
		" WHERE name = ANY ($1) AND status <> 'dead' AND watching AND last_heartbeat > clock_timestamp() - interval '2 s'",
		[]string{o.leader.Name, o.standby.Name})
	eventually(o.t, o.conn, "SELECT count(*) = $1 AND bool_and(n.last_heartbeat > t.acquired_at) FROM "+o.quoted("terms")+" t JOIN "+o.quoted("nodes")+
		" n ON n.id = t.node_id AND n.incarnation = t.incarnation WHERE t.ended_at IS NULL AND n.name = ANY ($2)",
		o.roles, []string{o.leader.Name, o.standby.Name})
}

func (o *observed) crash() {
	f := o.fault(func() { o.leader.signal(syscall.SIGKILL) })
	if f.before.Reason != history.EndCrashed {
		o.t.Errorf("the term ended as %s, want %s", f.before.Reason, history.EndCrashed)
	}
	o.leader.Kill()
	o.leader, o.standby = o.standby, o.spawn(o.spaces[o.leader], o.roles)
	o.settle()
}

func (o *observed) freeze() {
	f := o.fault(func() { o.leader.signal(sandbox.PauseSignal) })
	o.leader.signal(sandbox.ResumeSignal)
	o.returned(f)
}

func (o *observed) cut() {
	space := o.spaces[o.leader]
	f := o.fault(func() { o.do(o.apart.Isolate, space) })
	o.do(o.apart.Rejoin, space)
	o.returned(f)
}

// do changes the networks of namespaces.
func (o *observed) do(change func(context.Context, int) error, spaces ...int) {
	o.t.Helper()
	for _, space := range spaces {
		if err := change(o.t.Context(), space); err != nil {
			o.t.Fatal(err)
		}
	}
}

// returned waits until the old leader is a standby.
func (o *observed) returned(f observedFault) {
	o.t.Helper()
	if f.without() < lease/2 {
		o.t.Errorf("the next node led %v after the fault, want about a lease", f.without())
	}
	o.leader, o.standby = o.standby, o.leader
	o.settle()
}

// observedFault is a fault, and the two terms around it as recorded.
type observedFault struct {
	at, led      time.Time // when it happened, and when the standby saw itself lead
	before, next history.Term
}

// without is for how long no process could work for the role.
func (f observedFault) without() time.Duration { return f.led.Sub(f.at) }

// fault makes a fault of the leader, waits until the standby leads, and compares what
// was recorded with what the observer saw.
func (o *observed) fault(inject func()) observedFault {
	o.t.Helper()
	f := observedFault{at: time.Now()}
	inject()
	f.led = o.standby.await("lead", f.at).Time()
	terms := o.terms()
	f.next, f.before = terms[len(terms)-1], terms[len(terms)-2]
	next := o.out.await("term "+role, func(c change) bool { return c.value == fmt.Sprint(f.next.Term) })
	freed, foundFreed := o.out.released(role, next)
	beat, foundBeat := o.out.last("beat "+o.leader.Name, func(c change) bool { return c.From.Before(f.led) && !c.To.After(next.To) })
	if !foundFreed || !foundBeat {
		o.t.Fatalf("before term %d, the observer has not seen the lock freed (%t) or a heartbeat (%t)", f.next.Term, foundFreed, foundBeat)
	}
	vacant, silent := freed.until(next), beat.until(next)
	waited := o.out.waited(children.Interval{From: f.at, To: f.led}, o.standby)
	o.found.compare(o.t, "vacancy", vacant, f.next.PrecedingVacancy, waited)
	o.found.compare(o.t, "silence", silent, f.next.PrecedingSilence, waited)
	o.t.Logf("without a leader for %v: vacant for %v, seen %v; silent for %v, seen %v (%s)",
		f.without(), f.next.PrecedingVacancy, vacant, f.next.PrecedingSilence, silent, f.before.Reason)
	return f
}

// terms returns the terms, oldest first.
func (o *observed) terms() []history.Term {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), patience)
	defer cancel()
	terms, err := o.backend.History(ctx, history.Query{Role: role})
	if err != nil {
		o.t.Fatal(err)
	}
	slices.Reverse(terms)
	return terms
}
