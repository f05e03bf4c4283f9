package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// A command that never ends fails its part, which names it, and the next step runs.
func TestStepThatHangsIsEnded(t *testing.T) {
	out := &bytes.Buffer{}
	r := &runner{root: root, out: out, took: map[string]time.Duration{}, limit: 100 * time.Millisecond}
	hangs := part{name: "hangs", steps: []step{
		{title: "for ever", command: []string{"sh", "-c", "sleep 1000 & wait"}},
		{title: "short", command: []string{"echo", "the next step"}},
	}}
	if err := r.run(t.Context(), hangs); err == nil {
		t.Error("the part did not fail, want a failure")
	}
	for _, want := range []string{"failed: for ever: it took longer than 100ms", "\nthe next step\n", "again: make deep SLICE=hangs"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
}
