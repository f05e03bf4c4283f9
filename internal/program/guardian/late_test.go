//go:build linux

package guardian

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A guardian does not start the command if it would have to kill it
// immediately.
func TestGuardianDoesNotStartTooLate(t *testing.T) {
	near, far, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	ran := filepath.Join(t.TempDir(), "ran")
	guardian := exec.Command("/proc/self/exe", CommandName, "/bin/sh", "sh", "-c", "echo 1 > "+ran)
	guardian.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	guardian.ExtraFiles = []*os.File{far}
	err = guardian.Start()
	_ = far.Close()
	if err != nil {
		t.Fatal(err)
	}
	limits := limits{Grace: time.Second, Lead: time.Second, Deadline: now().add(time.Second)}
	if err := errors.Join(send(near, order{Begin: &limits}), near.CloseWrite()); err != nil { // no order extends trust
		t.Error(err)
	}
	var first report
	_ = near.SetReadDeadline(time.Now().Add(patience))
	if err := json.NewDecoder(near).Decode(&first); err != nil {
		t.Error(err)
	}
	_ = near.Close() // it kills what it may have started
	_ = guardian.Wait()
	if first.PID != 0 || first.Begins || !strings.Contains(first.Failed, "the term ended") {
		t.Errorf("invariant 4: the command was started after the time to kill it: %+v", first)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("invariant 4: the command ran after the time to kill it")
	}
}

// A pause between the two readings of the clocks makes the end of trust
// earlier, not later.
func TestDeadlineIsNeverTooLate(t *testing.T) {
	term := &pausedTerm{fakeTerm: newTerm(t, time.Hour)}
	s := &supervisor{term: term}
	if got := s.deadline(); got > term.asked.add(time.Hour) {
		t.Errorf("invariant 4: the end of trust is %v too late", got.sub(term.asked.add(time.Hour)))
	}
}

// pausedTerm is a term whose process pauses when it is asked.
type pausedTerm struct {
	*fakeTerm
	asked moment
}

func (s *pausedTerm) Remaining() time.Duration {
	s.asked = now()
	for now() == s.asked {
	}
	return time.Hour
}

// The processes in the command's group are signaled with the command, and not
// again when it ends.
func TestGroupIsSignaledOnce(t *testing.T) {
	t.Parallel()
	r := begin(t, newTerm(t, time.Hour), `trap 'while ! [ -s asked ]; do sleep 0.01; done; exit 5' TERM
		sh -c 'trap "echo 1 >> asked" TERM; echo 1 > ready; while ! [ -s asked ]; do sleep 0.01; done; for i in $(seq 100); do sleep 0.01; done' &
		while :; do sleep 0.1; done`,
		func(c *Command) { c.Grace = patience })
	r.file("ready")
	close(r.term.stopping)
	r.want(End{Code: 5, Stopped: true})
	if text, err := os.ReadFile(filepath.Join(r.folder, "asked")); err != nil || string(text) != "1\n" {
		t.Errorf("the rest of the group was asked %d times: %v", strings.Count(string(text), "\n"), err)
	}
}
