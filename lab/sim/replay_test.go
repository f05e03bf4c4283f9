package sim

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/steplog"
	"github.com/exactly-one/tenure/internal/steps"
	"github.com/exactly-one/tenure/lab/model/trace"
)

// What the replay alone says of engines and servers that are broken on purpose: the guard
// of the models that their steps break first. The other oracles are off.
var replayed = []struct {
	name   string
	guard  string // begins so
	breaks Schedule
}{
	{"trust measured from the reply", "trust = TRUST - waits", Schedule{Wrap: wrapping(trustFromReply)}},
	{"trust extended before the reply", "done", Schedule{Wrap: wrapping(trustBeforeReply)}},
	{"trust extended by a failed heartbeat", "done", Schedule{Wrap: wrapping(trustFailure)}},
	{"release before the work ends", "sent = RELEASE", Schedule{Wrap: wrapping(releaseEarly)}},
	{"a deadline closes the connection", "work_first", Schedule{Wrap: wrapping(deadlineCloses)}},
	{"no wait on another server", "WAITED", Schedule{Defects: Defects{NoServerLag: true}}},
	{"a wait that begins too early", "WAITED", Schedule{Defects: Defects{WaitEarly: true}}},
	{"a reunion that misses nodes", "WAITED || REUNITED", Schedule{Defects: Defects{NoReunion: true}}},
	{"a reunion without nodes that were found dead", "WAITED || REUNITED", Schedule{Defects: Defects{DeadReunion: true}}},
	{"a reunion on an asynchronous replica", "WAITED, since the standby", Schedule{Defects: Defects{AnyReunion: true}}},
	{"a reunion that trusts the clock of a promoted standby", "after = 0", Schedule{Defects: Defects{AnyClock: true}}},
	{"no wait for the node of the last recorded term", "WAITED", Schedule{Defects: Defects{LastHolder: true}}},
	{"fenced transactions hold nothing off", "ROWFREE", Schedule{Defects: Defects{NoFence: true}}},
	{"terms are counted", "numbers_grow", Schedule{Defects: Defects{CountTerms: true}}},
	{"numbers of terms repeat", "numbers_grow", Schedule{Defects: Defects{RepeatTerms: true}}},
	{"a renewal locks again", "no_stacking", Schedule{Defects: Defects{Relock: true}}},
	{"an installation made under living sessions", "one_leader", Schedule{Defects: Defects{NoInstallationLock: true}}},
}

func TestReplayNamesBrokenRules(t *testing.T) {
	for _, m := range replayed {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			s := m.breaks
			s.Oracles = ModelsOnly
			for s.Seed = 1; s.Seed <= 400; s.Seed++ {
				result := run(t, s)
				if result.Violation == nil {
					continue
				}
				_, says, _ := strings.Cut(result.Violation.What, "requires: ")
				if !strings.HasPrefix(says, m.guard) {
					t.Errorf("seed %d: the replay names %q; want %q\n%v", s.Seed, says, m.guard, result.Violation)
				}
				guard, _, _ := strings.Cut(says, "\n")
				t.Logf("seed %d: %s", s.Seed, guard)
				return
			}
			t.Error("the models allow every step of 400 schedules")
		})
	}
}

// writeSteps stores the history of a run.
func (r Result) writeSteps(t *testing.T, path string) {
	file, err := os.Create(path)
	if err == nil {
		err = errors.Join(steplog.Write(file, steplog.Header{Frozen: r.Frozen}, r.Steps), file.Close())
	}
	if err != nil {
		t.Error(err)
	}
}

// TestStoredHistoryIsReplayed stores the steps of a run, and changes one.
func TestStoredHistoryIsReplayed(t *testing.T) {
	s := scheduled(1)
	s.Steps = true
	result := run(t, s)
	var stored bytes.Buffer
	if err := steplog.Write(&stored, steplog.Header{}, result.Steps); err != nil {
		t.Fatal(err)
	}
	text := stored.String()
	c, err := trace.Replay(strings.NewReader(text))
	if err != nil || c.Steps != len(result.Steps) || c.Steps < 500 {
		t.Errorf("the replay of %d steps has %d steps and the error %v", len(result.Steps), c.Steps, err)
	}
	wrong := strings.Replace(text, string(steps.EndsTerm), string(steps.GivesUp), 1)
	if _, err := trace.Replay(strings.NewReader(wrong)); err == nil {
		t.Error("the replay allows a history in which a session leads after it was given up")
	}
}
