package acceptance_test

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/sandbox"
	"github.com/exactly-one/tenure/postgres"
)

// observedFaults is how many faults of each kind an observer compares with the history.
// A full run, as on a release:
//
//	TENURE_TEST_OBSERVED_FAULTS=200 go test ./internal/acceptance -run TestHistoryAgreesWithObserver -v -timeout 0
var observedFaults = scaled("TENURE_TEST_OBSERVED_FAULTS", 2)

// agreed is how far the history and an observer may be apart.
const agreed = 50 * time.Millisecond

// An observer outside of Tenure sees when a leader was killed or frozen, when its lock
// was free, and when the next node led. The history agrees with it about the time for
// which the role was vacant, and for which it was silent.
func TestHistoryAgreesWithObserver(t *testing.T) {
	t.Parallel()
	t.Run("crashes", func(t *testing.T) {
		t.Parallel()
		o := newObserved(t)
		for range observedFaults {
			if f := o.fault(syscall.SIGKILL); f.before.Reason != history.EndCrashed {
				t.Errorf("the term ended as %s, want %s", f.before.Reason, history.EndCrashed)
			}
			o.leader.Kill()
			o.replaceLeader()
		}
		for _, f := range o.checkVacancies() {
			if f.next.PrecedingVacancy > f.without() { // what is left is the time until the server noticed the kill
				t.Errorf("vacant for %v, want at most the %v from the kill to the next leader", f.next.PrecedingVacancy, f.without())
			}
		}
	})
	t.Run("freezes", func(t *testing.T) {
		t.Parallel()
		o := newObserved(t)
		for range observedFaults {
			f := o.fault(sandbox.PauseSignal)
			if f.without() < lease/2 {
				t.Errorf("the next node led %v after the freeze, want about a lease", f.without())
			}
			o.leader.signal(sandbox.ResumeSignal)
			o.leader, o.standby = o.standby, o.leader
			o.awaitStandby()
		}
		o.checkVacancies()
	})
}

// observed is a leader and a standby, both in separate processes, and their observer.
type observed struct {
	*cluster
	t               *testing.T
	conn            *pgx.Conn
	backend         *postgres.Backend
	locks           *observer
	leader, standby *process
	births          int
	faults          []observedFault
}

func newObserved(t *testing.T) *observed {
	t.Helper()
	o := &observed{cluster: newCluster(t), t: t}
	o.migrate()
	o.conn = pgtest.Conn(t, o.dsn)
	var err error
	if o.backend, err = postgres.New(o.dsn, o.db); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.backend.Close)
	o.leader = o.spawn()
	o.leader.await("lead", time.Time{})
	o.locks = o.observe()
	o.standby = o.spawn()
	o.awaitStandby()
	return o
}

func (o *observed) spawn() *process {
	o.births++
	return spawn(o.t, childIdle, order{DSN: o.dsn, Schema: o.schema, Name: fmt.Sprintf("observed %d", o.births), Lease: lease, Roles: 1})
}

func (o *observed) replaceLeader() {
	o.leader, o.standby = o.standby, o.spawn()
	o.awaitStandby()
}

// awaitStandby waits until both processes have sessions and the leader has sent a
// heartbeat in its term.
func (o *observed) awaitStandby() {
	o.t.Helper()
	eventually(o.t, o.conn, "SELECT count(*) = 2 FROM "+o.quoted("nodes")+
		" WHERE name = ANY ($1) AND status <> 'dead' AND watching AND last_heartbeat > clock_timestamp() - interval '2 s'",
		[]string{o.leader.Name, o.standby.Name})
	eventually(o.t, o.conn, "SELECT last_heartbeat > acquired_at FROM "+o.quoted("terms")+" t JOIN "+o.quoted("nodes")+
		" n ON n.id = t.node_id WHERE t.role = $1 AND n.name = $2", role, o.leader.Name)
}

// observedFault is a fault, and the two terms around it as recorded.
type observedFault struct {
	at, led      time.Time // when it happened, and when the standby saw itself lead
	before, next history.Term
	tolerance    time.Duration // what the history and the observer may be apart, once that is known
}

// without is for how long no process could work for the role.
func (f observedFault) without() time.Duration { return f.led.Sub(f.at) }

// fault sends a signal to the leader, waits until the standby leads, and checks the
// silence.
func (o *observed) fault(signal syscall.Signal) observedFault {
	o.t.Helper()
	f := observedFault{at: time.Now()}
	o.leader.signal(signal)
	f.led = o.standby.await("lead", f.at).Time()
	seen := value[time.Time](o.t, o.conn, "SELECT last_heartbeat FROM "+o.quoted("nodes")+" WHERE name = $1", o.leader.Name)
	terms := o.terms()
	f.next, f.before = terms[len(terms)-1], terms[len(terms)-2]
	if silent := f.next.Began.Sub(seen); (f.next.PrecedingSilence - silent).Abs() > time.Millisecond {
		o.t.Errorf("silent for %v, want the %v since the last heartbeat", f.next.PrecedingSilence, silent)
	}
	if least, most := f.without()-agreed, f.without()+lease/3+agreed; f.next.PrecedingSilence < least || f.next.PrecedingSilence > most {
		o.t.Errorf("silent for %v, want between %v and %v: the role was without a leader for %v", f.next.PrecedingSilence, least, most, f.without())
	}
	o.t.Logf("without a leader for %v: vacant for %v, silent for %v (%s)", f.without(), f.next.PrecedingVacancy, f.next.PrecedingSilence, f.before.Reason)
	o.faults = append(o.faults, f)
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

// checkVacancies compares the vacancies with the times for which the lock was seen free.
// It returns the faults with their tolerances: a machine that delays the observer delays
// the nodes too.
func (o *observed) checkVacancies() []observedFault {
	o.t.Helper()
	holds := o.locks.close()
	for n := range o.faults {
		f := &o.faults[n]
		f.tolerance = agreed + o.busy(*f)
		began := f.next.Began
		i := slices.IndexFunc(holds, func(h hold) bool { return !began.Before(h.free) && !began.After(h.to) })
		if i < 1 {
			o.t.Errorf("term %d began at %v, when the lock was not seen held", f.next.Term, began)
			continue
		}
		least, most := holds[i].free.Sub(holds[i-1].gone), holds[i].from.Sub(holds[i-1].to)
		if vacant := f.next.PrecedingVacancy; vacant < least-f.tolerance || vacant > most+f.tolerance {
			o.t.Errorf("term %d: vacant for %v; the lock was free for between %v and %v, give or take %v", f.next.Term, vacant, least, most, f.tolerance)
		}
	}
	return o.faults
}

// busy is the longest time between two looks of the observer around a fault.
func (o *observed) busy(f observedFault) time.Duration {
	longest := time.Duration(0)
	for _, gap := range o.locks.gaps {
		if gap.Shared(children.Interval{From: f.at, To: f.led}) > 0 {
			longest = max(longest, gap.Length())
		}
	}
	return longest
}

// The time in which a server was down is recorded as an outage, from the last heartbeat
// to the first session, with the role that stood still.
func TestOutageOfServerIsRecorded(t *testing.T) {
	t.Parallel()
	server, c := newServer(t, pgtest.Options{})
	first := c.join("first")
	term := first.leads()
	c.join("second")
	down := time.Now()
	server.Restart(t, "immediate")
	up := time.Now()
	ended(t, term)
	eventually(t, server.Conn(t), "SELECT term > $2 AND ended_at IS NULL FROM "+c.quoted("terms")+" WHERE role = $1", role, term.Number())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	outages, err := first.backend.Outages(ctx, history.Query{})
	cancel()
	if err != nil || len(outages) != 1 {
		t.Fatalf("%+v, %v; want one outage", outages, err)
	}
	o := outages[0]
	if o.Began.Before(down.Add(-lease/3-agreed)) || o.Began.After(up) || o.Ended.Before(down) || o.Ended.After(up.Add(recovery+slack)) {
		t.Errorf("an outage from %v to %v; the server was down from %v to %v", o.Began, o.Ended, down, up)
	}
	if !o.ServerChanged || !slices.Equal(o.Roles, []string{role}) {
		t.Errorf("%+v; want that %s stood still because the server changed", o, role)
	}
	t.Logf("the server was down for at most %v, and an outage of %v is recorded", up.Sub(down), o.Ended.Sub(o.Began))
}
