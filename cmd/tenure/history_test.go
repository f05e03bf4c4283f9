package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres"
)

// TestHistory: each term is shown with its end, and each change of a node.
func TestHistory(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	one := place.run(t, "--role", "billing", "--name", "one")
	one.await("acquired")
	two := place.run(t, "--role", "billing", "--name", "two")
	two.await("acquire_failed")
	backend, err := postgres.New(place.server.DSN(), postgres.Config{Schema: place.schema})
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	wide := strings.Repeat("🦄", 200)
	request := tenure.Request{Kind: tenure.RequestStepDown, Role: "billing", By: wide + "\x1b[2J"}
	if err := backend.Request(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	two.await("acquired")
	two.signal(syscall.SIGKILL)
	one.await("acquired")

	var seen termHistoryRecord
	invoke(t, place.with("history", "-o", "json", "--since", "1h")...).want(t, exitDone).decode(t, &seen)
	if len(seen.Terms) != 3 {
		t.Fatalf("%+v; want three terms", seen.Terms)
	}
	for i, want := range []termRecord{
		{Term: 3, NodeName: "one"},
		{Term: 2, NodeName: "two", Reason: string(tenure.EndCrashed)},
		{Term: 1, NodeName: "one", Reason: string(tenure.EndSteppedDown)},
	} {
		got := seen.Terms[i]
		if got.Role != "billing" || got.Term != want.Term || got.NodeName != want.NodeName || got.Reason != want.Reason ||
			time.Time(got.Ended).IsZero() != (i == 0) || (got.Vacant == nil) != (i == 2) {
			t.Errorf("%+v; want %+v", got, want)
		}
	}
	if seen.Terms[2].By != request.By {
		t.Errorf("%q asked for the step-down; want %q", seen.Terms[2].By, request.By)
	}
	if text := invoke(t, place.with("history")...).want(t, exitDone).stdout; strings.Contains(text, "\x1b") || !strings.Contains(text, wide) {
		t.Errorf("who asked is not told, or moves the cursor:\n%q", text)
	}

	var changes nodeHistoryRecord
	invoke(t, place.with("history", "--nodes", "--node", seen.Terms[1].Node.String(), "-o", "json")...).want(t, exitDone).decode(t, &changes)
	if n := len(changes.Changes); n < 2 || changes.Changes[0].Status != "dead" || changes.Changes[n-1].Previous != "" {
		t.Errorf("%+v; want them to end in death", changes.Changes)
	}
	text := invoke(t, place.with("history", "--role", "billing", "--node", "one", "-n", "1")...).want(t, exitDone).stdout
	if lines := strings.Split(strings.TrimSpace(text), "\n"); len(lines) != 2 || !strings.Contains(lines[1], "billing") {
		t.Errorf("%s", text)
	}
}

// TestHistoryRefuses bad input in one line.
func TestHistoryRefuses(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	for arguments, want := range map[string]string{
		"--limit 0":              "the least is 1",
		"--since yesterday":      "a time is written like",
		"--since 1h --until 2h":  "--until is before --since",
		"--nodes --role billing": "give one of them",
	} {
		got := invoke(t, place.with(append([]string{"history"}, strings.Fields(arguments)...)...)...).want(t, exitUsage)
		if !strings.Contains(got.stderr, want) || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s: %q; want it to say %q", arguments, got.stderr, want)
		}
	}
}
