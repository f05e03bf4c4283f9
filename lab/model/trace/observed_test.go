package trace

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/steplog"
	"github.com/exactly-one/tenure/internal/steps"
)

// A history of nodes with moments of a real server is judged at those moments.
func TestSeenMomentsAreJudged(t *testing.T) {
	const s = time.Second
	node := func(at time.Duration, session int64) history {
		return history{}.with(at, steps.Opens, session).with(at, steps.SendsHeartbeat, session).with(at, steps.GetsAnswer, session, trust(window))
	}
	led := append(node(0, 1).with(s, steps.Tries, 1, of(0)).with(s, steps.Leads, 1, of(5)), node(0, 2)...)
	of1, of2 := of(5), of(6)
	server := func(h history, at time.Duration, kind steps.Kind, session int64, change ...func(*steps.Step)) history {
		return h.with(at, kind, session, append(change, func(s *steps.Step) { s.Node = "" })...)
	}
	locks := func(session int64) func(*steps.Step) {
		return func(s *steps.Step) { s.Locks, s.By = map[string]int64{"r": session}, time.Millisecond }
	}
	forgotten := func(h history) history { // of node a
		return h.with(2*s, steps.Forgets, 0, func(s *steps.Step) { s.Node = "a" })
	}
	stepped := func(h history) history {
		return server(h, 2*s, steps.ClockSteps, 0, func(moment *steps.Step) { moment.Excuse = 3 * s })
	}
	restarted := func(h history) history {
		return append(server(server(h, 2*s, steps.Stops, 0), 3*s, steps.Starts, 0), node(4*s, 3)...)
	}
	for _, c := range []struct {
		name  string
		steps history
		guard string
	}{
		{"the leader has the lock", server(server(led, 2*s, steps.Sees, 0, locks(1)), 3*s, steps.Sees, 0, locks(1)), ""},
		{"one look without the lock", server(server(led, 2*s, steps.Sees, 0, locks(0)), 3*s, steps.Sees, 0, locks(1)), ""},
		{"two looks without the lock", server(server(led, 2*s, steps.Sees, 0, locks(0)), 3*s, steps.Sees, 0, locks(0)), "locker = 1"},
		{"two looks without the lock after a step of the clock", server(server(stepped(led), 2*s, steps.Sees, 0, locks(0)), 3*s, steps.Sees, 0, locks(0)), ""},
		{"two looks without the lock after the times are true again", server(server(stepped(led), 6*s, steps.Sees, 0, locks(0)), 7*s, steps.Sees, 0, locks(0)), "locker = 1"},
		{"another session has the lock", server(server(led, 2*s, steps.Sees, 0, locks(2)), 3*s, steps.Sees, 0, locks(2)), "locker = 1"},
		{"a look after trust", server(server(led, 9*s, steps.Sees, 0, locks(0)), 10*s, steps.Sees, 0, locks(0)), ""},
		{"a begin under trust", server(led, 2*s, steps.Begins, 2, of2), "one_leader"},
		{"a begin after trust", server(led, 10*s, steps.Begins, 2, of2), ""},
		{"a begin that repeats a number", server(led, 10*s, steps.Begins, 2, of1), "numbers_grow"},
		{"a begin before the reunion", server(restarted(node(0, 1)), 5*s, steps.Begins, 3, of1), "WAITED || REUNITED"},
		{"a begin after the reunion", server(restarted(node(0, 1)), 9*s, steps.Begins, 3, of1), ""},
		{"a begin after a node was forgotten", server(restarted(forgotten(node(0, 1))), 5*s, steps.Begins, 3, of1), ""},
		{"a start after a crash that was not seen", server(server(server(led, 2*s, steps.Starts, 0), 3*s, steps.Sees, 0, locks(0)), 4*s, steps.Sees, 0, locks(0)), ""},
		{"a session that ends early", server(led, 2*s, steps.Ends, 1), "conn = 0"},
		{"a session that ends after its node", server(led.with(2*s, steps.Dies, 1), 2*s, steps.Ends, 1), ""},
		{"a silent session", server(led, 10*s, steps.IdleEnds, 1), ""},
		{"a session that is not silent", server(led, 8*s, steps.IdleEnds, 1), "silent >= IDLE"},
		{"a session that is reaped early", server(led, 8*s, steps.Reaps, 1), "silent >= REAPED"},
		{"a session that is killed", server(server(led, 2*s, steps.Kills, 1), 2*s, steps.Begins, 2, of2), ""},
	} {
		var stored bytes.Buffer
		steplog.Merge(c.steps)
		if err := steplog.Write(&stored, steplog.Header{Nodes: true, Server: true}, c.steps); err != nil {
			t.Fatal(err)
		}
		_, err := Replay(&stored)
		d, _ := errors.AsType[*Disallowed](err)
		if c.guard == "" && err != nil || c.guard != "" && (d == nil || !strings.HasPrefix(d.Guard, c.guard)) {
			t.Errorf("%s: the error is %v; want the guard %q", c.name, err, c.guard)
		}
	}
}
