package cli

import (
	"strings"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/roles"
	"github.com/exactly-one/tenure/internal/program/console"
)

// The command prints the roles after every change, and ends gracefully.
func TestStatusWatchPrintsEveryChange(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	one := place.run(t, "--role", "billing", "--name", "one")
	one.await("acquired")
	watch := launch(t, place.with("status", "--watch", "-o", "json")...)
	await := func(leader string) {
		t.Helper()
		for {
			line, ok := watch.line()
			if !ok {
				t.Fatalf("the watch ended: %s", watch.log())
			}
			var shown roles.StatusRecord
			result{stdout: line}.decode(t, &shown)
			if len(shown.Roles) != 1 {
				t.Fatalf("%+v", shown)
			}
			led := shown.Roles[0].Leader
			if led == nil && leader == "" || led != nil && led.NodeName == leader {
				return
			}
		}
	}
	await("one")
	one.signal(syscall.SIGTERM)
	one.exit()
	await("")
	place.run(t, "--role", "billing", "--name", "two").await("acquired")
	await("two")
	watch.signal(syscall.SIGINT)
	if code := watch.exit(); code != console.ExitDone {
		t.Errorf("exit code %d: %s", code, watch.log())
	}
}

// Text shows the time of the read.
func TestStatusWatchTextHasTheTime(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	place.run(t, "--role", "billing", "--name", "one").await("acquired")
	watch := launch(t, place.with("status", "--watch")...)
	summary, _ := watch.line()
	asOf, _ := watch.line()
	watch.line()
	header, _ := watch.line()
	row, ok := watch.line()
	if !ok || summary != "The role billing is led; 1 node is alive." || !strings.HasPrefix(asOf, "as of ") || !strings.HasPrefix(header, "ROLE ") || !strings.HasPrefix(row, "billing  led   ") {
		t.Errorf("%q, %q, %q, %q", summary, asOf, header, row)
	}
	watch.signal(syscall.SIGINT)
	if code := watch.exit(); code != console.ExitDone {
		t.Errorf("exit code %d: %s", code, watch.log())
	}
}
