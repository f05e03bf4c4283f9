package cli

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/cluster"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
)

// twins are two live nodes with one name, and a dead one.
func twins(t *testing.T, p place) (dead record.Node, alive []record.Node) {
	t.Helper()
	killed := p.run(t, "--role", "billing", "--name", "twin")
	killed.await("acquired")
	for range 2 {
		p.run(t, "--role", "billing", "--name", "twin").await("acquire_failed")
	}
	p.awaitCluster(t, "together", func(c record.Cluster) bool { // a node that starts after the last heartbeat of another replaces it
		first := slices.MinFunc(c.Nodes, func(a, b record.Node) int { return time.Time(a.StartedAt).Compare(time.Time(b.StartedAt)) })
		return !slices.ContainsFunc(c.Nodes, func(n record.Node) bool { return time.Time(n.StartedAt).After(time.Time(first.LastHeartbeat)) })
	})
	killed.signal(syscall.SIGKILL)
	seen := p.awaitCluster(t, "one death", func(c record.Cluster) bool { return c.Counts.Dead == 1 })
	for _, node := range seen.Nodes {
		if node.Status == tenure.StatusDead {
			dead = node
		} else {
			alive = append(alive, node)
		}
	}
	return dead, alive
}

// The command finds a node by its id, by the beginning of its id, and by its
// name.
func TestNodeShowFindsNodeByIDAndName(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	place.run(t, "--role", "billing", "--name", "api-1").await("acquired")
	node := nodeNamed(t, place.cluster(t), "api-1")
	for _, text := range []string{node.ID.String(), strings.ToUpper(node.ID.String()), node.ID.String()[:4], "api-1"} {
		var seen record.Node
		invoke(t, place.with("node", "show", text, "-o", "json")...).want(t, console.ExitDone).decode(t, &seen)
		if seen.ID != node.ID || !slices.Equal(seen.Leads, []string{"billing"}) {
			t.Errorf("%q: %+v", text, seen)
		}
	}
	text := invoke(t, place.with("node", "show", "api-1")...).want(t, console.ExitDone).stdout
	for _, want := range []string{"id              " + node.ID.String(), "status          active", "leads           billing", "lease           10s"} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for text, want := range map[string]string{
		"api-2":                                `did you mean "api-1"?`,
		"zzz":                                  "the living nodes are api-1",
		node.ID.String()[:3]:                   "the living nodes are api-1",
		node.ID.String()[:35]:                  "",
		"00000000-0000-0000-0000-000000000000": "no such node",
	} {
		got := invoke(t, place.with("node", "show", text)...)
		if want == "" {
			got.want(t, console.ExitDone)
			continue
		}
		if got.want(t, console.ExitUsage); strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, want) {
			t.Errorf("%q: %q, want %s", text, got.stderr, want)
		}
	}
}

// Nodes with the same name are distinguished by their ids. Live nodes come
// before dead ones, and the other way around if dead nodes are requested.
func TestNodesWithOneNameAreListedByID(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	dead, alive := twins(t, place)
	got := invoke(t, place.with("node", "show", "twin")...).want(t, console.ExitUsage)
	if !strings.Contains(got.stderr, `2 nodes are called "twin"`) || strings.Contains(got.stderr, dead.ID.String()) ||
		!strings.Contains(got.stderr, alive[0].ID.String()) || !strings.Contains(got.stderr, alive[1].ID.String()) {
		t.Errorf("%q", got.stderr)
	}
	invoke(t, place.with("node", "show", alive[0].ID.String()[:13])...).want(t, console.ExitDone)

	got = invoke(t, place.with("node", "forget", alive[0].ID.String())...).want(t, console.ExitUsage)
	if !strings.Contains(got.stderr, "only dead nodes") {
		t.Errorf("%q", got.stderr)
	}
	var forgotten cluster.ForgottenRecord
	invoke(t, place.with("node", "forget", "twin", "-o", "json")...).want(t, console.ExitDone).decode(t, &forgotten)
	if len(forgotten.Forgotten) != 1 || forgotten.Forgotten[0] != dead.ID {
		t.Errorf("%+v", forgotten)
	}
	place.wantForgotten(t, dead.ID.String())
	if seen := place.cluster(t); seen.Counts.Dead != 0 || seen.Counts.Active != 2 {
		t.Errorf("%+v", seen.Counts)
	}
}

// wantForgotten checks that the audit names who removed a node called twin.
func (p place) wantForgotten(t *testing.T, id string) {
	t.Helper()
	var actions record.Audit
	invoke(t, p.with("audit", "-o", "json")...).want(t, console.ExitDone).decode(t, &actions)
	if len(actions.Actions) != 1 {
		t.Fatalf("the audit has %+v; want the removal of the node", actions.Actions)
	}
	if a := actions.Actions[0]; a.Action != "forget" || a.Kind != "node" || a.Name != "twin" || a.Detail != id || a.Result != "done" || !strings.Contains(a.By, "@") {
		t.Errorf("the audit has %+v; want the removal of the node by this user", a)
	}
}

// The command removes dead nodes only, and only those that died long enough
// ago.
func TestForgetDeadRemovesOldDeadNodes(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	dead, _ := twins(t, place)
	for _, args := range [][]string{{"node", "forget", "--dead"}, {"node", "forget", "--dead", "--older-than", "0s"}} {
		if text := invoke(t, place.with(args...)...).want(t, console.ExitDone).stdout; text != "0 dead nodes forgotten\n" {
			t.Errorf("before its lease has expired, %v: %q", args, text)
		}
	}
	nodes := pgx.Identifier{place.schema, "tenure_nodes"}.Sanitize()
	pgtest.Exec(t, place.server.Conn(t), "UPDATE "+nodes+" SET last_heartbeat = last_heartbeat - interval '1 min' WHERE id = $1", dead.ID)
	if text := invoke(t, place.with("node", "forget", "--dead", "--older-than", "0s")...).want(t, console.ExitDone).stdout; text != "1 dead node forgotten\n" {
		t.Errorf("%q", text)
	}
	place.wantForgotten(t, dead.ID.String())
	if seen := place.cluster(t); seen.Counts.Dead != 0 || seen.Counts.Active != 2 {
		t.Errorf("%+v", seen.Counts)
	}
	var list cluster.NodesRecord
	invoke(t, place.with("node", "list", "-o", "json")...).want(t, console.ExitDone).decode(t, &list)
	if len(list.Nodes) != 2 {
		t.Errorf("%+v", list)
	}
	if text := invoke(t, place.with("node", "list")...).want(t, console.ExitDone).stdout; strings.Count(text, "\n") != 3 || !strings.HasPrefix(text, "ID ") {
		t.Errorf("%q", text)
	}
}
