package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/incident"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/record"
)

// newBoard returns a dashboard whose readings the test makes.
func newBoard() *Dashboard { return &Dashboard{snapshot: newSnapshot()} }

// reads puts a reading into a board and finds the incidents.
func (d *Dashboard) reads(r reading) {
	fillSnapshot(d.snapshot, r)
	(&watcher{Dashboard: d}).regroup()
}

// crashed returns roles that node 1 led, and that nodes 2 and 3 lead since; the first
// waiting ones are not led yet.
func crashed(roles, waiting int, at time.Time) (terms []history.Term) {
	for i := range roles {
		before := snapshotTerm(1, 1, at.Add(-time.Hour))
		before.Role, before.Ended, before.Reason = fmt.Sprintf("role-%02d", i), at, history.EndCrashed
		terms = append(terms, before)
		if i >= waiting {
			after := snapshotTerm(2, byte(2+i%2), at.Add(time.Duration(i+1)*time.Millisecond))
			after.Role, after.PrecedingVacancy, after.PrecedingSilence = before.Role, time.Duration(i+1)*time.Millisecond, 2*time.Second
			terms = append(terms, after)
		}
	}
	return terms
}

// The crash of a node with 30 roles is one incident, also among the events and the
// failovers, and keeps its id while it grows.
func TestCrashOfManyRolesIsOneIncident(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(-time.Minute)
	d := newBoard()
	d.reads(reading{terms: crashed(30, 30, at), whole: true})
	first := d.snapshot.incidentsNow()
	if len(first) != 1 || first[0].Vacant != 30 || first[0].Ended != nil || !first[0].Unplanned {
		t.Fatalf("%+v; want one open incident", first)
	}
	if h := d.snapshot.now().Health; h.Level != critical || h.Incident != first[0].ID || !strings.Contains(h.Sentence, "crashed at") || h.Since == nil {
		t.Errorf("the health: %+v", h)
	}
	d.reads(reading{terms: crashed(30, 0, at)})
	all := d.snapshot.incidentsNow()
	if len(all) != 1 || all[0].ID != first[0].ID || all[0].Ended == nil || all[0].Roles != 30 {
		t.Errorf("%+v; want %s, over", all, first[0].ID)
	}
	if h := d.snapshot.now().Health; h.Level != warning || h.Incident != first[0].ID || !strings.Contains(h.Sentence, "Its 30 roles moved to") {
		t.Errorf("the health afterwards: %+v", h)
	}
	detail, ok := d.snapshot.incident(first[0].ID)
	if !ok || len(detail.Moves) != 30 || len(detail.Evidence) != 2 || !detail.From.Before(at) || detail.Moves[0].Role != "role-29" {
		t.Errorf("its page: %+v", detail)
	}
	rows, _ := d.snapshot.lastFailovers(failoverFilter("", ""), 0, 100)
	if len(rows) != 30 || rows[0].Incident != first[0].ID {
		t.Errorf("%d failovers: %+v", len(rows), rows[0])
	}
	if m := d.snapshot.allFailovers().Median; m == nil || *m.Without != 0.015 || *m.Silent != 2 {
		t.Errorf("the median: %+v; want 15 ms without a leader, and a silence of 2 s", m)
	}
	events := answerOf[list[eventRecord]](t, d.getEvents, "/api/events?fold=1")
	if n := countKind(events.Rows, eventIncident); n != 1 || countKind(events.Rows, eventEnded) != 0 {
		t.Errorf("the events, folded: %+v", events.Rows)
	}
	if single := answerOf[list[eventRecord]](t, d.getEvents, "/api/events?limit=500"); countKind(single.Rows, eventEnded) != 30 {
		t.Errorf("the single events: %+v", single)
	}
	if lanes := answerOf[lanesRecord](t, d.getLanes, "/api/lanes?incident="+first[0].ID); lanes.Total != 30 || len(lanes.Lanes[0].Spans) != 2 {
		t.Errorf("the timeline: %+v", lanes)
	}
	for query, want := range map[string]int{"": 1, "?kind=drain": 0, "?search=ROLE-07": 1, "?search=other": 0, fmt.Sprintf("?to=%d", at.Add(-time.Hour).UnixMilli()): 0} {
		if page := answerOf[list[incidentRecord]](t, d.getIncidents, "/api/incidents"+query); page.Total != want {
			t.Errorf("incidents%s: %d; want %d", query, page.Total, want)
		}
	}
}

func countKind(events []eventRecord, kind string) (n int) {
	for _, e := range events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// answerOf returns the answer to a request.
func answerOf[R any](t *testing.T, handler http.HandlerFunc, path string) R {
	t.Helper()
	recorder := httptest.NewRecorder()
	handler(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
	var read R
	if err := json.Unmarshal(recorder.Body.Bytes(), &read); err != nil || recorder.Code != http.StatusOK {
		t.Fatalf("%s: %d %s (%v)", path, recorder.Code, recorder.Body, err)
	}
	return read
}

// While the database cannot be read, an open outage says so. The recorded outage
// replaces it, and is its own row among the failovers.
func TestUnreadableDatabaseIsAnOpenOutage(t *testing.T) {
	t.Parallel()
	d := newBoard()
	at := time.Now().Add(-time.Hour)
	led := snapshotTerm(1, 1, at)
	d.reads(reading{terms: []history.Term{led}, whole: true})
	if all := d.snapshot.incidentsNow(); len(all) != 0 {
		t.Fatalf("%+v", all)
	}
	d.snapshot.failed(errors.New("no route"))
	all := d.snapshot.incidentsNow()
	if len(all) != 1 || all[0].ID != unreadableID || all[0].Ended != nil || all[0].Roles != 1 || !strings.Contains(all[0].Sentence, "1 role stands still") {
		t.Errorf("%+v; want an open outage", all)
	}
	now := d.snapshot.now()
	if now.Health.Incident != unreadableID || now.UnreadSince == nil || now.UnreadSince.After(time.Now()) || time.Since(*now.UnreadSince) > time.Minute {
		t.Errorf("%+v", now)
	}
	began := time.Now().Add(-30 * time.Second)
	led.Ended, led.Reason = began.Add(time.Second), history.EndServerChanged
	next := snapshotTerm(2, 2, began.Add(25*time.Second))
	fillSnapshot(d.snapshot, reading{terms: []history.Term{led, next}})
	d.snapshot.setOutages([]history.Outage{{Began: began, Ended: began.Add(20 * time.Second), ServerChanged: true, Roles: []string{"scheduler"}}})
	(&watcher{Dashboard: d}).regroup()
	all = d.snapshot.incidentsNow()
	if len(all) != 1 || all[0].Kind != "outage" || all[0].ID == unreadableID || all[0].Ended == nil {
		t.Errorf("%+v; want the recorded outage", all)
	}
	if detail, ok := d.snapshot.incident(unreadableID); !ok || detail.ID != all[0].ID {
		t.Errorf("the address of the open outage leads to %+v", detail)
	}
	rows, total := d.snapshot.lastFailovers(failoverFilter("", ""), 0, 10)
	if total != 1 || len(rows) != 1 || rows[0].Kind != kindOutage || *rows[0].Without != 20 || rows[0].Roles != 1 {
		t.Errorf("the failovers: %+v", rows)
	}
}

// Vacant roles are in the order in which they lost their leaders, however many there
// are.
func TestVacantRolesAreInOrderOfTheirEnds(t *testing.T) {
	t.Parallel()
	d := newBoard()
	at := time.Now().Add(-time.Minute)
	terms := crashed(3, 3, at)
	terms[0].Ended, terms[1].Ended, terms[2].Ended = at.Add(2*time.Second), at, at.Add(time.Second)
	live := snapshotTerm(1, 9, at)
	live.Role = "a-led-role"
	d.reads(reading{terms: append(terms, live), whole: true})
	var names []string
	for _, r := range answerOf[list[roleRecord]](t, d.getRoles, "/api/roles").Rows {
		names = append(names, r.Name)
	}
	if got := strings.Join(names, " "); got != "role-01 role-02 role-00 a-led-role" {
		t.Errorf("%s", got)
	}
}

// How long the banner says that a role has had no leader is about the incident that it describes, also
// while another role has had none for longer.
func TestBannerCountsFromItsIncident(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(-5 * time.Second)
	stopped := snapshotTerm(1, 4, at.Add(-time.Hour))
	stopped.Role, stopped.Ended, stopped.Reason = "mailer", at.Add(-5*time.Minute), history.EndShutdown
	d := newBoard()
	d.reads(reading{terms: append(crashed(1, 1, at), stopped), whole: true})
	if h := d.snapshot.now().Health; h.Since == nil || !h.Since.Equal(at) || strings.Contains(h.Sentence, "other") || h.Also != " 1 other role has no leader." {
		t.Errorf("the banner has %+v; want a crash at %v, and one other role", h, at)
	}
	d = newBoard()
	d.reads(reading{terms: []history.Term{stopped}, whole: true})
	if h := d.snapshot.now().Health; h.UpTo || h.Since == nil || !h.Since.Equal(stopped.Ended) {
		t.Errorf("the banner has %+v; want one role without a leader since %v", h, stopped.Ended)
	}
	later := stopped
	later.Role, later.Ended = "reports", at
	d.reads(reading{terms: []history.Term{later}})
	if h := d.snapshot.now().Health; !h.UpTo || h.Since == nil || !h.Since.Equal(stopped.Ended) {
		t.Errorf("the banner has %+v; want two roles, for up to the time since %v", h, stopped.Ended)
	}
}

// The cause that a node recorded is in full in the sentence and the evidence of its incident, and with the role.
func TestCauseOfAnEndIsShownInFull(t *testing.T) {
	t.Parallel()
	const cause = "the command ended 6 times in a row, most recently with exit code 3"
	term := snapshotTerm(1, 1, time.Now().Add(-time.Minute))
	term.Ended, term.Reason, term.Cause = time.Now(), history.EndResigned, cause
	d := newBoard()
	d.reads(reading{terms: []history.Term{term}, whole: true})
	all := d.snapshot.incidentsNow()
	if len(all) != 1 || !strings.Contains(all[0].Sentence, isolate+cause+ended) {
		t.Fatalf("the incidents are %+v; want the cause in one", all)
	}
	if detail, ok := d.snapshot.incident(all[0].ID); !ok || len(detail.Evidence) != 1 || detail.Evidence[0] != "The node recorded why: "+isolate+cause+ended+"." {
		t.Errorf("the evidence is %q; want the cause", detail.Evidence)
	}
	if r := d.snapshot.roleRecord(term.Role); r.Cause != cause {
		t.Errorf("the role has the cause %q; want %q", r.Cause, cause)
	}
}

// Processors and schedules that fail are in the health, with the text of the error.
func TestHealthStatesFailingWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		work        workRecord
		level, want string
	}{
		"one failure":       {workRecord{Schedules: []scheduleRecord{{Name: "report", Loaded: true, FailedInRow: 1, Last: &record.Run{Error: "exit 1"}}}}, warning, "failed the last time: " + isolate + "exit 1"},
		"31 failures":       {workRecord{Schedules: []scheduleRecord{{Name: "report", FailedInRow: 31, Last: &record.Run{Error: "exit 1"}}}}, critical, "failed 31 times in a row: " + isolate + "exit 1"},
		"the most counted":  {workRecord{Schedules: []scheduleRecord{{Name: "report", FailedInRow: 100, Last: &record.Run{Error: "exit 1"}}}}, critical, "failed at least 100 times in a row: " + isolate + "exit 1"},
		"an unknown zone":   {workRecord{Schedules: []scheduleRecord{{Name: "report", Problem: "no zone Mars"}}}, critical, "cannot run: " + isolate + "no zone Mars"},
		"a paused schedule": {workRecord{Schedules: []scheduleRecord{{Name: "report", Paused: true, FailedInRow: 31}}}, good, "All roles have a leader"},
		"a failed receiver": {workRecord{Processors: []processorRecord{{Name: "mail", Status: "active", Errors: 3, LastError: "refused"}}}, critical, "failed 3 times in a row: " + isolate + "refused"},
		"a dead letter":     {workRecord{Processors: []processorRecord{{Name: "mail", Status: "active", DeadLetters: 1}}}, warning, ended + " has 1 dead letter."},
		"skipped":           {workRecord{Processors: []processorRecord{{Name: "mail", Status: "active", DeadLetters: 2, Skipped: 2}}}, good, ""},
		"one not skipped":   {workRecord{Processors: []processorRecord{{Name: "mail", Status: "active", DeadLetters: 3, Skipped: 2}}}, warning, ended + " has 1 dead letter."},
		"letters, paused":   {workRecord{Processors: []processorRecord{{Name: "mail", Status: "paused", DeadLetters: 2}, {Name: "push", Status: "active", DeadLetters: 1}}}, warning, "mail" + ended + " has 2 dead letters. 1 other processor has dead letters too."},
		"fails, letters":    {workRecord{Processors: []processorRecord{{Name: "mail", Status: "active", DeadLetters: 2}, {Name: "push", Status: "active", Errors: 1, LastError: "refused"}}}, warning, "push" + ended + " failed the last time: " + isolate + "refused" + ended + "."},
		"a processor stops": {workRecord{Processors: []processorRecord{{Name: "mail", Status: "failed", LastError: "poison"}}}, critical, "needs an operator: " + isolate + "poison"},
	} {
		d := newBoard()
		other := snapshotTerm(1, 2, time.Now())
		other.Role = "other"
		d.reads(reading{terms: []history.Term{snapshotTerm(1, 1, time.Now()), other}, whole: true})
		d.snapshot.setWork(c.work, nil)
		c.work.judge()
		if c.level != good && !slices.ContainsFunc(c.work.Processors, func(p processorRecord) bool { return p.Level == c.level }) && len(c.work.Processors) > 0 {
			t.Errorf("%s: no row has the level of the banner: %+v", name, c.work.Processors)
		}
		if h := d.snapshot.now().Health; h.Level != c.level || !strings.Contains(h.Sentence, c.want) {
			t.Errorf("%s: %+v; want %s: %q", name, h, c.level, c.want)
		}
	}
}

// A critical alert comes before a silent node, and states its summary.
func TestCriticalAlertIsInTheHealth(t *testing.T) {
	t.Parallel()
	d := newBoard()
	d.reads(reading{terms: []history.Term{snapshotTerm(1, 1, time.Now())}, whole: true})
	d.snapshot.setWork(workRecord{}, []Alert{{Name: "slow", State: "firing", Severity: "warning"}, {Name: "lost", State: "firing", Severity: "critical", Summary: "No node leads."}})
	if h := d.snapshot.now().Health; h.Level != critical || !strings.Contains(h.Sentence+h.Also, "fires: "+isolate+"No node leads"+ended+". 1 other alert fires too.") {
		t.Errorf("%+v", h)
	}
}

// The records of the past are bounded.
func TestPastIsBounded(t *testing.T) {
	t.Parallel()
	p := newPast()
	began := time.Now()
	var r reading
	for i := range maxTerms + maxTerms/2 {
		r.terms = append(r.terms, snapshotTerm(int64(i+1), 1, began.Add(time.Duration(i)*time.Second)))
	}
	for i := range maxNodeChanges + maxNodeChanges/2 {
		r.nodes = append(r.nodes, history.NodeChange{Node: uuid.UUID{1}, At: began.Add(time.Duration(i) * time.Second), Status: "active"})
	}
	p.add(r, false)
	if len(p.terms) != maxTerms || len(p.termAt) != maxTerms || len(p.nodes) != maxNodeChanges || len(p.nodeAt) != maxNodeChanges {
		t.Errorf("%d terms, %d changes of nodes", len(p.terms), len(p.nodes))
	}
	p.dirty = false
	p.add(reading{terms: r.terms[len(r.terms)-1:]}, false)
	if p.dirty {
		t.Error("a known term is reported")
	}
	old := snapshotTerm(1<<40, 2, began.Add(-time.Hour))
	if p.add(reading{terms: []history.Term{old}}, false); p.dirty {
		t.Error("an open term that was dropped is reported at every read")
	}
	old.Ended = began.Add(1000 * time.Hour)
	if p.add(reading{terms: []history.Term{old}}, false); !p.dirty {
		t.Error("the end of an old term is lost")
	}
}

// An outage that the first session afterwards recorded is served and streamed, although
// the dashboard started before it.
func TestRecordedOutageIsServed(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newWorld(t, Config{})
	node, _ := w.node("api-1", "scheduler")
	w.led("scheduler", "api-1")
	next, _ := w.follow("")
	w.exec(`INSERT INTO {node_history} (at, node_id, node_name, incarnation, status, previous, outage_since)
		VALUES (clock_timestamp(), $1, 'api-1', 2, 'active', 'active', clock_timestamp() - interval '38 seconds')`, node.ID())
	w.board.notify()
	var told []incidentRecord
	for began := time.Now(); len(told) == 0; { // something arrives every few seconds
		if time.Since(began) > time.Minute {
			t.Fatal("no incident was streamed within a minute")
		}
		if e := next(); e.kind == kindIncidents {
			if err := json.Unmarshal([]byte(e.data), &told); err != nil {
				t.Fatal(err)
			}
		}
	}
	page := get[list[incidentRecord]](w, "/api/incidents?kind=outage")
	if page.Total != 1 || page.Rows[0].ID != told[0].ID || math.Abs(page.Rows[0].Lasted-38) > 1 {
		t.Errorf("%+v; reported %+v", page, told)
	}
	detail := get[incidentDetail](w, "/api/incident?id="+latestID)
	if detail.ID != told[0].ID || len(detail.Evidence) != 2 {
		t.Errorf("%+v", detail)
	}
	failovers := get[failoversRecord](w, "/api/failovers")
	if failovers.Outages != 1 || len(failovers.Rows) != 1 || failovers.Rows[0].Kind != kindOutage {
		t.Errorf("%+v", failovers)
	}
	if response, _ := w.request(http.MethodGet, "/api/incident?id=0123", ""); response.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown incident: %s", response.Status)
	}
}

// After an outage, nodes find others without a session, mark them as dead, and return: that is part
// of the outage, and no other event beside it.
func TestOutageCoversTheReturnOfItsNodes(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 30, 15, 26, 49, 0, time.UTC)
	outage := incident.Incident{Kind: incident.Outage, Began: began, Ended: began.Add(7 * time.Second), Outage: &history.Outage{Began: began, Ended: began.Add(7 * time.Second)}}
	f := newFound([]incident.Incident{{Kind: incident.Shutdown, Began: began.Add(time.Hour)}, outage})
	for what, c := range map[string]struct {
		event   eventRecord
		after   time.Duration
		covered bool
	}{
		"marked as dead":           {eventRecord{Status: "dead", Previous: "active"}, 8 * time.Second, true},
		"active again":             {eventRecord{Status: "active", Previous: "dead"}, 9 * time.Second, true},
		"a new session":            {eventRecord{Status: "active", Previous: "active"}, 9 * time.Second, true},
		"marked as dead later":     {eventRecord{Status: "dead", Previous: "active"}, time.Minute, false},
		"marked as dead before":    {eventRecord{Status: "dead", Previous: "active"}, -time.Second, false},
		"a new node":               {eventRecord{Status: "active"}, 9 * time.Second, false},
		"drained by an operator":   {eventRecord{Status: "draining", Previous: "active", By: "anna"}, 9 * time.Second, false},
		"undrained by an operator": {eventRecord{Status: "active", Previous: "draining", By: "anna"}, 9 * time.Second, false},
		"a node that left":         {eventRecord{Status: "left", Previous: "draining"}, 9 * time.Second, false},
	} {
		c.event.Kind, c.event.Node, c.event.At = eventNode, uuid.New(), began.Add(c.after)
		if got := f.incidentOfEvent(c.event) == outage.ID(); got != c.covered {
			t.Errorf("%s: part of the outage: %v, want %v", what, got, c.covered)
		}
	}
}
