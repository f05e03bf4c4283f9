package postgres

import (
	"flag"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/simcalls"
)

var simulatedCalls = flag.String("calls", "testdata/simulated_calls.gz", "the file of calls that TestServerAnswersAsTheSimulatedOne repeats")

// TestServerAnswersAsTheSimulatedOne repeats the calls that the simulated database of
// lab/sim received, in their order and at their times, and compares the answers. So the
// simulator's schedules also say something about {take}, {watch} and {ended}, and the
// statements around them.
//
// The stored file has the schedules of the seeds 21 to 23. To record it again:
//
//	go test ./lab/sim -run '^TestCallsAreRecorded$' -calls=$PWD/postgres/testdata/simulated_calls.gz -schedules=3 -first-seed=21
//
// That of the seed 1795981240, in which the clock is set back, is appended to it.
//
// Not compared:
//
//   - how long a session waits on another server, or to settle: package postgres decides
//     that in Go, in waitBefore. But {take} must not begin such a term either.
//   - deaths that a watch has noticed and not recorded: the simulated watch records a
//     death before it wakes its session.
//   - sessions outside the ring and stuck earlier sessions: other statements find them.
//   - how a server ends a session: the locks are freed one at a time, as the simulated
//     server freed them.
//   - what follows a new installation, or an old primary that comes back: the locks and
//     the numbers are those of another schema.
func TestServerAnswersAsTheSimulatedOne(t *testing.T) {
	t.Parallel()
	r := newRepeater(t)
	schedules := 0
	eachSchedule(t, func(calls []simcalls.Call) {
		r.repeat(calls)
		schedules++
	})
	t.Logf("%d schedules: %v", schedules, r.repeated)
	for _, what := range []string{"begun in one call", "begun after a look at the rows", "not begun: fenced", "not begun: waits", "watch died", "reserved", "led"} {
		if r.repeated[what] == 0 {
			t.Errorf("no call was repeated of the kind %q", what)
		}
	}
}

// eachSchedule reads the calls of one schedule after another.
func eachSchedule(t *testing.T, f func([]simcalls.Call)) {
	t.Helper()
	file, err := os.Open(*simulatedCalls)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var calls []simcalls.Call
	err = simcalls.Read(file, func(c simcalls.Call) error {
		if c.Kind == simcalls.Schedules && len(calls) > 0 {
			f(calls)
			calls = nil
		}
		calls = append(calls, c)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	f(calls)
}

// repeat repeats the calls of one schedule until an answer differs.
func (r *repeater) repeat(calls []simcalls.Call) {
	r.t.Helper()
	r.reset()
	before := r.differences
	for r.calls, r.place = calls, 0; r.place < len(calls) && r.differences == before; r.place++ {
		c := calls[r.place]
		if c.Kind == simcalls.Incomplete {
			return
		}
		if !r.done[r.place] {
			r.repeatOne(c)
			r.repeated[string(c.Kind)]++
		}
	}
	if r.differences >= 20 {
		r.t.Fatal("too many differences")
	}
}

// differ reports that the server answers otherwise than the simulated one.
func (r *repeater) differ(c simcalls.Call, format string, args ...any) {
	r.t.Helper()
	r.differences++
	r.t.Errorf("seed %d, call %d, %v, session %d: "+format, append([]any{r.calls[0].Seed, r.place, c.Kind, c.Session}, args...)...)
}

func (r *repeater) repeatOne(c simcalls.Call) {
	switch c.Kind {
	case simcalls.Schedules:
		r.truncate()
	case simcalls.Opens:
		r.open(c)
	case simcalls.Locks:
		r.lock(c)
	case simcalls.Closes:
		r.close(c, c.Roles)
	case simcalls.Begins:
		r.begin(c, c.Roles)
	case simcalls.Ends:
		r.end(c)
	case simcalls.Fences:
		r.fence(c)
	case simcalls.Watches:
		r.watch(c)
	default:
		r.change(c)
	}
}

// lock repeats an attempt to lock roles. The simulated session closes and begins terms in
// two more statements, while {take} does all of it in one call. If nothing happened
// between the three, {take} is called once. Otherwise it is called with another server
// than the rows have: then it locks and begins nothing.
func (r *repeater) lock(c simcalls.Call) {
	if closes, begins := r.following(c); begins > 0 {
		r.done[closes], r.done[begins] = true, true
		r.lockAndBegin(r.calls[begins], c, r.calls[closes])
		return
	}
	got := r.take(c, c.Roles, lockOnly)
	for _, want := range c.Roles {
		row, found := got[want.Name]
		switch {
		case want.Outcome == tenure.OutcomePending && (!found || row.left > 0 || row.ledBy != 0):
			r.differ(c, "%s: {take} says %+v; the simulated session locks it", want.Name, row)
		case want.Outcome == tenure.OutcomePending:
			r.holds(c, want.Name)
		case want.RetryIn > 0 && math.Abs(row.left-min(milliseconds(want.RetryIn), math.MaxInt32)) > 1:
			r.differ(c, "%s: {take} leaves it to others for %v; the simulated session for %v", want.Name, row.left, want.RetryIn)
		case want.RetryIn > 0:
			r.repeated["reserved"]++
		case found && row.ledBy == 0:
			r.differ(c, "%s: {take} says %+v; the simulated session finds it held", want.Name, row)
		case want.Led != (row.ledBy != 0):
			r.differ(c, "%s: {take} says that session %d leads; in the simulation one leads: %t", want.Name, row.ledBy, want.Led)
		case want.Led:
			r.repeated["led"]++
		}
	}
}

// following finds the closing and the beginning that belong to an attempt which has
// locked all its roles, if only watches looked in the meantime.
func (r *repeater) following(c simcalls.Call) (closes, begins int) {
	for _, role := range c.Roles {
		if role.Outcome != tenure.OutcomePending {
			return 0, 0
		}
	}
	for i := r.place + 1; i < len(r.calls); i++ {
		next := r.calls[i]
		switch {
		case next.Kind == simcalls.Watches:
		case next.Session != c.Session || !slices.EqualFunc(next.Roles, c.Roles, func(a, b simcalls.Role) bool { return a.Name == b.Name }):
			return 0, 0
		case next.Kind == simcalls.Closes:
			closes = i
		case next.Kind == simcalls.Begins && closes > 0:
			return closes, i
		default:
			return 0, 0
		}
	}
	return 0, 0
}

// lockAndBegin calls {take} as a session does that knows nothing of the rows, and goes the
// way of package postgres with what it does not begin.
func (r *repeater) lockAndBegin(c, locks, closes simcalls.Call) {
	got := r.take(c, locks.Roles, lockAndBegin)
	r.repeated["take in one call"]++
	var closed, left []simcalls.Role
	for i, want := range c.Roles {
		row, found := got[want.Name]
		if !found || row.left > 0 || row.ledBy != 0 {
			r.differ(c, "%s: {take} says %+v; the simulated session locks it", want.Name, row)
			continue
		}
		r.holds(c, want.Name)
		before := closes.Roles[i]
		r.sessions[c.Session].closed[want.Name] = before
		switch begins := !want.Fenced && r.beginsUnexamined(c, before); {
		case begins != (row.number > 0):
			r.differ(c, "%s: {take} says %+v; whether the term begins without a look at its row: %t", want.Name, row, begins)
		case begins && want.Outcome != tenure.OutcomeGranted:
			r.differ(c, "%s: {take} begins a term; the simulated session waits", want.Name)
		case begins:
			if before.EndedAt == closes.Clock { // {take} closes and begins at one time
				want.Vacancy = min(want.Vacancy, 0)
			}
			r.compareBegun(c, want, row)
			r.repeated["begun in one call"]++
		default:
			closed, left = append(closed, before), append(left, want)
		}
	}
	if len(left) > 0 {
		r.close(closes, closed)
		r.begin(c, left)
	}
}

// beginsUnexamined reports whether {take} may begin a term without a look at its row. The
// role is closed.
func (r *repeater) beginsUnexamined(c simcalls.Call, row simcalls.Role) bool {
	s := r.sessions[c.Session]
	if row.Term == 0 {
		return c.Life.New
	}
	return row.Life.Timeline == c.Life.Timeline && row.Life.Boot == c.Life.Boot && (!s.settling || clean(row.Reason))
}

func clean(reason tenure.EndReason) bool {
	return reason != history.EndCrashed && reason != history.EndLeaseExpired && reason != history.EndServerChanged
}

// begin repeats the begin of terms whose rows were examined. Whether a session waits
// before that is decided elsewhere.
func (r *repeater) begin(c simcalls.Call, roles []simcalls.Role) {
	var ready []simcalls.Role
	for _, role := range roles {
		if role.Outcome == tenure.OutcomeGranted || role.Fenced {
			ready = append(ready, role)
		} else {
			r.repeated["not begun: waits"]++
		}
	}
	if len(ready) == 0 {
		return
	}
	got := r.take(c, ready, examined)
	for _, want := range ready {
		switch row, found := got[want.Name]; {
		case !found || want.Fenced != (row.number == 0):
			r.differ(c, "%s: {take} says %+v; a transaction is in the way in the simulation: %t", want.Name, row, want.Fenced)
		case want.Fenced:
			r.repeated["not begun: fenced"]++
		default:
			r.compareBegun(c, want, row)
			r.repeated["begun after a look at the rows"]++
		}
	}
}

// compareBegun compares a begun term: its number, when it began, how long the role was
// vacant, and how the term before it ended.
func (r *repeater) compareBegun(c simcalls.Call, want simcalls.Role, got taken) {
	previous, known := r.term(want.Name, want.Previous)
	if !known || got.last != previous {
		r.differ(c, "%s: {take} says that the last term was %d; want %d", want.Name, got.last, previous)
	}
	if least := max(want.Previous+1, start.UnixMilli()+int64(c.Clock/time.Millisecond)); want.Term < least {
		r.differ(c, "%s: the simulated session gives the number %d; want at least %d", want.Name, want.Term, least)
	}
	number := max(previous+1, floor(instant(c.Clock).UnixMicro(), 1000))
	if got.number != number {
		r.differ(c, "%s: {take} gives the number %d; want %d after %d", want.Name, got.number, number, previous)
	}
	if got.began == nil || !got.began.Equal(instant(want.Begun)) {
		r.differ(c, "%s: {take} begins the term at %v; want %v", want.Name, got.began, instant(want.Begun))
	}
	vacant := -1.0
	if want.Vacancy >= 0 {
		vacant = milliseconds(want.Vacancy)
	}
	if !near(got.vacant, vacant, want.Vacancy) {
		r.differ(c, "%s: {take} says that the role was vacant for %v ms; want %v", want.Name, got.vacant, vacant)
	}
	if closed := r.sessions[c.Session].closed[want.Name]; previous > 0 {
		if reason := r.reason(want.Name, previous); reason != string(closed.Reason) {
			r.differ(c, "%s: the history says that the term %d ended as %q; want %q", want.Name, previous, reason, closed.Reason)
		}
	}
	r.begins(want.Name, want.Term, got.number)
}

// near reports whether two times agree that are floating-point numbers.
func near(a, b float64, d time.Duration) bool {
	return math.Abs(a-b) <= 0.01+1e-9*math.Abs(milliseconds(d))
}

// milliseconds are those of a time that the server counts 1,000 times as long: it has
// microseconds where the simulator has nanoseconds.
func milliseconds(d time.Duration) float64 { return float64(d) / 1000 }

// start is when a schedule begins.
var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// instant is a time of the server's clock.
func instant(clock time.Duration) time.Time {
	return time.UnixMicro(start.UnixMicro() + int64(clock)).UTC()
}

// floor divides, and rounds down.
func floor(a, b int64) int64 { return (a - (a%b+b)%b) / b }
