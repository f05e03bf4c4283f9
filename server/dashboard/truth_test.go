package dashboard

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
)

// Rows with values that no page can show, and wrong measurements of a node,
// hide nothing else and stop nothing.
func TestInvalidRowsHideNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	w.node("api-1", "scheduler")
	w.led("scheduler", "api-1")
	w.exec(`UPDATE {nodes} SET name = 'strange', cpu_usage = 'NaN', memory_usage = 'Infinity', started_at = '20000-01-01'`)
	w.exec(`INSERT INTO {history} (role, term, node_id, node_name, incarnation, acquired_at, ended_at, end_reason, vacant_ms)
		SELECT role, 0, node_id, node_name, incarnation, '19999-01-01', '20000-01-01', 'resigned', 'NaN' FROM {terms}`)
	w.exec(`UPDATE {history} SET term = -1 WHERE acquired_at > '19998-01-01'`)
	w.board.notify()
	w.await("the rows are seen", func() bool { return w.board.snapshot.now().Nodes[0].Name == "strange" })
	for _, path := range []string{"now", "nodes", "roles", "role?name=scheduler", "terms?role=scheduler", "timeline?role=scheduler", "events", "failovers"} {
		if response, text := w.request(http.MethodGet, "/api/"+path, ""); response.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %s", path, response.Status, text)
		}
	}
	if r := w.role("scheduler"); r.State != led || r.Term < 1 {
		t.Errorf("the role: %+v", r)
	}
}

// A time that has no form in JSON is refused and sent in no stream.
func TestFeedRefusesInvalidTimes(t *testing.T) {
	t.Parallel()
	f := newFeed()
	at := time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)
	if f.Publish(kindChange, changeRecord{Events: []eventRecord{{At: at}}}) == nil || f.SetState(kindNow, nowRecord{Clock: at}) == nil {
		t.Error("a year without a form was reported")
	}
	if f.Latest() != f.Position(0) {
		t.Error("a change was published")
	}
}

// snapshotTerm is a term of one role by a node.
func snapshotTerm(number int64, node byte, began time.Time) history.Term {
	return history.Term{
		Role: "scheduler", Term: number, Node: uuid.UUID{node}, NodeName: string('a' + rune(node)), Incarnation: int32(node), Began: began, PrecedingVacancy: -1, PrecedingSilence: -1,
	}
}

// fillSnapshot puts open terms into a snapshot, with live nodes.
func fillSnapshot(p *snapshot, r reading) changeRecord {
	for _, t := range r.terms {
		r.members = append(r.members, tenure.Member{
			NodeInfo: tenure.NodeInfo{ID: t.Node, Name: t.NodeName}, Description: tenure.Description{Status: tenure.StatusActive},
			Incarnation: int64(t.Incarnation), Lease: 10 * time.Second,
		})
	}
	return p.update(r)
}

// If a server takes over that lacks the last terms, the terms that it has are
// shown, also under the same number.
func TestSnapshotFollowsARestoredServer(t *testing.T) {
	t.Parallel()
	began := time.Now().Add(-time.Minute)
	for name, after := range map[string]history.Term{
		"an earlier term": snapshotTerm(5, 1, began), "the same number by another node": snapshotTerm(8, 2, began),
	} {
		p := newSnapshot()
		fillSnapshot(p, reading{terms: []history.Term{snapshotTerm(8, 1, began)}, whole: true})
		again := fillSnapshot(p, reading{terms: []history.Term{snapshotTerm(8, 1, began)}})
		if again.rewound || len(again.Events) > 0 {
			t.Errorf("%s: the same once more: %+v", name, again)
		}
		change := fillSnapshot(p, reading{terms: []history.Term{after}})
		role, _ := p.role("scheduler")
		if role.State != led || role.Term != after.Term || role.Node != after.Node || !change.rewound || !change.More {
			t.Errorf("%s: %+v, %+v", name, role, change)
		}
	}
}

// A role whose row was removed disappears from the page.
func TestRemovedRoleDisappears(t *testing.T) {
	t.Parallel()
	p := newSnapshot()
	kept := snapshotTerm(1, 1, time.Now())
	kept.Role = "kept"
	fillSnapshot(p, reading{terms: []history.Term{snapshotTerm(8, 1, time.Now()), kept}, whole: true})
	if change := fillSnapshot(p, reading{terms: []history.Term{kept}}); !change.missing || change.More {
		t.Errorf("it is not missed: %+v", change)
	}
	if change := fillSnapshot(p, reading{terms: []history.Term{kept}, whole: true}); !change.More {
		t.Errorf("no client is asked to read again: %+v", change)
	}
	if _, there := p.role("scheduler"); there || !slices.Equal(p.names, []string{"kept"}) {
		t.Errorf("there are %v", p.names)
	}
	if change := fillSnapshot(p, reading{terms: []history.Term{kept}}); change.missing || change.More {
		t.Errorf("it is missed still: %+v", change)
	}
}

// Times are those of the database, whatever the local clock shows. The clock of
// a server that takes over may be behind, and nothing is reported twice.
func TestTimesFollowDatabaseClock(t *testing.T) {
	t.Parallel()
	p := newSnapshot()
	behind := time.Now().Add(-time.Hour)
	node := history.NodeChange{At: behind, Node: uuid.UUID{1}, Status: "active"}
	fillSnapshot(p, reading{clock: behind, nodes: []history.NodeChange{node}})
	action := p.note(eventRecord{Kind: eventAction})
	for what, at := range map[string]time.Time{"the page's clock": p.now().Clock, "an action": action.At} {
		if off := at.Sub(behind).Abs(); off > time.Minute {
			t.Errorf("%s is %v off", what, off)
		}
	}
	fillSnapshot(p, reading{clock: behind, nodes: []history.NodeChange{}})
	if change := fillSnapshot(p, reading{clock: behind, nodes: []history.NodeChange{node}, again: true}); len(change.Events) != 0 {
		t.Errorf("reported twice: %+v", change.Events)
	}

	w := watcher{readFrom: time.Now()}
	w.advance(reading{clock: behind})
	if want := behind.Add(-overlap); !w.readFrom.Equal(want) || !w.rewound {
		t.Errorf("the mark is %v, again %v; want %v", w.readFrom, w.rewound, want)
	}
	w.advance(reading{clock: behind.Add(time.Second)})
	if w.rewound {
		t.Error("read again though the clock advanced")
	}
	w.readFrom = time.Time{}
	w.advance(reading{terms: []history.Term{snapshotTerm(1, 1, behind)}})
	if want := behind.Add(-overlap); !w.readFrom.Equal(want) {
		t.Errorf("without nodes the mark is %v; want %v", w.readFrom, want)
	}
}

// After this process was stopped for a while, it reports no node as dead before
// it has read the database.
func TestResumedProcessReadsBeforeReportingDeaths(t *testing.T) {
	t.Parallel()
	p := newSnapshot()
	fillSnapshot(p, reading{terms: []history.Term{snapshotTerm(1, 1, time.Now())}, whole: true})
	p.readAt = p.readAt.Add(-time.Minute)
	if now := p.now(); now.Living != 1 || now.Nodes[0].Status != tenure.StatusActive {
		t.Errorf("%+v", now.Nodes)
	}
	for lease, want := range map[time.Duration]time.Duration{
		10 * time.Second: nodesInterval, 5 * time.Second: time.Second, 100 * time.Millisecond: leastInterval, time.Hour: nodesInterval,
	} {
		p.members[0].Lease = lease
		if got := p.pace(); got != want {
			t.Errorf("with a lease of %v nodes are looked at every %v; want %v", lease, got, want)
		}
	}
}

// If there are too many nodes to publish, those that lead are published.
func TestLeadingNodesArePublishedFirst(t *testing.T) {
	t.Parallel()
	p := newSnapshot()
	var r reading
	for i := range maxNodesTold + 10 {
		r.members = append(r.members, tenure.Member{
			NodeInfo: tenure.NodeInfo{ID: uuid.New()}, Description: tenure.Description{Status: tenure.StatusDead}, Incarnation: int64(i),
		})
	}
	last := snapshotTerm(1, 1, time.Now())
	r.terms, r.whole = []history.Term{last}, true
	fillSnapshot(p, r)
	if now := p.now(); len(now.Nodes) != maxNodesTold || now.Nodes[0].ID != last.Node || now.AllNodes != maxNodesTold+11 {
		t.Errorf("%d nodes, the first %+v", len(now.Nodes), now.Nodes[0])
	}
}

// A role states how its previous term ended, and who requested that.
func TestRoleStatesEndOfPreviousTerm(t *testing.T) {
	t.Parallel()
	p := newSnapshot()
	began := time.Now().Add(-time.Minute)
	first, second := snapshotTerm(1, 1, began), snapshotTerm(2, 2, began.Add(10*time.Second))
	fillSnapshot(p, reading{terms: []history.Term{first}, whole: true})
	first.Ended, first.Reason, first.By = began.Add(9*time.Second), history.EndSteppedDown, "anna"
	fillSnapshot(p, reading{terms: []history.Term{second, first}})
	if r, _ := p.role("scheduler"); r.Previous != first.NodeName || r.PreviousReason != string(history.EndSteppedDown) || r.PreviousBy != "anna" {
		t.Errorf("%+v", r)
	}
}

// The reported outcome of an action is what happened, also if that differs from
// the request.
func TestOutcomesReportWhatHappened(t *testing.T) {
	t.Parallel()
	began := time.Now().Add(-time.Minute)
	ended := func(t history.Term) history.Term {
		t.Ended, t.Reason = began.Add(9*time.Second), history.EndHandedOver
		return t
	}
	first := snapshotTerm(1, 1, began)
	for name, c := range map[string]struct {
		ask  actionBody
		then []history.Term
		want string
		done bool
	}{
		"nothing yet":           {actionBody{Action: stepDown}, nil, "has the request", false},
		"it has ended":          {actionBody{Action: stepDown}, []history.Term{ended(first)}, "no node leads it yet", false},
		"the same again":        {actionBody{Action: stepDown}, []history.Term{ended(first), snapshotTerm(2, 1, began.Add(10*time.Second))}, "leads again, in term 2", true},
		"another":               {actionBody{Action: stepDown}, []history.Term{ended(first), snapshotTerm(2, 2, began.Add(10*time.Second))}, "leads now, in term 2.", true},
		"the one that it is to": {actionBody{Action: handOver, Node: uuid.UUID{2}}, []history.Term{ended(first), snapshotTerm(2, 2, began.Add(10*time.Second))}, "leads now, in term 2.", true},
		"the target has died":   {actionBody{Action: handOver, Node: uuid.UUID{2}}, []history.Term{ended(first), snapshotTerm(2, 3, began.Add(10*time.Second))}, "did not acquire it", true},
		"a node that is gone":   {actionBody{Action: drain, Node: uuid.UUID{9}}, nil, "gone", true},
		"its return":            {actionBody{Action: undrain, Node: uuid.UUID{9}}, nil, "gone", true},
	} {
		p := newSnapshot()
		fillSnapshot(p, reading{terms: []history.Term{first}, whole: true})
		c.ask.Name = "scheduler"
		what := pendingAction{actionBody: c.ask, before: p.eventsSeen()}
		fillSnapshot(p, reading{terms: c.then})
		if message, done, _ := p.outcomeOf(what); !strings.Contains(message, c.want) || done != c.done {
			t.Errorf("%s: %q, %v; want %q, %v", name, message, done, c.want, c.done)
		}
	}
}

// The shared summary of all failovers is computed again when there are more,
// and its rows are the newest.
func TestFailoverSummaryIsUpdated(t *testing.T) {
	t.Parallel()
	p := newSnapshot()
	began := time.Now().Add(-time.Minute)
	var terms []history.Term
	for i := range 6 {
		term := snapshotTerm(int64(i), byte(i+1), began.Add(time.Duration(i)*time.Second))
		term.PrecedingVacancy = time.Duration(i-1) * time.Second
		terms = append(terms, term)
		if fillSnapshot(p, reading{terms: slices.Clone(terms[i:]), whole: true}); p.allFailovers().Failovers != i {
			t.Errorf("%d terms began; %d failovers are summed up, want %d", i+1, p.allFailovers().Failovers, i)
		}
	}
	if rows, _ := p.lastFailovers(failoverFilter("", ""), 1, 2); len(rows) != 2 || rows[0].Term != 4 || rows[1].Term != 3 {
		t.Errorf("the second and the third: %+v", rows)
	}
	if rows, _ := p.lastFailovers(failoverFilter("", ""), 5, 10); rows == nil || len(rows) != 0 {
		t.Errorf("beyond the last: %+v", rows)
	}
}

// The outcome of a hand-over states how long it took, and for how long the role had no
// leader.
func TestOutcomeStatesHowLongItTook(t *testing.T) {
	t.Parallel()
	began := time.Now().Add(-time.Minute)
	first, next := snapshotTerm(1, 1, began), snapshotTerm(2, 2, began.Add(10*time.Second+38*time.Millisecond))
	first.Ended, first.Reason = began.Add(10*time.Second+35*time.Millisecond), history.EndHandedOver
	next.PrecedingVacancy = 3 * time.Millisecond
	p := newSnapshot()
	fillSnapshot(p, reading{terms: []history.Term{snapshotTerm(1, 1, began)}, whole: true})
	what := pendingAction{actionBody: actionBody{Action: handOver, Name: "scheduler", Node: uuid.UUID{2}}, before: p.eventsSeen(), asked: began.Add(10 * time.Second)}
	fillSnapshot(p, reading{terms: []history.Term{first, next}})
	if message, _, _ := p.outcomeOf(what); !strings.Contains(message, "leads now, in term 2, after 38 ms (without a leader 3 ms).") {
		t.Errorf("%q", message)
	}
}

// A notification delays no read: its last check comes when the next read is due, or earlier.
func TestNotificationDelaysNoRead(t *testing.T) {
	t.Parallel()
	for looked := range len(recheckDelays) + 1 {
		if pause := pauseAfter(looked, time.Second, time.Millisecond); pause > time.Second {
			t.Errorf("the pause after %d reads is %v; want at most that without a notification", looked, pause)
		}
	}
	if pause := pauseAfter(0, time.Second, time.Second); pause != 2*time.Second {
		t.Errorf("the pause after a read of 1s is %v, want 2s", pause)
	}
}
