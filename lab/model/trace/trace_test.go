package trace

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/steplog"
	"github.com/exactly-one/tenure/internal/steps"
)

const (
	lease  = 10 * time.Second
	margin = time.Second
	window = lease - margin
)

// history builds a history of nodes a and b, whose sessions are 1 and 2.
type history []steps.Step

func (h history) with(at time.Duration, kind steps.Kind, session int64, change ...func(*steps.Step)) history {
	s := steps.Step{Kind: kind, At: at, Session: session, Node: map[int64]string{1: "a", 2: "b", 3: "b"}[session], Lease: lease, Margin: margin}
	for _, f := range change {
		f(&s)
	}
	return append(h[:len(h):len(h)], s)
}

// after returns the history some time later.
func (h history) after(by time.Duration) history {
	later := slices.Clone(h)
	for i := range later {
		later[i].At += by
	}
	return later
}

func of(term int64) func(*steps.Step) {
	return func(s *steps.Step) { s.Role, s.Term = "r", term }
}

func trust(left time.Duration) func(*steps.Step) {
	return func(s *steps.Step) { s.Trust = left }
}

func (h history) joins(at time.Duration, session int64) history {
	return h.with(at, steps.Opens, session).with(at, steps.Joins, session).beats(at, session)
}

func (h history) beats(at time.Duration, session int64) history {
	return h.with(at, steps.SendsHeartbeat, session).with(at, steps.Beats, session).with(at, steps.GetsAnswer, session, trust(window))
}

func (h history) leads(at time.Duration, session, term int64) history {
	return h.with(at, steps.Tries, session, of(0)).with(at, steps.TakesLock, session, of(0)).
		with(at, steps.Begins, session, of(term)).with(at, steps.Leads, session, of(term))
}

func (h history) resigns(at time.Duration, session, term int64) history {
	return h.with(at, steps.EndsTerm, session, of(term)).with(at, steps.WorkReturns, session, of(term)).
		with(at, steps.Releases, session, of(term)).with(at, steps.Unlocks, session, of(0))
}

// replay returns the guard that does not hold, or "".
func (h history) replay(t *testing.T) string {
	t.Helper()
	var stored bytes.Buffer
	if err := steplog.Write(&stored, steplog.Header{}, h); err != nil {
		t.Fatal(err)
	}
	c, err := Replay(&stored)
	if err == nil {
		if c.Steps != len(h) {
			t.Errorf("%d steps were replayed; want %d", c.Steps, len(h))
		}
		return ""
	}
	d, ok := errors.AsType[*Disallowed](err)
	if !ok {
		t.Fatal(err)
	}
	if d.Step.At != h[c.Steps-1].At || !strings.Contains(err.Error(), "requires: "+d.Guard) {
		t.Errorf("the failure is %v", err)
	}
	return d.Guard
}

func TestRulesAllowTheModelsStepsOnly(t *testing.T) {
	const s = time.Second
	two := history{}.joins(0, 1).joins(0, 2)
	led := two.leads(s, 1, 5)
	crashed := led.with(2*s, steps.Crashes, 0).with(2*s, steps.Ends, 1).with(2*s, steps.Ends, 2).with(3*s, steps.Starts, 0)
	back := crashed.with(4*s, steps.GivesUp, 2).joins(4*s, 2)
	for _, c := range []struct {
		name  string
		steps history
		guard string // begins so; empty if each step is allowed
	}{
		{"terms that follow one another", led.resigns(2*s, 1, 5).leads(3*s, 2, 6), ""},
		{"a session that stays silent", led.with(10*s, steps.IdleEnds, 1).beats(5*s, 2).leads(10*s, 2, 6), ""},
		{"two leaders", led.with(2*s, steps.Ends, 1), "conn = 0"},
		{"a session that ends early", led.with(9*s, steps.IdleEnds, 1), "silent >= IDLE"},
		{"a session that is reaped early", led.with(9*s, steps.Reaps, 1), "silent >= REAPED"},
		{"a lock that is held", led.with(2*s, steps.Tries, 2, of(0)).with(2*s, steps.TakesLock, 2, of(0)), "locker = NONE"},
		{"a number that was used", led.resigns(2*s, 1, 5).leads(3*s, 2, 5), "numbers_grow"},
		{"a release under work", led.with(2*s, steps.EndsTerm, 1, of(5)).with(2*s, steps.Releases, 1, of(5)), "work = 0"},
		{"a release while the node leads", led.with(2*s, steps.Releases, 1, of(5)), "leads = 0"},
		{"a close under work", led.with(2*s, steps.GivesUp, 1).with(2*s, steps.Closes, 1), "work_first"},
		{"a close that is forced", led.with(2*s, steps.GivesUp, 1).with(2*s, steps.Closes, 1, func(s *steps.Step) { s.Forced = true }), ""},
		{"an attempt under work", led.with(2*s, steps.EndsTerm, 1, of(5)).with(2*s, steps.Tries, 1, of(0)), "work = 0"},
		{"a heartbeat after trust", two.with(9*s, steps.SendsHeartbeat, 1), "conn = 1"},
		{"an answer after trust", two.with(8*s, steps.SendsHeartbeat, 1).with(8*s, steps.Beats, 1).with(9*s, steps.GetsAnswer, 1, trust(8*s)), "conn > 0"},
		{"trust from the answer", two.with(s, steps.SendsHeartbeat, 1).with(s, steps.Beats, 1).with(2*s, steps.GetsAnswer, 1, trust(window)), "trust = TRUST - waits"},
		{"an answer without a heartbeat", two.with(s, steps.SendsHeartbeat, 1).with(s, steps.GetsAnswer, 1, trust(window)), "done"},
		{"a term after trust", two.with(8*s, steps.Tries, 1, of(0)).with(8*s, steps.TakesLock, 1, of(0)).with(8*s, steps.Begins, 1, of(5)).with(9*s, steps.Leads, 1, of(5)), "trust > 0"},
		{"one statement after trust", two.with(9*s, steps.Performs, 1), ""},
		{"two statements after trust", two.with(9*s, steps.Performs, 1).with(9*s, steps.Performs, 1), "quiet"},
		{"a session opened under trust", two.with(s, steps.Opens, 1), "conn = 0"},
		{"a begin under a fence", led.with(2*s, steps.Fences, 1, of(5)).resigns(2*s, 1, 5).leads(3*s, 2, 6), "ROWFREE"},
		{"a commit after the next term", led.resigns(2*s, 1, 5).leads(3*s, 2, 6).with(4*s, steps.Commits, 1, of(5)), "fenced_order"},

		{"a begin before the reunion", back.leads(5*s, 2, 6), "WAITED || REUNITED"},
		{"a begin after the reunion", back.with(5*s, steps.GivesUp, 1).with(5*s, steps.WorkReturns, 1, of(5)).joins(5*s, 1).leads(6*s, 2, 6), ""},
		{"a begin after the lease of the missing node", back.beats(9*s, 2).leads(10*s, 2, 6), ""},
		{"a begin that loses its record", crashed.with(3*s, steps.Loses, 0).with(4*s, steps.GivesUp, 2).joins(4*s, 2).leads(5*s, 2, 6), "WAITED, since no row"},
		{"a node forgotten while it may trust", crashed.with(4*s, steps.Forgets, 1), "OVER"},
	} {
		if guard := c.steps.replay(t); !strings.HasPrefix(guard, c.guard) || c.guard == "" && guard != "" {
			t.Errorf("%s: the guard is %q; want %q", c.name, guard, c.guard)
		}
	}
}

// A history of nodes alone implies what the server did.
func TestHistoryOfNodesIsReplayed(t *testing.T) {
	const s = time.Second
	led := func(session, term int64) history {
		return history{}.with(0, steps.Opens, session).with(0, steps.SendsHeartbeat, session).with(0, steps.GetsAnswer, session, trust(window)).
			with(s, steps.Tries, session, of(0)).with(s, steps.Leads, session, of(term))
	}
	other := func(s *steps.Step) { s.Node = "c" }
	for _, c := range []struct {
		name  string
		steps history
		guard string
	}{
		{"one leader", led(1, 5), ""},
		{"two leaders", append(led(1, 5), led(2, 6)...), "one_leader"},
		{"two leaders after the end of a session", append(led(1, 5).with(s, steps.ClockSteps, 0, func(s *steps.Step) { s.Excuse = time.Minute }), led(2, 6)...), ""},
		{"a number of a session that repeats in new tables", append(led(1, 5).with(2*s, steps.EndsTerm, 1, of(5)), history{}.
			with(2*s, steps.Opens, 1, other).with(2*s, steps.SendsHeartbeat, 1, other).with(2*s, steps.GetsAnswer, 1, other, trust(window)).
			with(3*s, steps.SendsHeartbeat, 1).with(3*s, steps.GetsAnswer, 1, trust(window))...), ""},
		{"a node that comes back in new tables", append(led(1, 5).with(2*s, steps.GivesUp, 1).with(2*s, steps.EndsTerm, 1, of(5)).
			with(2*s, steps.WorkReturns, 1, of(5)).with(2*s, steps.Closes, 1), led(1, 6).after(3*s)...), ""},
		{"a smaller number", append(led(1, 5).with(s, steps.EndsTerm, 1, of(5)), led(2, 4)...), "got > 0"},
	} {
		var stored bytes.Buffer
		steplog.Merge(c.steps)
		if err := steplog.Write(&stored, steplog.Header{Nodes: true}, c.steps); err != nil {
			t.Fatal(err)
		}
		_, err := Replay(&stored)
		d, _ := errors.AsType[*Disallowed](err)
		if c.guard == "" && err != nil || c.guard != "" && (d == nil || !strings.HasPrefix(d.Guard, c.guard)) {
			t.Errorf("%s: the error is %v; want the guard %q", c.name, err, c.guard)
		}
	}
}

// The agent of a host has session 1; its nodes have the sessions 1<<32 and above.
func TestHistoryOfAgentIsReplayed(t *testing.T) {
	const s, session = time.Second, 1<<hostBits + 1
	of5 := func(s *steps.Step) { s.Node, s.Role, s.Term = "a", "r", 5 }
	agent := func(h history, at time.Duration, kind steps.Kind, session int64, change ...func(*steps.Step)) history {
		return h.with(at, kind, session, append(change, func(s *steps.Step) { s.Node = "agent" })...)
	}
	forced := func(s *steps.Step) { s.Forced = true }
	opened := agent(history{}, 0, steps.AgentGetsAnswer, 1, trust(window)).with(0, steps.Opens, session, of5).with(0, steps.SendsHeartbeat, session, of5)
	led := opened.with(0, steps.GetsAnswer, session, of5, trust(8*s)).with(s, steps.Tries, session, of5).with(s, steps.Leads, session, of5)
	stopped := led.with(2*s, steps.GivesUp, session, of5).with(2*s, steps.EndsTerm, session, of5)
	closed := stopped.with(3*s, steps.WorkReturns, session, of5).with(3*s, steps.Closes, session, of5)
	for _, c := range []struct {
		name  string
		steps history
		guard string
	}{
		{"a node trusts as long as its agent", led, ""},
		{"a node trusts longer than its agent", agent(history{}, 0, steps.AgentGetsAnswer, 1, trust(7*s)).with(0, steps.Opens, session, of5).with(0, steps.SendsHeartbeat, session, of5).with(0, steps.GetsAnswer, session, of5, trust(8*s)), "nodeTrust <= limit"},
		{"the agent releases the role of a node that trusts", agent(led, 2*s, steps.AgentReleases, session, forced), "lease <= NODELEASE - EXPIRES"},
		{"the agent releases the role of a silent node", agent(led, 8*s, steps.AgentReleases, session, forced), ""},
		{"the agent releases the role of a node that works", agent(stopped, 2*s, steps.AgentReleases, session), "!work"},
		{"the agent releases the role of a node that has left", agent(closed, 3*s, steps.AgentReleases, session), ""},
		{"the agent closes while a node trusts", agent(led, 2*s, steps.AgentCloses, 1, forced), "ALONE || limitOver = 0: session"},
		{"the agent closes while a node works", agent(stopped, 3*s, steps.AgentCloses, 1), "ALONE || limitOver = 0: work"},
		{"the agent closes after its trust", agent(stopped, 10*s, steps.AgentCloses, 1), ""},
		{"the agent closes when its nodes have", agent(closed, 3*s, steps.AgentCloses, 1), ""},
	} {
		var stored bytes.Buffer
		if err := steplog.Write(&stored, steplog.Header{Nodes: true}, c.steps); err != nil {
			t.Fatal(err)
		}
		_, err := Replay(&stored)
		d, _ := errors.AsType[*Disallowed](err)
		if c.guard == "" && err != nil || c.guard != "" && (d == nil || !strings.HasPrefix(d.Guard, c.guard)) {
			t.Errorf("%s: the error is %v; want the guard %q", c.name, err, c.guard)
		}
	}
}

func TestReplayRefusesWhatItCannotRead(t *testing.T) {
	for _, text := range []string{"", "{}\n{", "{}\n{\"step\":\"jumps\"}\n"} {
		if _, err := Replay(strings.NewReader(text)); err == nil {
			t.Errorf("the history %q is accepted", text)
		}
	}
}
