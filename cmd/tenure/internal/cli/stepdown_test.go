package cli

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/roles"
	"github.com/exactly-one/tenure/internal/program/console"
)

// stepDown returns the JSON output of "tenure step-down".
func (p place) stepDown(t *testing.T, args ...string) roles.StepDownRecord {
	t.Helper()
	var record roles.StepDownRecord
	args = append([]string{"step-down", "-o", "json", "--role", "billing"}, args...)
	invoke(t, p.with(args...)...).want(t, console.ExitDone).decode(t, &record)
	return record
}

// Another node leads afterwards, or the same node again if there is no other.
func TestStepDownChangesLeader(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	one := place.run(t, "--role", "billing", "--name", "one")
	one.await("acquired")
	record := place.stepDown(t)
	if record.Previous.NodeName != "one" || record.Leader == nil ||
		record.Leader.NodeName != "one" || record.Leader.Term <= record.Previous.Term {
		t.Errorf("alone: %+v -> %+v", record.Previous, record.Leader)
	}
	one.await("acquired")

	two := place.run(t, "--role", "billing", "--name", "two")
	two.await("acquire_failed")
	before := record.Leader
	record = place.stepDown(t)
	if record.Previous.Term != before.Term || record.Leader == nil || record.Leader.NodeName != "two" || record.Leader.Term <= before.Term {
		t.Errorf("two nodes: %+v -> %+v", record.Previous, record.Leader)
	}
	one.await("released")
	text := invoke(t, place.with("step-down", "--role", "billing")...).want(t, console.ExitDone).stdout
	if want := fmt.Sprintf("one leads billing, term %d\n", place.status(t).Roles[0].Leader.Term); text != want {
		t.Errorf("text: %q, want %q", text, want)
	}
}

// TestStepDownPassesHungHost: a host that accepts connections and never answers, listed
// before the primary, keeps no request to step down from the primary.
func TestStepDownPassesHungHost(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	place.run(t, "--role", "billing", "--name", "one").await("acquired")
	two := place.run(t, "--role", "billing", "--name", "two")
	two.await("acquire_failed")
	host, port, err := net.SplitHostPort(listenSilently(t))
	if err != nil {
		t.Fatal(err)
	}
	dsn := fmt.Sprintf("host=%s,%s port=%s,%d user=postgres dbname=postgres connect_timeout=60", host, place.server.Host, port, place.server.Port)
	var record roles.StepDownRecord
	invoke(t, "step-down", "--role", "billing", "-o", "json", "--dsn", dsn, "--schema", place.schema).want(t, console.ExitDone).decode(t, &record)
	if record.Previous.NodeName != "one" || record.Leader == nil || record.Leader.NodeName != "two" {
		t.Errorf("%+v -> %+v", record.Previous, record.Leader)
	}
	two.await("acquired")
}

// The named node leads next, by name and by id.
func TestHandOverReachesNamedNode(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	names := []string{"one", "two", "three", "four"}
	nodes := map[string]*process{}
	ids := map[string]string{}
	for i, name := range names {
		nodes[name] = place.run(t, "--role", "billing", "--name", name)
		kind := "acquire_failed"
		if i == 0 {
			kind = "acquired"
		}
		ids[name], _ = nodes[name].await(kind)["node"].(string)
	}
	for i, target := range []string{"four", "two", "three"} {
		to := target
		if i == 1 {
			to = ids[target]
		}
		record := place.stepDown(t, "--to", to)
		if record.Leader == nil || record.Leader.NodeName != target || record.Leader.Term <= record.Previous.Term {
			t.Errorf("to %s: %+v -> %+v", to, record.Previous, record.Leader)
		}
		nodes[target].await("acquired")
	}
	got := invoke(t, place.with("step-down", "--role", "billing", "--to", "thre")...).want(t, console.ExitUsage)
	if !strings.Contains(got.stderr, `did you mean "three"?`) {
		t.Errorf("%q", got.stderr)
	}
	if record := place.stepDown(t, "--to", "three"); record.Leader.Term != record.Previous.Term {
		t.Errorf("to the leader itself: %+v -> %+v", record.Previous, record.Leader)
	}
}

// A handover that cannot be done is refused, and nothing changes.
func TestInvalidHandOverIsRefused(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	invoke(t, place.with("migrate")...).want(t, console.ExitDone)
	got := invoke(t, place.with("step-down", "--role", "billing")...).want(t, console.ExitUsage)
	if !strings.Contains(got.stderr, "no node has ever been a candidate for the role: billing") {
		t.Errorf("%s", got.stderr)
	}

	leader := place.run(t, "--role", "billing", "--name", "leader")
	leader.await("acquired")
	led := place.status(t).Roles[0].Leader
	for range 2 {
		place.run(t, "--role", "billing", "--name", "twin").await("acquire_failed")
	}
	for to, want := range map[string]string{
		"stranger":                             "no such node",
		"00000000-0000-0000-0000-000000000001": "no such node",
		"twin":                                 "2 nodes have the name",
	} {
		got := invoke(t, place.with("step-down", "--role", "billing", "--to", to)...).want(t, console.ExitUsage)
		if !strings.Contains(got.stderr, want) || got.stdout != "" {
			t.Errorf("%s: %q, %q", to, got.stdout, got.stderr)
		}
	}
	if status := place.status(t); led == nil || status.Roles[0].Leader == nil || status.Roles[0].Leader.Term != led.Term {
		t.Errorf("%+v", status.Roles[0])
	}
}

// A leader that does not campaign again leaves the role vacant, and the command
// says so.
func TestStepDownReportsVacantRole(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	node := place.run(t, "--role", "billing", "--no-auto-reacquire")
	node.await("acquired")
	record := place.stepDown(t, "--timeout", "1s")
	if record.Previous == nil || record.Leader != nil {
		t.Errorf("%+v -> %+v", record.Previous, record.Leader)
	}
	node.await("stopped")
	if code := node.exit(); code != console.ExitDone {
		t.Errorf("exit code %d", code)
	}
}

// The command that a container runs before it stops ends the term of its
// node and of no other.
func TestStepDownOfOwnNodeEndsItsTermOnly(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	first := place.run(t, "--role", "billing", "--name", "one")
	led := first.await("acquired").term()
	second := place.run(t, "--role", "billing", "--name", "two")
	second.await("acquire_failed")
	stepDown := func(name string, code int) result {
		t.Helper()
		return invokeWith(t, []string{"TENURE_NODE_NAME=" + name}, place.with("step-down", "--role", "billing", "--own")...).want(t, code)
	}
	if got := stepDown("two", console.ExitDone); !strings.Contains(got.stdout, fmt.Sprintf("one leads billing, term %d", led)) {
		t.Errorf("%q", got.stdout)
	}
	stepDown("one", console.ExitDone)
	if got := second.await("acquired").term(); got <= led {
		t.Errorf("term %d after %d", got, led)
	}
	stepDown("", console.ExitUsage)
	if got := invokeWith(t, []string{"TENURE_NODE_NAME=one"}, place.with("step-down", "--role", "nobody", "--own")...).want(t, console.ExitDone); !strings.Contains(got.stdout, "has no leader") {
		t.Errorf("%q", got.stdout)
	}
}
