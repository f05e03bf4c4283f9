package cli

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/service"
)

// A free role is acquired and released again; a held role is not acquired.
func TestAcquireOfHeldRoleFails(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	last := int64(0)
	for range 2 {
		got := invoke(t, place.with("acquire", "--role", "billing", "-o", "json")...).want(t, console.ExitDone)
		lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
		if len(lines) != 2 {
			t.Fatalf("printed %s", got.stdout)
		}
		var acquired service.EventRecord
		result{stdout: lines[0]}.decode(t, &acquired)
		if acquired.Term == nil || *acquired.Term <= last {
			t.Fatalf("%s, want a term after %d", lines[0], last)
		}
		last = *acquired.Term
		for i, kind := range []string{"acquired", "released"} {
			var e service.EventRecord
			result{stdout: lines[i]}.decode(t, &e)
			if string(e.Event) != kind || e.Term == nil || *e.Term != last || e.Role != "billing" {
				t.Errorf("%s, want %s of term %d", lines[i], kind, last)
			}
		}
	}

	holder := launch(t, place.with("acquire", "--role", "billing", "--hold", "--name", "one", "-o", "json")...)
	led := holder.await("acquired").term()
	got := invoke(t, place.with("acquire", "--role", "billing")...).want(t, console.ExitNotAcquired)
	if got.stderr != fmt.Sprintf("tenure: billing is held by one (term %d)\n", led) {
		t.Errorf("standard error: %q", got.stderr)
	}
	if strings.Contains(got.stdout, " acquired ") {
		t.Errorf("standard output: %q", got.stdout)
	}

	holder.signal(syscall.SIGTERM)
	if released := holder.await("released"); released.term() != led || led <= last {
		t.Errorf("%v", released)
	}
	if code := holder.exit(); code != console.ExitDone {
		t.Errorf("exit code %d", code)
	}
}

// Any program that has the lock holds the role.
func TestAcquireFailsWhileForeignProgramHoldsLock(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	pgtest.Exec(t, place.server.Conn(t), "SELECT pg_advisory_lock(41, 42)")
	got := invoke(t, place.with("acquire", "--key1", "41", "--key2", "42")...).want(t, console.ExitNotAcquired)
	if got.stderr != "tenure: key:41:42 is held by another program\n" {
		t.Errorf("standard error: %q", got.stderr)
	}
	invoke(t, place.with("acquire", "--key1", "42", "--key2", "41")...).want(t, console.ExitDone)
}

// A loss of the term is an error, a request to step down is not.
func TestHoldEndsWithTheTerm(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	holder := launch(t, place.with("acquire", "--role", "billing", "--hold", "-o", "json")...)
	holder.await("acquired")
	place.terminate(t, "billing")
	holder.await("lost")
	if code := holder.exit(); code != console.ExitDatabase || !strings.Contains(holder.log(), "tenure: billing was lost: ") {
		t.Errorf("exit code %d, %s", code, holder.log())
	}

	holder = launch(t, place.with("acquire", "--role", "billing", "--hold", "-o", "json")...)
	holder.await("acquired")
	invoke(t, place.with("step-down", "--role", "billing", "--timeout", "2s")...).want(t, console.ExitDone)
	holder.await("released")
	if code := holder.exit(); code != console.ExitDone {
		t.Errorf("exit code %d, %s", code, holder.log())
	}
}
