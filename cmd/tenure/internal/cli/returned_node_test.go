package cli

import (
	"strings"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
)

// A node crashes, comes back under its name and ends well. It leaves no dead node behind.
func TestReturnedNodeThatLeftIsNotDead(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	place.run(t, "--role", "billing", "--name", "other").await("acquired")
	counts := func() record.Counts {
		var found record.Cluster
		invoke(t, place.with("cluster", "status", "-o", "json")...).want(t, console.ExitDone).decode(t, &found)
		return found.Counts
	}
	crashed := place.run(t, "--role", "billing", "--name", "worker")
	crashed.await("acquire_failed")
	if err := crashed.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the death", func() bool { return counts().Dead == 1 })
	back := place.run(t, "--role", "billing", "--name", "worker")
	back.await("acquire_failed")
	back.signal(syscall.SIGTERM)
	if code := back.exit(); code != console.ExitDone {
		t.Fatalf("exit code %d: %s", code, back.log())
	}
	if c := counts(); c.Dead != 0 || c.Replaced != 1 || c.Active != 1 {
		t.Errorf("%+v; want one active node, and one that came back", c)
	}
	if text := invoke(t, place.with("cluster", "status")...).stdout; strings.Contains(text, "1 node is dead") {
		t.Errorf("%s", text)
	}
}
