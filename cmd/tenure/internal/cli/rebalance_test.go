package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	clustercli "github.com/exactly-one/tenure/cmd/tenure/internal/cli/cluster"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/postgres"
)

// sharing are members of this process that share roles.
type sharing struct {
	place   place
	backend *postgres.Backend
}

func newSharing(t *testing.T) *sharing {
	t.Helper()
	p := newPlace(t)
	return &sharing{p, p.installation(t).Backend}
}

// join creates a member that shares four roles, some of which require labels.
func (s *sharing) join(t *testing.T, name string, requires map[string]string) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	m := postgrestest.Join(t, s.backend, tenure.Config{Name: name, Logger: quiet}, cluster.Config{})
	roles := cluster.Partitions("part", 4)
	roles[3].Requires = requires
	spread, err := m.Spread("parts", cluster.SpreadConfig{Roles: roles, MoveDelay: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	postgrestest.Run(t, func(ctx context.Context) error {
		return spread.Run(ctx, func(ctx context.Context, _ *tenure.Term) error {
			<-ctx.Done()
			return nil
		})
	})
}

// plan returns the JSON output of "tenure rebalance --dry-run".
func (s *sharing) plan(t *testing.T) clustercli.PlanRecord {
	t.Helper()
	var plan clustercli.PlanRecord
	invoke(t, s.place.with("rebalance", "--dry-run", "-o", "json")...).want(t, console.ExitDone).decode(t, &plan)
	return plan
}

// awaitEven waits until each of two nodes leads two roles.
func (s *sharing) awaitEven(t *testing.T) (plan clustercli.PlanRecord) {
	t.Helper()
	testkit.AwaitNil(t, patience, func() error {
		plan = s.plan(t)
		if len(plan.Moves) == 0 && len(plan.Vacant) == 0 && len(plan.Nodes) == 2 && plan.Nodes[0].Before == 2 && plan.Nodes[1].Before == 2 {
			return nil
		}
		return fmt.Errorf("not even: %+v", plan)
	})
	return plan
}

// prefer makes each role prefer the node that does not lead it.
func (s *sharing) prefer(t *testing.T) {
	t.Helper()
	leaders, err := s.backend.Leaders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := map[string]string{"one": "two", "two": "one"}
	var roles []map[string]string
	for _, leader := range leaders {
		roles = append(roles, map[string]string{"role": leader.Role, "preferred_node": other[leader.NodeName]})
	}
	document, err := json.Marshal(roles)
	if err == nil {
		err = s.backend.SaveSpread(t.Context(), "parts", document, uuid.New())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The command shows which roles should move, and moves them if it is confirmed.
func TestRebalanceMovesRoles(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	s := newSharing(t)
	s.join(t, "one", nil)
	s.join(t, "two", nil)
	even := s.awaitEven(t)
	if text := invoke(t, s.place.with("rebalance", "--dry-run")...).want(t, console.ExitDone).stdout; !strings.HasPrefix(text, "every role is where it should be\n") {
		t.Errorf("%s", text)
	}
	s.prefer(t)
	plan := s.plan(t)
	if len(plan.Moves) != 4 || len(plan.Unplaced) != 0 || !slices.Equal(plan.Nodes, even.Nodes) {
		t.Fatalf("%+v", plan)
	}
	if again := s.plan(t); !slices.Equal(again.Moves, plan.Moves) {
		t.Errorf("a dry run changed something: %+v", again)
	}
	got := invoke(t, s.place.with("rebalance", "--spread", "parts", "--yes")...).want(t, console.ExitDone)
	for _, want := range []string{"4 roles move\n\nNODE ", "\n\nROLE    FROM  TO\npart/0  ", "4 of 4 roles moved\n"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("no %q in\n%s", want, got.stdout)
		}
	}
	s.prefer(t) // the other way round
	steps := launch(t, s.place.with("rebalance", "--yes", "-o", "json")...)
	if line, _ := steps.line(); !strings.HasPrefix(line, `{"moves":[{"role":"part/0","from":"`) {
		t.Errorf("the plan is %s", line)
	}
	all := steps.rest()
	if code := steps.exit(); code != console.ExitDone {
		t.Fatalf("exit code %d: %s", code, steps.log())
	}
	if last := all[len(all)-1]; fmt.Sprint(last) != "map[moved:4 total:4]" {
		t.Errorf("the last step is %v", last)
	}
}

// A role that no live node may lead is shown with the reason.
func TestUnplacedRoleIsShownWithReason(t *testing.T) {
	t.Parallel()
	s := newSharing(t)
	s.join(t, "one", map[string]string{"zone": "eu"})
	var plan clustercli.PlanRecord
	for deadline := time.Now().Add(patience); len(plan.Unplaced) == 0 && time.Now().Before(deadline); {
		plan = s.plan(t)
	}
	if len(plan.Unplaced) != 1 || plan.Unplaced[0].Role != "part/3" || !strings.Contains(plan.Unplaced[0].Reason, "zone=eu") {
		t.Errorf("%+v", plan)
	}
	seen := s.place.cluster(t)
	if !slices.Equal(seen.Unplaced, plan.Unplaced) {
		t.Errorf("status: %+v", seen.Unplaced)
	}
	for _, command := range [][]string{{"rebalance", "--dry-run"}, {"cluster", "status"}} {
		if text := invoke(t, s.place.with(command...)...).want(t, console.ExitDone).stdout; !strings.Contains(text, "\n\nUNPLACED  REASON\npart/3    ") {
			t.Errorf("%v:\n%s", command, text)
		}
	}
}

// Each error is one line with exit code 2.
func TestRebalanceRejectsBadInput(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	invoke(t, place.with("migrate")...).want(t, console.ExitDone)
	for want, args := range map[string][]string{
		"cannot ask for confirmation": {},
		"contradict":                  {"--yes", "--dry-run"},
		"no such spread":              {"--dry-run", "--spread", "nothing"},
		"takes no arguments":          {"parts"},
	} {
		got := invoke(t, place.with(append([]string{"rebalance"}, args...)...)...).want(t, console.ExitUsage)
		if strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, want) || got.stdout != "" {
			t.Errorf("%q: %q, want %s", args, got.stderr, want)
		}
	}
	if text := invoke(t, place.with("rebalance", "--yes")...).want(t, console.ExitDone).stdout; text != "no node shares roles\n" {
		t.Errorf("%q", text)
	}
}
