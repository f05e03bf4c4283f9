package dashboard

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/roster"
)

// A node that came back under its name leaves no dead node behind. Other dead nodes come first
// in the list of nodes.
func TestReturnedNodeLeavesNoDeadNodeBehind(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newWorld(t, Config{})
	w.node("api-1")
	_, other := w.wiredNode("api-0", 10*time.Second)
	var died []uuid.UUID
	for _, name := range []string{"api-2", "api-3"} {
		wire, node := w.wiredNode(name, 10*time.Second)
		died = append(died, node.ID())
		w.AwaitWatched(node.ID())
		if err := wire.Close(); err != nil {
			t.Fatal(err)
		}
	}
	states := func() (names []string) {
		for _, n := range get[list[nodeRecord]](w, "/api/nodes").Rows {
			names = append(names, n.Name+" "+string(n.Status))
		}
		return names
	}
	w.await("both are dead, and first", func() bool {
		all := states()
		return len(all) == 4 && all[0] == "api-2 dead" && all[1] == "api-3 dead"
	})
	w.node("api-2")
	w.await("one is dead", func() bool {
		all := states()
		return len(all) == 4 && all[0] == "api-3 dead" && slices.Contains(all, "api-2 active")
	})
	now := w.board.snapshot.now()
	if now.AllNodes != 4 || now.Living != 3 || len(now.Nodes) != 4 || now.Nodes[0].Name != "api-3" {
		t.Errorf("%d of %d nodes live: %+v; want 3 of 4, the dead api-3 first", now.Living, now.AllNodes, now.Nodes)
	}
	if detail := get[nodeDetail](w, "/api/node?id="+died[0].String()); detail.Node == nil || detail.Node.Status != dead {
		t.Errorf("the page of the dead api-2 beside %s: %+v", other.Name(), detail.Node)
	}
}

// Nodes that ran at the same time under one name do not replace one another.
func TestNodesOfOneNameReplaceOnlyEarlierOnes(t *testing.T) {
	t.Parallel()
	began := time.Now().Add(-time.Hour)
	member := func(id byte, started, heard int) tenure.Member {
		status := tenure.StatusDead
		if heard == 0 {
			status, heard = tenure.StatusActive, 60
		}
		return tenure.Member{
			NodeInfo: tenure.NodeInfo{ID: uuid.UUID{id}, Name: "worker"}, Description: tenure.Description{Status: status},
			StartedAt: began.Add(time.Duration(started) * time.Minute), LastHeartbeat: began.Add(time.Duration(heard) * time.Minute),
		}
	}
	visit := func(id byte, came, left int) []history.NodeChange {
		change := history.NodeChange{At: began.Add(time.Duration(came) * time.Minute), Node: uuid.UUID{id}, NodeName: "worker", Status: "joining"}
		end := change
		end.At, end.Status, end.Previous = began.Add(time.Duration(left)*time.Minute), "left", "active"
		return []history.NodeChange{change, end}
	}
	for name, c := range map[string]struct {
		members []tenure.Member
		changes []history.NodeChange
		want    []byte
	}{
		"one died beside another":           {[]tenure.Member{member(1, 0, 0), member(2, 0, 5)}, nil, nil},
		"one came back":                     {[]tenure.Member{member(1, 6, 0), member(2, 0, 5)}, nil, []byte{2}},
		"one came back three times":         {[]tenure.Member{member(1, 12, 0), member(2, 0, 5), member(3, 6, 8), member(4, 9, 11)}, nil, []byte{2, 3, 4}},
		"one of two came back":              {[]tenure.Member{member(1, 6, 0), member(2, 0, 5), member(3, 0, 4)}, nil, []byte{2}},
		"both came back":                    {[]tenure.Member{member(1, 6, 0), member(2, 0, 5), member(3, 0, 4), member(4, 7, 0)}, nil, []byte{2, 3}},
		"the one that came back died again": {[]tenure.Member{member(2, 0, 5), member(3, 6, 8)}, nil, nil},
		"the one that came back left":       {[]tenure.Member{member(2, 0, 5)}, visit(3, 6, 8), []byte{2}},
		"another one left after the death":  {[]tenure.Member{member(2, 0, 5)}, visit(3, 4, 8), nil},
		"one came and may still be there":   {[]tenure.Member{member(2, 0, 5)}, visit(3, 6, 8)[:1], nil},
	} {
		replaced := roster.FindReplaced(c.members, c.changes)
		var got []byte
		for _, m := range c.members {
			if replaced[m.ID] {
				got = append(got, m.ID[0])
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: the nodes %v are replaced, want %v", name, got, c.want)
		}
	}
}

// The graph of roles with a leader counts roles by their terms, whichever nodes store samples.
func TestRolesWithALeaderAreCountedByTerms(t *testing.T) {
	t.Parallel()
	p := newSnapshot()
	now := time.Now().Truncate(5 * time.Minute).Add(time.Second)
	at := func(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }
	ended := func(t history.Term, at time.Time) history.Term {
		t.Ended, t.Reason = at, history.EndCrashed
		return t
	}
	second := snapshotTerm(1, 2, at(25))
	second.Role = "outbox"
	fillSnapshot(p, reading{terms: []history.Term{ended(snapshotTerm(1, 1, at(50)), at(40)), snapshotTerm(2, 1, at(30)), second}, whole: true})
	var got []any
	for _, point := range p.pastTimes().led.at(at(60), now, 5*time.Minute) {
		got = append(got, point[1])
	}
	if want := []any{0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0}; !slices.Equal(got, want) {
		t.Errorf("the numbers of roles with a leader are %v, want %v", got, want)
	}
}

func silencedAlerts(context.Context) ([]Alert, error) {
	return []Alert{{Name: "down", State: "firing", Severity: critical, SilencedBy: "anna", SilencedUntil: time.Now().Add(time.Hour)}}, nil
}

// An alert that is silenced is counted apart, and is not what the banner describes.
func TestSilencedAlertIsNotInTheBanner(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{Alerts: silencedAlerts})
	w.node("api-1", "scheduler")
	w.node("api-2")
	w.led("scheduler", "api-1")
	w.await("the alerts are read", func() bool { n := w.board.snapshot.now(); return n.Silenced == 1 && n.Living == 2 })
	now := w.board.snapshot.now()
	if now.Firing != 0 || now.Health.Level != good {
		t.Errorf("%d alerts fire beside a silenced one: %+v", now.Firing, now.Health)
	}
}

// The banner describes work that has stopped before a role whose last leader ended as planned.
func TestStoppedWorkComesBeforePlannedEnds(t *testing.T) {
	t.Parallel()
	p := newSnapshot()
	term := snapshotTerm(1, 1, time.Now().Add(-time.Hour))
	fillSnapshot(p, reading{terms: []history.Term{term}, whole: true})
	p.work.Processors = []processorRecord{{Name: "balances", Status: "failed", LastError: "a poison event"}}
	const stopped = "balances\u2069 failed and needs an operator: \u2068a poison event\u2069. 1 role has no leader."
	for _, end := range []struct {
		reason      tenure.EndReason
		cause, want string
	}{
		{history.EndShutdown, "", stopped},
		{history.EndResigned, "", stopped},
		{history.EndResigned, "the command ended 4 times in a row, most recently with exit code 3", "No node leads"},
		{history.EndCrashed, "", "No node leads"},
	} {
		term.Ended, term.Reason, term.Cause = time.Now(), end.reason, end.cause
		p.roles["scheduler"].term, p.roles["scheduler"].state = term, vacant // Set by hand: only the order of sentences is tested
		if h := p.now().Health; h.Level != critical || !strings.Contains(h.Sentence, end.want) {
			t.Errorf("after an end for the reason %s %q: %q, want %q", end.reason, end.cause, h.Sentence, end.want)
		}
	}
}
