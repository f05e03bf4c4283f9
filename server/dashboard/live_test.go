package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// All responses state the leader, since when it leads, and why leadership
// changed.
func TestLeadershipIsServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	first, stop := w.node("api-1", "scheduler")
	before := w.led("scheduler", "api-1")
	if before.Term == 0 || before.Node != first.ID() || before.Ended != nil {
		t.Errorf("the first leader: %+v", before)
	}
	second, _ := w.node("api-2", "scheduler")
	w.await("both nodes are shown", func() bool { return w.board.snapshot.now().Living == 2 })
	line := get[viewRecord](w, "/api/timeline?role=scheduler")
	if len(line.Spans) != 1 || line.Spans[0][1] != nil {
		t.Errorf("the timeline of a term that continues: %+v", line)
	}

	stop()
	after := w.led("scheduler", "api-2")
	if after.Node != second.ID() || after.Term <= before.Term || after.Without == nil {
		t.Errorf("the second leader: %+v", after)
	}
	reads := w.timelineReads.Load()
	line = get[viewRecord](w, "/api/timeline?role=scheduler")
	terms := get[list[termRecord]](w, "/api/terms?role=scheduler")
	if len(line.Spans) != 2 || line.Spans[0][5] != string(history.EndShutdown) || line.Spans[0][1] == nil || len(line.Nodes) != 2 ||
		terms.Total != 2 || terms.Rows[0].NodeName != "api-2" || terms.Rows[1].Reason != string(history.EndShutdown) {
		t.Errorf("the timeline afterwards: %+v\n%+v", line, terms)
	}
	if again := w.timelineReads.Load() - reads; reads == 0 || again != 0 {
		t.Errorf("the timeline was read %d times, then %d times again", reads, again)
	}
	failovers := get[failoversRecord](w, "/api/failovers")
	if failovers.Total != 1 || failovers.Moves != 1 || failovers.Failovers != 0 || failovers.Day != 0 || failovers.Rows[0].Previous != "api-1" || failovers.Rows[0].Reason != string(history.EndShutdown) ||
		*failovers.Rows[0].Without != *after.Without || len(failovers.Points) != 0 {
		t.Errorf("failovers: %+v", failovers)
	}
	var got string
	w.await("the leaving of api-1, which comes after its term, is shown", func() bool {
		var kinds []string
		for _, e := range get[list[eventRecord]](w, "/api/events").Rows {
			kinds = append(kinds, strings.TrimSpace(e.Kind+" "+e.NodeName+" "+e.Status+e.Reason))
		}
		got = strings.Join(kinds, ", ")
		return strings.Contains(got, "left")
	})
	for _, want := range []string{"began api-2", "ended api-1 shutdown", "began api-1", "node api-1 left", "node api-2 active", "node api-1 active"} {
		if strings.Count(got, want) != 1 {
			t.Errorf("%q is not once in the events: %s", want, got)
		}
	}
	roles := get[list[roleRecord]](w, "/api/roles?search=API-2")
	if roles.Total != 1 || len(roles.Rows) != 1 || roles.Rows[0].Name != "scheduler" {
		t.Errorf("the roles of api-2: %+v", roles)
	}
	if none := get[list[roleRecord]](w, "/api/roles?state=vacant"); none.Total != 0 {
		t.Errorf("vacant roles: %+v", none)
	}
}

// The health is one sentence about the most important problem.
func TestHealthStatesWorstProblem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	sentence := func(level, want string) {
		t.Helper()
		var h health
		w.await("the health says "+want, func() bool { h = w.board.snapshot.now().Health; return strings.Contains(h.Sentence, want) })
		if h.Level != level {
			t.Errorf("%q is %s, not %s", h.Sentence, h.Level, level)
		}
	}
	sentence(good, "start a node")
	_, stop := w.node("api-1", "scheduler")
	sentence(warning, "there is only one node")
	w.node("api-2", "other")
	sentence(good, "All roles have a leader: 2 roles, 2 nodes.")
	stop()
	sentence(critical, "No node leads "+isolate+"scheduler"+ended+".")
}

// A node that sends no heartbeat is shown as silent, and its roles as vacant
// when its lease has expired.
func TestSilentNodeIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	node, _ := w.node("api-1", "scheduler")
	term := w.led("scheduler", "api-1")
	p := newSnapshot()
	reading, err := (&watcher{Dashboard: w.board}).read(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		quiet time.Duration
		node  string
		role  string
	}{
		{4 * time.Second, "active", led}, {6 * time.Second, silent, silent}, {11 * time.Second, dead, vacant},
	} {
		reading.members[0].SilentFor = c.quiet
		p.update(reading)
		now := p.now()
		role, _ := p.role("scheduler")
		if now.Nodes[0].ID != node.ID() || string(now.Nodes[0].Status) != c.node || role.State != c.role || role.Term != term.Term {
			t.Errorf("silent for %v: node %s, role %s; want %s, %s", c.quiet, now.Nodes[0].Status, role.State, c.node, c.role)
		}
	}
	reading.members[0].SilentFor, reading.members[0].Incarnation = 0, 999
	p.update(reading)
	if role, _ := p.role("scheduler"); role.State != vacant {
		t.Errorf("a node with another session still leads: %+v", role)
	}
}

// 100 viewers who open everything make the watch send no additional statement
// to the database.
func TestViewersAddNoStatements(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	const viewers = 100
	w := newWorld(t, Config{})
	w.node("api-1", "scheduler")
	w.led("scheduler", "api-1")
	get[viewRecord](w, "/api/timeline?role=scheduler") // the one read that a role causes
	count := func(during func()) int64 {
		before, began := w.statements.Load(), time.Now()
		during()
		time.Sleep(time.Until(began.Add(allInterval)))
		return w.statements.Load() - before
	}
	count(func() {}) // the rechecks after the notification
	alone := count(func() {})
	pages := []string{
		"now", "roles", "role?name=scheduler", "terms?role=scheduler", "timeline?role=scheduler", "nodes", "events", "events?fold=1", "failovers", "incidents", "lanes", "session",
	}
	watched := count(func() {
		var group sync.WaitGroup
		for range viewers {
			group.Go(func() {
				next, _ := w.follow("")
				for next().kind != kindNow {
				}
				for _, page := range pages {
					response, _ := w.request(http.MethodGet, "/api/"+page, "")
					if response.StatusCode != http.StatusOK {
						t.Errorf("%s: %s", page, response.Status)
					}
				}
			})
		}
		group.Wait()
	})
	t.Logf("statements in %v: %d alone, %d with %d viewers", allInterval, alone, watched, viewers)
	if alone == 0 || watched > alone+10 {
		t.Errorf("%d viewers cost %d statements; %d were asked anyway", viewers, watched-alone, alone)
	}
}

// A viewer that reconnects receives everything that it missed. If that is no
// longer possible, it must read everything again.
func TestViewerResumesWithoutLoss(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	_, stop := w.node("api-1", "scheduler")
	w.led("scheduler", "api-1")
	next, end := w.follow("")
	id := next().id
	if id == "" {
		t.Fatal("the stream begins without a place")
	}
	end()
	stop()
	w.node("api-2", "scheduler")
	w.led("scheduler", "api-2")

	next, _ = w.follow(id)
	want := map[string]bool{"ended api-1": true, "began api-2": true, "node api-2": true}
	for len(want) > 0 {
		e := next()
		switch e.kind {
		case kindResync:
			t.Fatal("asked to read again, with everything there")
		case kindChange:
			var change changeRecord
			if err := json.Unmarshal([]byte(e.data), &change); err != nil {
				t.Fatal(err)
			}
			for _, event := range change.Events {
				delete(want, event.Kind+" "+event.NodeName)
			}
		}
	}
	for _, unknown := range []string{"other-3", w.board.feed.Position(1 << 40).String(), "x", strings.Repeat("9", 200)} {
		next, end := w.follow(unknown)
		next()
		if e := next(); e.kind != kindResync {
			t.Errorf("%.20q: %+v; want to read anew", unknown, e)
		}
		end()
	}
}

// The number of streams is limited, and a slot is free again when a viewer
// disconnects.
func TestOneStreamTooManyIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	for range 128 - 1 {
		if _, ok := w.board.streams.Take("127.0.0.1"); !ok {
			t.Fatal("there is no place for this address")
		}
	}
	_, end := w.follow("")
	limited, cancel := context.WithTimeout(t.Context(), 20*time.Second) // a stream that is accepted does not end
	defer cancel()
	r, err := http.NewRequestWithContext(limited, http.MethodGet, w.url+"/api/stream", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("one too many: %v", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
		t.Errorf("one too many: %s", response.Status)
	}
	end()
	w.await("its place is free", func() bool { return w.board.streams.Open() == eachStreams-1 })
	w.follow("")
}

// While the database does not answer, the page says so and shows the last known
// state. Afterwards, nothing that happened in the meantime is missing.
func TestOutageIsShownAndRecovered(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newWorld(t, Config{})
	w.node("api-1", "scheduler")
	w.led("scheduler", "api-1")
	server := pgtest.Shared(t)
	wire, err := faultwire.Start(fmt.Sprintf("%s:%d", server.Host, server.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer wire.Close()
	dsn, err := wire.DSN(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	backend, err := postgres.New(dsn, postgres.Config{Schema: w.schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(backend.Close)
	board, err := New(Config{Backend: backend, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer board.Close()
	w.await("the role is shown", func() bool { r, _ := board.snapshot.role("scheduler"); return r.State == led })

	wire.Stall()
	w.await("it says so", func() bool { return strings.Contains(board.snapshot.now().Health.Sentence, "cannot be read") })
	if now := board.snapshot.now(); now.Health.Level != critical || now.Led != 1 {
		t.Errorf("%+v", now)
	}
	w.node("api-2", "meanwhile")
	w.led("meanwhile", "api-2")
	wire.Resume()
	w.await("what happened is shown", func() bool { r, _ := board.snapshot.role("meanwhile"); return r.State == led })
	if now := board.snapshot.now(); now.Health.Level != good || now.Led != 2 {
		t.Errorf("%+v", now)
	}
}

// Without the privilege to read processors and schedules, the rest is still
// shown.
func TestMissingPrivilegeHidesOnlyWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{}, func(w *world) { w.exec("ALTER TABLE {processors} RENAME TO elsewhere") })
	w.node("api-1", "scheduler")
	w.led("scheduler", "api-1")
	if h := w.board.snapshot.now().Health; h.Level == critical {
		t.Errorf("%+v", h)
	}
}
