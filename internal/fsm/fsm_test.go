package fsm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// line is a line of the transition table as the source document (pgleaderlock,
// section 3.3) prints it, written down here a second time and independently of
// Table. An index ¹, ² or ³ refers to the document's footnotes.
type line struct {
	from    State
	inputs  string
	to      State
	note    rune
	actions string
}

var document = []line{
	{Stopped, "Start", Follower, 0, "Open connection; schedule immediate attempt"},
	{Follower, "AcquireAttempt", Acquiring, 0, "Execute lock"},
	{Follower, "StopRequested", Stopped, 0, "Close connection; emit on_stopped"},
	{Acquiring, "AcquireSucceeded", Leader, 0, "Emit on_acquired; reset retry state; begin health loop"},
	{Acquiring, "AcquireFailed", Follower, 0, "Compute backoff delay; emit on_acquire_failed; sleep; schedule next attempt"},
	{Acquiring, "DbError", Follower, '¹', "Emit on_lost; close connection; reconnect; schedule attempt"},
	{Acquiring, "StopRequested", Stopped, 0, "Close connection; emit on_stopped"},
	{Leader, "HealthOk", Leader, 0, ""},
	{Leader, "HealthFailed / DbError", Reconnecting, '³', "Log warning; close connection; start grace timer; attempt reconnect"},
	{Leader, "StopRequested", Releasing, 0, "Execute unlock"},
	{Leader, "ReleaseRequested", Releasing, 0, "Execute unlock"},
	// The document leaves the two last actions to the reader.
	{Reconnecting, "ReacquireSucceeded", Leader, 0, "Log notice; reset retry state; begin health loop"},
	{Reconnecting, "ReacquireFailed", Follower, '¹', "Emit on_lost; schedule attempt"},
	{Reconnecting, "GraceExpired", Follower, '¹', "Emit on_lost; schedule attempt"},
	{Reconnecting, "StopRequested", Stopped, 0, "Close connection; emit on_stopped"},
	{Releasing, "ReleaseSucceeded", Stopped, '²', "Emit on_released; close connection"},
	{Releasing, "ReleaseFailed / DbError", Stopped, 0, "Emit on_error; close connection"},
}

// phrases gives the document's words for actions; those of the engine's own
// (sleeping, logging a failure) have none.
var phrases = map[string][]Action{
	"open connection":            {OpenConnection},
	"close connection":           {CloseConnection},
	"reconnect":                  {Reconnect},
	"attempt reconnect":          {Reconnect},
	"start grace timer":          {StartGrace},
	"schedule immediate attempt": {ScheduleAttempt},
	"schedule next attempt":      {ScheduleAttempt},
	"schedule attempt":           {ScheduleAttempt},
	"compute backoff delay":      {ComputeBackoff},
	"execute lock":               {TryLock},
	"execute unlock":             {Unlock},
	"reset retry state":          {ResetRetry},
	"begin health loop":          {BeginHealth},
	"log notice":                 {LogRecovered},
	"emit on_acquired":           {EmitAcquired},
	"emit on_acquire_failed":     {EmitAcquireFailed},
	"emit on_lost":               {EmitLost},
	"emit on_released":           {EmitReleased},
	"emit on_error":              {EmitError},
	"emit on_stopped":            {EmitStopped},
	"log warning":                nil,
	"sleep":                      nil,
}

func parse(t *testing.T, text string) []Action {
	t.Helper()
	var actions []Action
	for phrase := range strings.SplitSeq(strings.ToLower(text), ";") {
		phrase = strings.TrimSpace(phrase)
		meaning, known := phrases[phrase]
		if !known && phrase != "" {
			t.Fatalf("no action is known as %q", phrase)
		}
		actions = append(actions, meaning...)
	}
	return actions
}

// expected is what the document, its footnotes and the two deliberate deviations
// say about a pair of state and input.
func expected(t *testing.T, from State, input Input, policy Policy) (State, []Action, bool) {
	t.Helper()
	i := slices.IndexFunc(document, func(l line) bool {
		return l.from == from && slices.Contains(strings.Split(l.inputs, " / "), input.String())
	})
	if i < 0 {
		return from, nil, false
	}
	to, note, actions := document[i].to, document[i].note, parse(t, document[i].actions)

	if note == '³' && !policy.Grace { // "falls through directly to FOLLOWER¹, emitting on_lost"
		to, note, actions = Follower, '¹', parse(t, "emit on_lost; close connection; reconnect; schedule attempt")
	}
	if from == Acquiring && input == DbError { // deviation: nothing was held, so nothing is lost or broken
		actions = parse(t, "emit on_acquire_failed; emit on_error; compute backoff delay; schedule attempt")
	}
	if note == '¹' && !policy.AutoReacquire {
		to = Stopped
	}
	if goesOn := policy.SteppingDown && policy.AutoReacquire; goesOn && from == Releasing {
		to = Follower
		if note == '²' {
			actions = parse(t, "emit on_released; schedule attempt")
		} else { // deviation: on a new session instead of stopping for ever
			actions = append(actions, Reconnect, ScheduleAttempt)
		}
	}
	if to == Stopped {
		actions = stopping(actions)
	}
	return to, actions, true
}

// stopping is what becomes of actions on the way into Stopped: no action is begun,
// the connection is closed, and on_stopped comes last.
func stopping(actions []Action) []Action {
	actions = slices.DeleteFunc(actions, func(a Action) bool {
		return slices.Contains([]Action{Reconnect, ScheduleAttempt, ComputeBackoff, CloseConnection, EmitStopped}, a)
	})
	return append(actions, CloseConnection, EmitStopped)
}

func policies() []Policy {
	var all []Policy
	for bits := range 8 {
		all = append(all, Policy{AutoReacquire: bits&1 != 0, Grace: bits&2 != 0, SteppingDown: bits&4 != 0})
	}
	return all
}

func TestEveryStateAndInputFollowsTheDocument(t *testing.T) {
	for _, from := range states() {
		for _, input := range inputs() {
			for _, policy := range policies() {
				to, actions, ok := Step(from, input, policy)
				wantTo, wantActions, wantOK := expected(t, from, input, policy)
				name := fmt.Sprintf("%s × %s %+v", from, input, policy)
				if to != wantTo || ok != wantOK {
					t.Errorf("%s: got %s, %v; want %s, %v", name, to, ok, wantTo, wantOK)
				}
				if !slices.Equal(slices.Sorted(slices.Values(actions)), slices.Sorted(slices.Values(wantActions))) {
					t.Errorf("%s: got the actions %v, want %v", name, actions, wantActions)
				}
				if !slices.Equal(events(actions), events(wantActions)) {
					t.Errorf("%s: got the events %v, want %v in this order", name, events(actions), events(wantActions))
				}
			}
		}
	}
}

// events are the actions that callbacks see.
func events(actions []Action) []Action {
	return slices.DeleteFunc(slices.Clone(actions), func(a Action) bool { return a < EmitAcquired })
}

func TestRowsExcludeEachOther(t *testing.T) {
	used := make([]bool, len(Table))
	for _, from := range states() {
		for _, input := range inputs() {
			for _, policy := range policies() {
				var matching []int
				for i, row := range Table {
					if row.From == from && row.Input == input && row.When.holds(policy) {
						matching = append(matching, i)
						used[i] = true
					}
				}
				if len(matching) > 1 {
					t.Errorf("%s × %s %+v: the rows %v match", from, input, policy, matching)
				}
			}
		}
	}
	for i, row := range Table {
		if !used[i] {
			t.Errorf("row %d never matches: %+v", i, row)
		}
	}
}

// Invariant 5, seen from here: an election that holds a role does not try to
// take it. And callbacks can be paired: after on_acquired comes an end of that
// holding before the next on_acquired.
func TestHoldingElectionNeverAcquires(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := Policy{AutoReacquire: rapid.Bool().Draw(t, "reacquire"), Grace: rapid.Bool().Draw(t, "grace")}
		state, holding := Stopped, false
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			input := rapid.SampledFrom(inputs()).Draw(t, "input")
			if input == ReleaseRequested || input == StopRequested {
				policy.SteppingDown = input == ReleaseRequested
			}
			to, actions, ok := Step(state, input, policy)
			if !ok {
				if to != state || actions != nil {
					t.Fatalf("%s × %s was rejected and yet gave %s, %v", state, input, to, actions)
				}
				continue
			}
			for _, action := range actions {
				switch action {
				case EmitAcquired:
					if holding {
						t.Fatalf("%s × %s: acquired twice", state, input)
					}
					holding = true
				case EmitLost, EmitReleased, EmitStopped:
					holding = false
				case EmitError:
					holding = holding && state != Releasing // a failed release gives the session up
				case TryLock:
					if holding {
						t.Fatalf("%s × %s: tries to take what it holds", state, input)
					}
				}
			}
			if to == Leader && !holding {
				t.Fatalf("%s × %s: leads without having acquired", state, input)
			}
			if to == Stopped && holding {
				t.Fatalf("%s × %s: stopped without an end of the holding", state, input)
			}
			state = to
		}
	})
}

func TestStatesHaveNames(t *testing.T) {
	want := []string{"stopped", "follower", "acquiring", "leader", "reconnecting", "releasing"}
	for i, state := range states() {
		text, err := state.MarshalText()
		if state.String() != want[i] || string(text) != want[i] || err != nil {
			t.Errorf("state %d: %s, %q, %v", i, state, text, err)
		}
	}
	if got := State(99).String(); got != "state(99)" {
		t.Error(got)
	}
	if got := Action(99).String(); got != "action(99)" {
		t.Error(got)
	}
	if got := Input(99).String(); got != "input(99)" {
		t.Error(got)
	}
	names := map[string]bool{}
	for _, input := range inputs() {
		names[input.String()] = true
	}
	for _, l := range document {
		for name := range strings.SplitSeq(l.inputs, " / ") {
			if !names[name] {
				t.Errorf("no input is called %s", name)
			}
		}
	}
	if len(names) != 14 {
		t.Errorf("%d inputs, the document has 14", len(names))
	}
}

// states lists every state.
func states() []State {
	return []State{Stopped, Follower, Acquiring, Leader, Reconnecting, Releasing}
}

// inputs lists every input.
func inputs() []Input {
	all := make([]Input, len(inputNames))
	for i := range all {
		all[i] = Input(i)
	}
	return all
}
