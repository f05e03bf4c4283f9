package cli

import (
	"encoding/json"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/roles"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

func (p *process) nextChange() roles.ChangeRecord {
	p.t.Helper()
	line, ok := p.line()
	if !ok {
		p.t.Fatalf("ended; standard error:\n%s", p.log())
	}
	var change roles.ChangeRecord
	if err := json.Unmarshal([]byte(line), &change); err != nil {
		p.t.Fatalf("%v in %q", err, line)
	}
	return change
}

// The command shows the leader first, then every change, by notification long
// before the next poll is due.
func TestObserveReportsChangesByNotification(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	one := place.run(t, "--role", "billing", "--role", "other", "--name", "one")
	one.await("acquired")
	one.await("acquired")
	begun := time.Now()
	const check = time.Hour
	observer := launch(t, place.with("observe", "--role", "billing", "-o", "json", "--check-interval", check.String())...)
	first := observer.nextChange()
	if first.Role != "billing" || first.Previous != nil || first.Leader == nil || first.Leader.NodeName != "one" {
		t.Errorf("first: %+v", first)
	}
	observer.awaitListening(t, place)
	one.signal(syscall.SIGTERM)
	change := observer.nextChange()
	if change.Leader != nil || change.Previous == nil || change.Previous.Term != first.Leader.Term {
		t.Errorf("vacant: %+v", change)
	}
	place.run(t, "--role", "billing", "--name", "two").await("acquired")
	change = observer.nextChange()
	if change.Previous != nil || change.Leader == nil || change.Leader.NodeName != "two" || change.Leader.Term <= first.Leader.Term {
		t.Errorf("next: %+v", change)
	}
	if time.Since(begun) > check {
		t.Error("no change came by notification")
	}
	observer.signal(syscall.SIGINT)
	if code := observer.exit(); code != console.ExitDone {
		t.Errorf("exit code %d", code)
	}
}

// awaitListening waits until the process listens.
func (p *process) awaitListening(t *testing.T, place place) {
	t.Helper()
	pgtest.Await(t, patience, place.server.Conn(t), `
SELECT EXISTS (
    SELECT FROM pg_stat_activity
    WHERE application_name = 'tenure listen' AND state = 'idle' AND query = 'LISTEN "' || $1 || '_tenure_nodes"'
)`, place.schema)
}

// If a leader dies while no node can report it, the change is shown when its
// lease has expired.
func TestObservePollsWithoutNotification(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	one := place.run(t, "--role", "billing", "--lease", "4s")
	one.await("acquired")
	observer := launch(t, place.with("observe", "--key", "3", "--key", "4", "--check-interval", "0.05")...)
	all := launch(t, place.with("observe", "-o", "json", "--check-interval", "0.05")...)
	all.nextChange()
	one.signal(syscall.SIGKILL)
	if change := all.nextChange(); change.Leader != nil || change.Role != "billing" {
		t.Errorf("%+v", change)
	}
	observer.signal(syscall.SIGTERM)
	if line, ok := observer.line(); ok {
		t.Errorf("an observer of other roles says %s", line)
	}
}
